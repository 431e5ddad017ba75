//! How complete the stacks of a result are.

use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

/// How complete user stacks are, and why the others are not.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct StackQuality {
    /// Samples with a user stack.
    samples: u64,
    /// Samples whose user stack reaches its outermost frame.
    complete: u64,
    /// Samples whose user stack was walked by frame pointers alone, where nobody knows.
    unverified: u64,
    /// The others, by reason; most samples first.
    incomplete: Vec<IncompleteStacks>,
    tables: UnwindTables,
    /// All of this in one line for people; empty without samples.
    summary: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct IncompleteStacks {
    reason: &'static str,
    meaning: &'static str,
    count: u64,
}

/// What it took to walk the stacks.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct UnwindTables {
    /// Pages of unwind rows that were decoded and given to the kernel.
    pages_loaded: u64,
    /// Pages that made room for others.
    pages_evicted: u64,
    /// Most blocks of rows, 1 KiB each, that the kernel held at once.
    blocks: u64,
    /// Frames that the kernel walked.
    frames: u64,
    /// Samples that the kernel could not walk and sent to the agent.
    captures: u64,
    /// Of these, the ones that the agent walked to their outermost frame.
    repaired: u64,
    /// Samples that were to be sent so and did not fit.
    captures_dropped: u64,
    /// Processes that got no place in the kernel's table of mappings.
    processes_left_out: u64,
}

impl From<&model::StackQuality> for StackQuality {
    fn from(quality: &model::StackQuality) -> Self {
        let model::StackQuality {
            complete,
            unverified,
            incomplete: _,
            tables,
        } = quality;
        let model::TableCounts {
            pages_loaded,
            pages_evicted,
            blocks,
            frames,
            captures,
            repaired,
            captures_dropped,
            processes_left_out,
            // Of a test mode of the command line.
            compared: _,
            identical: _,
        } = *tables;
        Self {
            samples: quality.samples(),
            complete: *complete,
            unverified: *unverified,
            incomplete: quality
                .incomplete_by_count()
                .into_iter()
                .map(|(fault, count)| IncompleteStacks {
                    reason: fault.name(),
                    meaning: fault.meaning(),
                    count,
                })
                .collect(),
            tables: UnwindTables {
                pages_loaded,
                pages_evicted,
                blocks,
                frames,
                captures,
                repaired,
                captures_dropped,
                processes_left_out,
            },
            summary: quality.line().unwrap_or_default(),
        }
    }
}
