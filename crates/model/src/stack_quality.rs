//! How complete user stacks are, and why the others are not.

use std::collections::BTreeMap;

use profiler_common::unwind::step;
use serde::{Deserialize, Serialize};

use crate::percent;

/// How user stacks are walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnwindMethod {
    /// With tables made from the unwind information in the binaries; by frame pointers in code
    /// that has none and keeps them.
    #[default]
    Tables,
    /// By the kernel, by frame pointers alone: cheaper, and incomplete wherever code keeps none.
    FramePointers,
}

impl UnwindMethod {
    /// Name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::FramePointers => "frame-pointers",
        }
    }
}

impl std::str::FromStr for UnwindMethod {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Tables, Self::FramePointers]
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or("is not known: write tables or frame-pointers")
    }
}

/// Why a user stack ends before its outermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StackFault {
    NoUnwindInfo,
    NoMapping,
    TableMissing,
    UnsupportedRule,
    StackUnreadable,
    StackNotGrowing,
    RegisterUnknown,
    ProcessUnknown,
    CompatProcess,
    NoRegisters,
    TooDeep,
    FramePointerBroken,
    /// Of a wait that was longer than expected.
    NotTaken,
    /// What was left of a thread when sampling ended.
    NotSampled,
    /// The frames never arrived.
    Lost,
    /// The thread ran while its stack was to be read.
    StackChanged,
}

impl StackFault {
    /// All faults, in display order.
    pub const ALL: [Self; 16] = [
        Self::NoUnwindInfo,
        Self::NoMapping,
        Self::TableMissing,
        Self::UnsupportedRule,
        Self::StackUnreadable,
        Self::StackNotGrowing,
        Self::RegisterUnknown,
        Self::ProcessUnknown,
        Self::CompatProcess,
        Self::NoRegisters,
        Self::TooDeep,
        Self::FramePointerBroken,
        Self::NotTaken,
        Self::NotSampled,
        Self::StackChanged,
        Self::Lost,
    ];

    /// The fault behind the outcome of a step that ended a stack.
    pub fn of_outcome(outcome: u32) -> Self {
        match outcome {
            step::NO_UNWIND_INFO => Self::NoUnwindInfo,
            step::NO_MAPPING => Self::NoMapping,
            step::TABLE_MISSING => Self::TableMissing,
            step::UNSUPPORTED_RULE => Self::UnsupportedRule,
            step::STACK_UNREADABLE => Self::StackUnreadable,
            step::STACK_NOT_GROWING => Self::StackNotGrowing,
            step::REGISTER_UNKNOWN => Self::RegisterUnknown,
            step::PROCESS_UNKNOWN => Self::ProcessUnknown,
            step::COMPAT_PROCESS => Self::CompatProcess,
            step::NO_REGISTERS => Self::NoRegisters,
            step::TOO_DEEP => Self::TooDeep,
            step::FRAME_POINTER_BROKEN => Self::FramePointerBroken,
            step::STACK_CHANGED => Self::StackChanged,
            step::NOT_TAKEN => Self::NotTaken,
            step::NOT_SAMPLED => Self::NotSampled,
            _ => Self::Lost,
        }
    }

    /// Stable `snake_case` name used in the API and in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoUnwindInfo => "no_unwind_info",
            Self::NoMapping => "no_mapping",
            Self::TableMissing => "table_missing",
            Self::UnsupportedRule => "unsupported_rule",
            Self::StackUnreadable => "stack_unreadable",
            Self::StackNotGrowing => "stack_not_growing",
            Self::RegisterUnknown => "register_unknown",
            Self::ProcessUnknown => "process_unknown",
            Self::CompatProcess => "compat_process",
            Self::NoRegisters => "no_registers",
            Self::TooDeep => "too_deep",
            Self::FramePointerBroken => "frame_pointer_broken",
            Self::StackChanged => "stack_changed",
            Self::NotTaken => "not_taken",
            Self::NotSampled => "not_sampled",
            Self::Lost => "lost",
        }
    }

    /// A few words for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoUnwindInfo => "no unwind information",
            Self::NoMapping => "address in no mapping",
            Self::TableMissing => "unwind table not loaded",
            Self::UnsupportedRule => "unwind rule not supported",
            Self::StackUnreadable => "stack not readable",
            Self::StackNotGrowing => "caller below callee",
            Self::RegisterUnknown => "register not known",
            Self::ProcessUnknown => "process not known",
            Self::CompatProcess => "32-bit process",
            Self::NoRegisters => "registers not readable",
            Self::TooDeep => "too deep",
            Self::FramePointerBroken => "frame pointer broken",
            Self::StackChanged => "thread ran while it was read",
            Self::NotTaken => "not taken: wait longer than expected",
            Self::NotSampled => "not sampled: less than a period",
            Self::Lost => "frames lost",
        }
    }

    /// The frame that stands where the stack breaks off.
    pub fn marker(self) -> String {
        match self {
            Self::Lost => "[stack lost]".to_owned(),
            other => format!("[stack incomplete: {}]", other.meaning()),
        }
    }
}

/// The frame that stands for frames in the middle of a stack that were left out.
pub fn elided_marker(frames: u32) -> String {
    format!("[{frames} frames elided]")
}

/// What the unwinder's tables did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    /// Pages of rows that were decoded and given to the kernel.
    pub pages_loaded: u64,
    /// Pages that made room for others.
    pub pages_evicted: u64,
    /// Most blocks of rows, 1 KiB each, that the kernel held at once.
    pub blocks: u64,
    /// Frames that the kernel walked.
    pub frames: u64,
    /// Samples that the kernel could not walk and sent with registers and stack.
    pub captures: u64,
    /// Of these, the ones that the agent walked to their outermost frame.
    pub repaired: u64,
    /// Samples that were to be sent so and did not fit.
    pub captures_dropped: u64,
    /// Processes that got no place in the kernel's table of mappings.
    pub processes_left_out: u64,
    /// Stacks that were walked a second time by an independent unwinder (`--verify-unwinding`).
    pub compared: u64,
    /// Of these, the ones with the same frames.
    pub identical: u64,
}

impl TableCounts {
    /// Adds what `other` counted later or earlier.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            pages_loaded,
            pages_evicted,
            blocks,
            frames,
            captures,
            repaired,
            captures_dropped,
            processes_left_out,
            compared,
            identical,
        } = *other;
        self.blocks = self.blocks.max(blocks);
        for (slot, more) in [
            (&mut self.pages_loaded, pages_loaded),
            (&mut self.pages_evicted, pages_evicted),
            (&mut self.frames, frames),
            (&mut self.captures, captures),
            (&mut self.repaired, repaired),
            (&mut self.captures_dropped, captures_dropped),
            (&mut self.processes_left_out, processes_left_out),
            (&mut self.compared, compared),
            (&mut self.identical, identical),
        ] {
            *slot = slot.saturating_add(more);
        }
    }
}

/// Samples by what became of their user stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackQuality {
    /// The stack reached its outermost frame.
    pub complete: u64,
    /// Walked by frame pointers alone, where missing frames go unnoticed.
    pub unverified: u64,
    pub incomplete: BTreeMap<StackFault, u64>,
    pub tables: TableCounts,
}

impl StackQuality {
    /// Counts samples whose user stack is incomplete.
    pub fn add_incomplete(&mut self, fault: StackFault, count: u64) {
        let slot = self.incomplete.entry(fault).or_default();
        *slot = slot.saturating_add(count);
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            complete,
            unverified,
            incomplete,
            tables,
        } = other;
        self.complete = self.complete.saturating_add(*complete);
        self.unverified = self.unverified.saturating_add(*unverified);
        for (fault, count) in incomplete {
            self.add_incomplete(*fault, *count);
        }
        self.tables.merge(tables);
    }

    /// Samples with a user stack.
    pub fn samples(&self) -> u64 {
        self.incomplete.values().fold(
            self.complete.saturating_add(self.unverified),
            |sum, count| sum.saturating_add(*count),
        )
    }

    /// Reasons of incomplete stacks and how many have them, most first.
    pub fn incomplete_by_count(&self) -> Vec<(StackFault, u64)> {
        let reasons = self.incomplete.iter();
        let mut reasons: Vec<_> = reasons.map(|(fault, count)| (*fault, *count)).collect();
        reasons.sort_by_key(|(fault, count)| (std::cmp::Reverse(*count), *fault));
        reasons
    }

    /// One line for people; `None` without user stacks.
    pub fn line(&self) -> Option<String> {
        let samples = self.samples();
        if samples == 0 {
            return None;
        }
        let mut parts = Vec::new();
        if self.complete > 0 || self.unverified < samples {
            parts.push(format!("{} complete stacks", share(self.complete, samples)));
        }
        if self.unverified > 0 {
            parts.push(format!(
                "{} by frame pointers alone, completeness unknown",
                share(self.unverified, samples)
            ));
        }
        for (fault, count) in self.incomplete_by_count() {
            parts.push(format!("{} {}", share(count, samples), fault.meaning()));
        }
        Some(parts.join("; "))
    }
}

fn share(part: u64, whole: u64) -> String {
    let share = percent(part, whole);
    if part < whole && share > 99.9 {
        // Not everything, however near.
        return "99.9 %".to_owned();
    }
    format!("{share:.1} %")
}

#[cfg(test)]
mod tests {
    use profiler_common::unwind::step::OUTCOMES;

    use super::*;

    #[test]
    fn every_outcome_that_ends_a_stack_has_a_fault_of_its_own() {
        let faults: std::collections::BTreeSet<_> = (step::NO_MAPPING..OUTCOMES)
            .map(StackFault::of_outcome)
            .collect();
        assert_eq!(faults.len(), 15);
        assert!(!faults.contains(&StackFault::Lost));
        assert_eq!(StackFault::ALL.len(), 16);
    }

    #[test]
    fn the_line_names_the_largest_reason_first() {
        let mut quality = StackQuality::default();
        assert_eq!(quality.line(), None);
        quality.complete = 987;
        quality.add_incomplete(StackFault::NoMapping, 4);
        quality.add_incomplete(StackFault::NoUnwindInfo, 9);
        assert_eq!(
            quality.line().as_deref(),
            Some(
                "98.7 % complete stacks; 0.9 % no unwind information; 0.4 % address in no mapping"
            )
        );
    }

    #[test]
    fn a_share_is_never_rounded_up_to_all() {
        let mut quality = StackQuality {
            complete: 99_999,
            ..StackQuality::default()
        };
        quality.add_incomplete(StackFault::Lost, 1);
        let line = quality.line().expect("there are samples");
        assert!(line.starts_with("99.9 % complete"), "{line}");
    }

    #[test]
    fn merging_adds_everything() {
        let mut one = StackQuality {
            complete: 1,
            unverified: 2,
            ..StackQuality::default()
        };
        one.add_incomplete(StackFault::TooDeep, 3);
        one.tables.repaired = 4;
        one.tables.blocks = 5;
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!(sum.samples(), 12);
        assert_eq!(sum.tables.repaired, 8);
        assert_eq!(sum.tables.blocks, 5, "the most at once");
    }
}
