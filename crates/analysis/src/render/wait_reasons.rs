//! What each stack of a profile waits for.

use std::collections::BTreeMap;

use profiler_model::{Frame, FrameSpace, Profile, SampleRow, ThreadState, WaitReason};

use super::wakers::WOKEN_BY;

/// Reasons by the number of the stack.
#[derive(Debug)]
pub struct WaitReasons {
    of_stack: Vec<WaitReason>,
}

impl WaitReasons {
    pub fn of(profile: &Profile) -> Self {
        let of_stack = profile
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack.frames.iter().map(|id| &profile.frames[*id as usize]);
                // What a waker does is not a reason to wait.
                let waker = frames.clone().rposition(|frame| is_waker(profile, frame));
                let names = frames
                    .skip(waker.map_or(0, |waker| waker + 1))
                    .filter(|frame| frame.space == FrameSpace::Kernel)
                    .flat_map(|frame| &frame.functions)
                    .map(|function| profile.text(function.name));
                WaitReason::of(names)
            })
            .collect();
        Self { of_stack }
    }

    pub fn of_row(&self, row: &SampleRow) -> WaitReason {
        if row.state == ThreadState::Preempted {
            return WaitReason::Preempted;
        }
        self.of_stack
            .get(row.stack as usize)
            .copied()
            .unwrap_or(WaitReason::Other)
    }
}

/// Whether a frame divides a waker's stack from that of the wait.
fn is_waker(profile: &Profile, frame: &Frame) -> bool {
    let functions = frame.functions.first();
    frame.space == FrameSpace::Marker
        && functions.is_some_and(|function| profile.text(function.name).starts_with(WOKEN_BY))
}

/// Counts and nanoseconds by kind, most time first.
#[derive(Debug, PartialEq, Eq)]
pub struct WaitSums {
    pub states: Vec<(ThreadState, (u64, u64))>,
    pub reasons: Vec<(WaitReason, (u64, u64))>,
}

/// Adds up the samples of a profile by state, and those of waits by reason.
pub fn sums(profile: &Profile) -> WaitSums {
    let of_stack = WaitReasons::of(profile);
    let mut states = BTreeMap::new();
    let mut reasons = BTreeMap::new();
    let add = |(count, ns): &mut (u64, u64), row: &SampleRow| {
        *count = count.saturating_add(row.count);
        *ns = ns.saturating_add(row.total_ns);
    };
    for row in &profile.samples {
        add(states.entry(row.state).or_default(), row);
        if row.state != ThreadState::OnCpu {
            add(reasons.entry(of_stack.of_row(row)).or_default(), row);
        }
    }
    WaitSums {
        states: most_time_first(states),
        reasons: most_time_first(reasons),
    }
}

fn most_time_first<K>(sums: BTreeMap<K, (u64, u64)>) -> Vec<(K, (u64, u64))> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    sums
}
