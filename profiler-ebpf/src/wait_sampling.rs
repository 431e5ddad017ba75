//! Which waits are counted, and with what weight.
//!
//! Every wait counts for itself, or each thread is sampled twice over: its waits, about one in
//! [`SAMPLED_WAITS`], and its off-CPU time, about once in [`SAMPLED_PERIOD_NS`]. The distances are
//! random, so that no rhythm of the program is in step with them, and a sample stands for the distance
//! since the sample before it. So the sums are exact but for what is left of the last distance, which
//! is counted without a stack at the end, and every stack gets its share on average.
//!
//! Whether a wait will be sampled is not known when its stack can be taken. It is taken when the wait
//! may be: when the thread's longest recent wait, twice, would reach the next sample.

use aya_ebpf::{helpers::bpf_get_prandom_u32, macros::map, maps::Array};
use profiler_common::{
    counter,
    limits::{SAMPLED_PERIOD_NS, SAMPLED_WAITS},
    off_cpu::{HOW_SAMPLED, HOW_TAKEN, MODE_SAMPLED, Wait, WaitValue},
};

use crate::{
    config::config,
    counters::{count, count_many},
};

/// `MODE_*`; the agent changes it when there are too many waits to count every one.
#[map]
static WAIT_MODE: Array<u32> = Array::with_max_entries(1, 0);

/// How the wait that begins is measured: `HOW_*`.
#[inline(always)]
pub(crate) fn begin(wait: &mut Wait) -> u32 {
    if WAIT_MODE.get(0).copied().unwrap_or(0) != MODE_SAMPLED {
        return HOW_TAKEN;
    }
    if wait.gap_ns == 0 {
        wait.gap_ns = random_period();
        wait.left_ns = wait.gap_ns;
        wait.gap = random_number();
        wait.left = wait.gap;
        // Nothing is known of the thread: its first waits are taken.
        wait.longest_ns = SAMPLED_PERIOD_NS;
    }
    if wait.left <= 1 || wait.longest_ns * 2 >= wait.left_ns {
        HOW_SAMPLED | HOW_TAKEN
    } else {
        HOW_SAMPLED
    }
}

/// What a wait counts for that was ready at `ready_ns` and ends at `ended_ns`; none when it is left
/// out or not sampled.
#[inline(always)]
pub(crate) fn weigh(wait: &mut Wait, ready_ns: u64, ended_ns: u64) -> Option<WaitValue> {
    let length_ns = ended_ns.saturating_sub(wait.began_ns);
    let blocked_ns = ready_ns.saturating_sub(wait.began_ns).min(length_ns);
    if length_ns < config!(min_wait_ns) {
        count(counter::WAITS_BELOW);
        count_many(counter::WAITS_BELOW_NS, length_ns);
        return None;
    }
    if length_ns > config!(max_wait_ns) {
        count(counter::WAITS_ABOVE);
        count_many(counter::WAITS_ABOVE_NS, length_ns);
        return None;
    }
    if wait.how & HOW_SAMPLED == 0 {
        return Some(WaitValue {
            count: 1,
            blocked_ns,
            runnable_ns: length_ns - blocked_ns,
        });
    }
    let decayed = wait.longest_ns - wait.longest_ns / 8;
    wait.longest_ns = if length_ns > decayed {
        length_ns
    } else {
        decayed
    };
    let count = pass_one(wait);
    let weight_ns = pass(wait, length_ns);
    if count == 0 && weight_ns == 0 {
        return None;
    }
    let blocked_ns = share(weight_ns, blocked_ns, length_ns);
    Some(WaitValue {
        count,
        blocked_ns,
        runnable_ns: weight_ns - blocked_ns,
    })
}

/// Goes one wait on; the distance since the last sample when this one is sampled, else 0.
#[inline(always)]
fn pass_one(wait: &mut Wait) -> u64 {
    if wait.left > 1 {
        wait.left -= 1;
        return 0;
    }
    let gap = u64::from(wait.gap);
    wait.gap = random_number();
    wait.left = wait.gap;
    gap
}

/// Goes on by the length of a wait; the distance that its samples stand for.
#[inline(always)]
fn pass(wait: &mut Wait, length_ns: u64) -> u64 {
    if length_ns < wait.left_ns {
        wait.left_ns -= length_ns;
        return 0;
    }
    let rest = length_ns - wait.left_ns;
    // Whole periods in between have a sample each, wherever it is.
    let whole = rest / SAMPLED_PERIOD_NS * SAMPLED_PERIOD_NS;
    let mut rest = rest - whole;
    let mut weight = wait.gap_ns + whole;
    let mut gap = random_period();
    if rest >= gap {
        // What remains is less than half a period, and so than any distance.
        weight += gap;
        rest -= gap;
        gap = random_period();
    }
    wait.gap_ns = gap;
    wait.left_ns = gap - rest;
    weight
}

/// The part of `weight` that is as large as `part` is of `whole`.
#[inline(always)]
fn share(weight: u64, part: u64, whole: u64) -> u64 {
    if part >= whole {
        return weight;
    }
    // In 2^16ths: neither product overflows for waits below a day.
    let fraction = (part << 16).checked_div(whole).unwrap_or(0);
    let shared = ((weight >> 8) * fraction) >> 8;
    if shared > weight { weight } else { shared }
}

/// What is left of a thread when its sampling ends: waits and time since its last samples.
#[inline(always)]
pub(crate) fn rest(wait: &Wait) -> WaitValue {
    WaitValue {
        count: u64::from(wait.gap - wait.left),
        blocked_ns: wait.gap_ns - wait.left_ns,
        runnable_ns: 0,
    }
}

/// From half a period to one and a half.
#[inline(always)]
fn random_period() -> u64 {
    SAMPLED_PERIOD_NS / 2 + ((random() * SAMPLED_PERIOD_NS) >> 32)
}

/// From 1 on, so that the mean is [`SAMPLED_WAITS`].
#[inline(always)]
fn random_number() -> u32 {
    1 + ((random() * u64::from(2 * SAMPLED_WAITS - 1)) >> 32) as u32
}

#[inline(always)]
fn random() -> u64 {
    // SAFETY: a helper without arguments.
    u64::from(unsafe { bpf_get_prandom_u32() })
}
