//! Event loops of a task.

use profiler_model as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Threads in one answer.
const MAX_THREADS: usize = 1000;

/// What is asked for of event loops.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct LoopRules {
    /// Turns from this length on are stalls.
    #[schema(minimum = 1, maximum = 60000)]
    threshold_ms: u32,
}

impl From<LoopRules> for model::LoopRules {
    fn from(rules: LoopRules) -> Self {
        let LoopRules { threshold_ms } = rules;
        Self { threshold_ms }
    }
}

impl From<model::LoopRules> for LoopRules {
    fn from(rules: model::LoopRules) -> Self {
        let model::LoopRules { threshold_ms } = rules;
        Self { threshold_ms }
    }
}

/// How long threads stay away from epoll. A turn of a loop lasts from a return from epoll, with
/// events or because its time was over, until the thread's next call.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct EventLoop {
    /// Turns from this length on are stalls.
    threshold_ms: u32,
    /// The threads with most time in stalls, then in turns; at most 1000.
    threads: Vec<EventLoopThread>,
    /// All of them.
    thread_count: usize,
    /// The longest; at most 200.
    stalls: Vec<EventLoopStall>,
    /// All of them.
    stall_count: u64,
    /// What is missing: stalls that are counted and not listed, ended threads, turns that were not
    /// counted. The task's losses say which.
    lost: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EventLoopThread {
    pid: u32,
    tid: u32,
    name: String,
    /// Turns that are over.
    loops: u64,
    /// Time of these, in nanoseconds.
    busy_ns: u64,
    loop_ns: LoopTimes,
    /// Stalls, also those that are not over.
    stalls: u64,
    stalled_ns: u64,
}

/// Lengths of turns in nanoseconds; null without turns.
#[derive(Debug, Serialize, ToSchema)]
struct LoopTimes {
    /// At most a quarter too long, as the next: bounds of the buckets that turns are counted in.
    #[schema(required)]
    p50: Option<u64>,
    #[schema(required)]
    p99: Option<u64>,
    /// Exact.
    #[schema(required)]
    max: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EventLoopStall {
    pid: u32,
    tid: u32,
    /// Of the thread.
    name: String,
    start_ns: u64,
    duration_ns: u64,
    /// The thread did not come back before its end, or has not by now or by the task's end.
    open: bool,
    /// `on_cpu`: it ran for most of the time that is known; `off_cpu`: it waited, for a CPU or
    /// something else; `unknown`: what the task records explains less than half of the stall.
    kind: &'static str,
    /// Where most of the recorded time was spent, from the leaf on; empty when nothing was recorded.
    stack: Vec<String>,
    /// Samples or waits in the stall that the stack was chosen from.
    samples: u64,
}

impl From<model::EventLoop> for EventLoop {
    fn from(found: model::EventLoop) -> Self {
        let model::EventLoop {
            threshold_ms,
            mut threads,
            stalls,
            stall_count,
            lost,
        } = found;
        let thread_count = threads.len();
        threads.sort_by_key(|thread| std::cmp::Reverse((thread.stalls_ns, thread.turns_ns)));
        threads.truncate(MAX_THREADS);
        Self {
            threshold_ms,
            threads: threads.into_iter().map(EventLoopThread::from).collect(),
            thread_count,
            stalls: stalls.into_iter().map(EventLoopStall::from).collect(),
            stall_count,
            lost,
        }
    }
}

impl From<model::LoopThread> for EventLoopThread {
    fn from(thread: model::LoopThread) -> Self {
        let model::LoopThread {
            pid,
            tid,
            name,
            turns,
            turns_ns,
            half_ns,
            most_ns,
            longest_ns,
            stalls,
            stalls_ns,
        } = thread;
        Self {
            pid,
            tid,
            name,
            loops: turns,
            busy_ns: turns_ns,
            loop_ns: LoopTimes {
                p50: half_ns,
                p99: most_ns,
                max: longest_ns,
            },
            stalls,
            stalled_ns: stalls_ns,
        }
    }
}

impl From<model::Stall> for EventLoopStall {
    fn from(stall: model::Stall) -> Self {
        let model::Stall {
            turn,
            hold,
            stack,
            samples,
        } = stall;
        let model::LoopTurn {
            pid,
            tid,
            name,
            start_ns,
            duration_ns,
            open,
        } = turn;
        Self {
            pid,
            tid,
            name,
            start_ns,
            duration_ns,
            open,
            kind: hold.name(),
            stack,
            samples,
        }
    }
}
