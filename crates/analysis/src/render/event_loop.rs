//! What held threads that stayed away from epoll for long: stalls joined with samples and waits.
//!
//! A stall lies between two moments, samples and waits in buckets of time. What is counted in a
//! bucket that a stall covers in part counts in part, but a wait that is longer than a bucket: where
//! it ended says whether it can have been inside.

use std::collections::HashMap;

use profiler_model::{
    EventLoop, EventLoopTable, Frame, FrameId, FrameSpace, Hold, LoopTurn, Profile, SampleRow,
    StackId, Stall, ThreadState,
};

use super::names;

/// Functions of the kernel between which no thread is in a turn.
const EPOLL: [&str; 5] = [
    "ep_poll",
    "do_epoll_wait",
    "_sys_epoll_wait",
    "_sys_epoll_pwait",
    "_sys_epoll_pwait2",
];

/// A span of time, nanoseconds after the profile's origin.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

/// What was recorded of a thread in a stall.
#[derive(Debug, Default)]
struct Seen {
    ran: HashMap<StackId, Amount>,
    waited: HashMap<StackId, Amount>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    ns: u64,
    count: u64,
}

/// Joins the `most` longest stalls of a table with the profile of the same task.
pub fn explained(table: EventLoopTable, profile: &Profile, most: usize) -> EventLoop {
    let EventLoopTable {
        threshold_ms,
        threads,
        mut stalls,
        stall_count,
        lost,
    } = table;
    stalls.truncate(most);
    let seen = seen(profile, &stalls);
    let stalls = stalls.into_iter().zip(seen);
    EventLoop {
        threshold_ms,
        threads,
        stalls: stalls
            .map(|(turn, seen)| stall(profile, turn, &seen))
            .collect(),
        stall_count,
        lost,
    }
}

/// What was recorded in each of the stalls.
fn seen(profile: &Profile, stalls: &[LoopTurn]) -> Vec<Seen> {
    let mut by_thread: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (index, turn) in stalls.iter().enumerate() {
        by_thread
            .entry((turn.pid, turn.tid))
            .or_default()
            .push(index);
    }
    let spans: Vec<Span> = stalls
        .iter()
        .map(|turn| {
            let from_ns = turn.start_ns.saturating_sub(profile.origin_ns);
            Span {
                from_ns,
                to_ns: from_ns.saturating_add(turn.duration_ns),
            }
        })
        .collect();
    let of_thread: Vec<Option<&Vec<usize>>> = profile
        .threads
        .iter()
        .map(|thread| {
            let pid = profile.processes.get(thread.process as usize)?.key.pid;
            by_thread.get(&(pid, thread.tid))
        })
        .collect();
    let in_epoll: Vec<bool> = profile
        .stacks
        .iter()
        .map(|stack| is_in_epoll(profile, &stack.frames))
        .collect();
    let mut seen: Vec<Seen> = stalls.iter().map(|_| Seen::default()).collect();
    for row in &profile.samples {
        let Some(Some(indexes)) = of_thread.get(row.thread as usize) else {
            continue;
        };
        if in_epoll.get(row.stack as usize).copied().unwrap_or(true) {
            continue;
        }
        for index in *indexes {
            let (Some(span), Some(seen)) = (spans.get(*index), seen.get_mut(*index)) else {
                continue;
            };
            if let Some(amount) = part_inside(row, *span, profile.bucket_ns) {
                let stacks = match row.state {
                    ThreadState::OnCpu => &mut seen.ran,
                    ThreadState::Preempted
                    | ThreadState::Interruptible
                    | ThreadState::Uninterruptible
                    | ThreadState::Io
                    | ThreadState::Stopped
                    | ThreadState::Woken => &mut seen.waited,
                };
                let sum = stacks.entry(row.stack).or_default();
                sum.ns = sum.ns.saturating_add(amount.ns);
                sum.count = sum.count.saturating_add(amount.count);
            }
        }
    }
    seen
}

fn is_in_epoll(profile: &Profile, frames: &[FrameId]) -> bool {
    // A mark of what the thread waited for stands before the leaf.
    let kernel = frames
        .iter()
        .filter_map(|id| profile.frames.get(*id as usize))
        .skip_while(|frame| frame.space == FrameSpace::Marker)
        .take_while(|frame| frame.space == FrameSpace::Kernel);
    kernel.flat_map(|frame| &frame.functions).any(|function| {
        let name = profile.text(function.name);
        EPOLL.iter().any(|epoll| name.ends_with(epoll))
    })
}

/// How much of a row lies in a span; none when nothing can.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a part of a 64-bit number is one"
)]
fn part_inside(row: &SampleRow, span: Span, bucket_ns: u64) -> Option<Amount> {
    let from_ns = u64::from(row.bucket).saturating_mul(bucket_ns);
    let to_ns = from_ns.saturating_add(bucket_ns);
    // What was counted in the bucket happened, or ended, in this part of the span.
    let first = from_ns.max(span.from_ns);
    let last = to_ns.min(span.to_ns);
    if first >= last {
        return None;
    }
    let length_ns = row.total_ns / row.count.max(1);
    if row.state != ThreadState::OnCpu && length_ns >= bucket_ns {
        let begins_inside = last >= span.from_ns.saturating_add(length_ns);
        return begins_inside.then_some(Amount {
            ns: row.total_ns,
            count: row.count,
        });
    }
    let inside = u128::from(last - first);
    let whole = u128::from(bucket_ns.max(1));
    Some(Amount {
        ns: (u128::from(row.total_ns) * inside / whole) as u64,
        // One that may have been inside counts.
        count: (u128::from(row.count) * inside).div_ceil(whole) as u64,
    })
}

fn stall(profile: &Profile, turn: LoopTurn, seen: &Seen) -> Stall {
    let sum = |stacks: &HashMap<StackId, Amount>| -> u64 {
        stacks
            .values()
            .fold(0, |sum, amount| sum.saturating_add(amount.ns))
    };
    let (ran_ns, waited_ns) = (sum(&seen.ran), sum(&seen.waited));
    let known_ns = ran_ns.saturating_add(waited_ns);
    let hold = if known_ns.saturating_mul(2) < turn.duration_ns {
        Hold::Unknown
    } else if ran_ns >= waited_ns {
        Hold::OnCpu
    } else {
        Hold::OffCpu
    };
    let of_kind = match hold {
        Hold::OnCpu => Some(&seen.ran),
        Hold::OffCpu => Some(&seen.waited),
        Hold::Unknown => None,
    };
    let is_code = |stack: &StackId| has_code(profile, *stack);
    // A mark in place of a stack says less than any stack.
    let mut stacks = match of_kind {
        Some(stacks) if stacks.keys().any(is_code) => stacks.clone(),
        _ => all(seen),
    };
    if stacks.keys().any(is_code) {
        stacks.retain(|stack, _| is_code(stack));
    }
    Stall {
        hold,
        samples: stacks.values().map(|amount| amount.count).sum(),
        stack: heaviest(profile, &stacks).map_or_else(Vec::new, |id| texts(profile, id)),
        turn,
    }
}

/// Both kinds of time.
fn all(seen: &Seen) -> HashMap<StackId, Amount> {
    let mut all = seen.ran.clone();
    for (stack, amount) in &seen.waited {
        let sum = all.entry(*stack).or_default();
        sum.ns = sum.ns.saturating_add(amount.ns);
        sum.count = sum.count.saturating_add(amount.count);
    }
    all
}

/// Whether anything of a stack is more than a mark.
fn has_code(profile: &Profile, stack: StackId) -> bool {
    let frames = profile.stacks.get(stack as usize).into_iter();
    frames
        .flat_map(|stack| &stack.frames)
        .filter_map(|id| profile.frames.get(*id as usize))
        .any(|frame| frame.space != FrameSpace::Marker)
}

/// A stack that follows, from the root on, the frame that most of the time was spent under.
fn heaviest(profile: &Profile, stacks: &HashMap<StackId, Amount>) -> Option<StackId> {
    let frames = |id: StackId| -> &[FrameId] {
        profile
            .stacks
            .get(id as usize)
            .map_or(&[], |stack| &stack.frames)
    };
    let mut left: Vec<(StackId, u64)> = stacks
        .iter()
        .map(|(id, amount)| (*id, amount.ns))
        .filter(|(_, ns)| *ns > 0)
        .collect();
    // The same among equals whatever the order of the table.
    left.sort_unstable();
    let mut depth = 0;
    while left.len() > 1 {
        let at = |id: StackId| frames(id).iter().rev().nth(depth).copied();
        let mut sums: Vec<(Option<FrameId>, u64)> = Vec::new();
        for (id, ns) in &left {
            let frame = at(*id);
            match sums.iter_mut().find(|(known, _)| *known == frame) {
                Some((_, sum)) => *sum = sum.saturating_add(*ns),
                None => sums.push((frame, *ns)),
            }
        }
        let (chosen, _) = sums
            .into_iter()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        left.retain(|(id, _)| at(*id) == chosen);
        if chosen.is_none() {
            break; // they end here, and so are the same
        }
        depth += 1;
    }
    left.first().map(|(id, _)| *id)
}

/// The functions of a stack from the leaf on.
fn texts(profile: &Profile, stack: StackId) -> Vec<String> {
    let frames = profile.stacks.get(stack as usize).into_iter();
    frames
        .flat_map(|stack| &stack.frames)
        .filter_map(|id| profile.frames.get(*id as usize))
        .flat_map(|frame: &Frame| names::functions_of(profile, frame))
        .collect()
}

#[cfg(test)]
#[path = "event_loop_tests.rs"]
mod tests;
