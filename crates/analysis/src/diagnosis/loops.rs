//! What a diagnosis reports about event loops: the stalls of a task, each with the stack that held its
//! thread, from samples where they explain it and from waits where those do.

use profiler_model::{
    EventLoop, EventLoopTable, Hold, Profile, Stall,
    diagnosis::{EventLoopReport, LoopLengths, LoopStall, LoopThread},
};

use crate::render::event_loop::explained;

/// Stalls that are listed.
const MAX_STALLS: usize = 200;

/// Joins what a table has of these processes, of all when none is given, with what was recorded
/// meanwhile; `None` where nothing was watched.
pub fn event_loops(
    table: Option<EventLoopTable>,
    pids: &[u32],
    on_cpu: Option<&Profile>,
    off_cpu: Option<&Profile>,
) -> Option<EventLoopReport> {
    let mut table = table?;
    table.keep(pids);
    let by_samples = on_cpu.map(|profile| explained(table.clone(), profile, MAX_STALLS));
    let by_waits = off_cpu.map(|profile| explained(table.clone(), profile, MAX_STALLS));
    let stalls = match (by_samples, by_waits) {
        (Some(samples), Some(waits)) => better(samples, waits),
        (Some(one), None) | (None, Some(one)) => one.stalls,
        (None, None) => return None,
    };
    Some(EventLoopReport {
        threshold_ms: table.threshold_ms.into(),
        threads: table.threads.into_iter().map(thread).collect(),
        stalls: stalls.into_iter().map(listed).collect(),
        lost: table.lost,
    })
}

/// Of two explanations of the same stalls the one that knows more.
fn better(samples: EventLoop, waits: EventLoop) -> Vec<Stall> {
    let pairs = samples.stalls.into_iter().zip(waits.stalls);
    pairs
        .map(|(sampled, waited)| match (sampled.hold, waited.hold) {
            (Hold::Unknown, Hold::OnCpu | Hold::OffCpu) => waited,
            (Hold::Unknown, Hold::Unknown) if sampled.samples == 0 => waited,
            (Hold::OnCpu | Hold::OffCpu | Hold::Unknown, _) => sampled,
        })
        .collect()
}

fn thread(found: profiler_model::LoopThread) -> LoopThread {
    let profiler_model::LoopThread {
        pid: _,
        tid,
        name,
        turns,
        turns_ns: _,
        half_ns,
        most_ns,
        longest_ns,
        stalls,
        stalls_ns,
    } = found;
    LoopThread {
        tid,
        name,
        loops: turns,
        loop_ns: match (half_ns, most_ns, longest_ns) {
            (Some(p50), Some(p99), Some(max)) => Some(LoopLengths { p50, p99, max }),
            // None is over yet.
            _ => None,
        },
        stalls,
        stalled_ns: stalls_ns,
    }
}

fn listed(stall: Stall) -> LoopStall {
    let Stall {
        turn,
        hold: _,
        stack,
        samples,
    } = stall;
    LoopStall {
        tid: turn.tid,
        name: turn.name,
        start_ns: turn.start_ns,
        duration_ns: turn.duration_ns,
        stack,
        samples,
    }
}
