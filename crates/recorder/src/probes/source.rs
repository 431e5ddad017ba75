//! What a session counts: ticks of a clock, waits of threads, or all that threads do.

use std::time::Instant;

use profiler_common::{
    contention::ContentionKey,
    off_cpu::{
        HOW_TAKEN, WAIT_INTERRUPTIBLE, WAIT_IO, WAIT_PREEMPTED, WAIT_STOPPED, Wait, WaitValue,
    },
    on_cpu::CountKey,
    stack::{NOT_SAMPLED as REST, NOT_TAKEN},
    wakers::Waker,
    wall::{NOT_SAMPLED, Slice, SliceValue},
};
use profiler_model::{Clock, SampleKind, ThreadState, WaitCounts, WaitRules};

use crate::bpf::{LoadError, LoadedObject, Measured, Sampler, Sampling, Switches};

/// A counter of the kernel side, or one part of a counter of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) key: CountKey,
    pub(super) state: ThreadState,
    pub(super) count: u64,
    pub(super) total_ns: u64,
    /// The waker, where known.
    pub(super) waker: Option<Waker>,
}

/// Time in which a thread waited for a CPU and somebody else had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) key: ContentionKey,
    pub(super) ns: u64,
}

/// What is attached.
#[derive(Debug)]
pub(super) enum Source {
    Ticks(Sampling),
    Switches(Switches),
    Wall {
        sampling: Sampling,
        switches: Switches,
    },
}

impl Source {
    /// Attaches what a task of this kind needs. Nothing is counted before the object's origin is
    /// set.
    pub(super) fn start(
        object: &mut LoadedObject,
        kind: SampleKind,
        frequency_hz: u32,
    ) -> Result<Self, LoadError> {
        Ok(match kind {
            SampleKind::OnCpu => Self::Ticks(object.sample(Sampler::OnCpu, frequency_hz)?),
            SampleKind::OffCpu => Self::Switches(object.attach_switches(Measured::Waits)?),
            SampleKind::Wall => Self::Wall {
                switches: object.attach_switches(Measured::WaitsAndSlices)?,
                sampling: object.sample(Sampler::Wall, frequency_hz)?,
            },
        })
    }

    pub(super) fn clock(&self) -> Clock {
        match self {
            Self::Ticks(sampling) => sampling.clock(),
            Self::Switches(_) => Clock::Switches,
            Self::Wall { .. } => Clock::Wall,
        }
    }

    /// The rate of the clock; none for waits.
    pub(super) fn frequency_hz(&self) -> Option<u32> {
        match self {
            Self::Ticks(sampling) | Self::Wall { sampling, .. } => Some(sampling.frequency_hz()),
            Self::Switches(_) => None,
        }
    }

    /// Empties the table of one epoch, which the kernel has left.
    pub(super) fn drain(
        &self,
        object: &LoadedObject,
        epoch: u64,
        counted: &mut Vec<Counted>,
        held: &mut Vec<Held>,
    ) -> Result<(), LoadError> {
        match self {
            Self::Ticks(sampling) => {
                let period_ns = sampling.period_ns();
                object.drain_counts(epoch, |key, count| {
                    counted.push(Counted {
                        key,
                        state: ThreadState::OnCpu,
                        count,
                        total_ns: count.saturating_mul(period_ns),
                        waker: None,
                    });
                })?;
            }
            Self::Switches(_) => drain_waits(object, epoch, counted)?,
            Self::Wall { .. } => {
                drain_waits(object, epoch, counted)?;
                object.drain_slices(epoch, |key, value| counted.push(slice(key, value)))?;
            }
        }
        if self.measures_waits() {
            object.drain_contention(epoch, |key, ns| held.push(Held { key, ns }))?;
        }
        Ok(())
    }

    pub(super) fn follow_cpus(&mut self, object: &mut LoadedObject) -> Result<(), LoadError> {
        match self {
            Self::Ticks(sampling) | Self::Wall { sampling, .. } => object.follow_cpus(sampling),
            Self::Switches(_) => Ok(()),
        }
    }

    /// Varies the clock.
    pub(super) fn vary(&mut self, now: Instant) {
        match self {
            Self::Ticks(sampling) | Self::Wall { sampling, .. } => sampling.vary(now),
            Self::Switches(_) => {}
        }
    }

    /// Nothing more is counted from here on.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Ticks(sampling) => sampling.stop(),
            Self::Switches(switches) => switches.detach(),
            Self::Wall { sampling, switches } => {
                sampling.stop();
                switches.detach();
            }
        }
    }

    /// Samples at another rate from now on; where ticks are counted they must have been stopped,
    /// since counts of two rates do not mix.
    pub(super) fn change_rate(
        &mut self,
        object: &mut LoadedObject,
        frequency_hz: u32,
    ) -> Result<(), LoadError> {
        match self {
            Self::Ticks(sampling) => *sampling = object.sample(Sampler::OnCpu, frequency_hz)?,
            Self::Switches(_) => {}
            Self::Wall { sampling, .. } => {
                sampling.stop();
                *sampling = object.sample(Sampler::Wall, frequency_hz)?;
            }
        }
        Ok(())
    }

    /// Whether the object keeps threads that sleep.
    pub(super) fn measures_waits(&self) -> bool {
        match self {
            Self::Ticks(_) => false,
            Self::Switches(_) | Self::Wall { .. } => true,
        }
    }
}

fn drain_waits(
    object: &LoadedObject,
    epoch: u64,
    counted: &mut Vec<Counted>,
) -> Result<(), LoadError> {
    object.drain_waits(epoch, |key, value| counted.extend(parts(key, value, None)))?;
    if object.knows_wakers() {
        object.drain_woken(epoch, |key, value| {
            counted.extend(parts(key.wait, value, Some(key.waker)));
        })?;
    }
    Ok(())
}

/// Time on the CPU of threads with one stack, or without a sample.
fn slice(key: CountKey, value: SliceValue) -> Counted {
    Counted {
        key,
        state: ThreadState::OnCpu,
        count: value.count,
        total_ns: value.ns,
        waker: None,
    }
}

/// The time of threads that still run at `now_ns`; `slices` are those of the CPUs in their order.
pub(super) fn still_running(slices: &[Slice], now_ns: u64, bucket: u32) -> Vec<Counted> {
    (0..)
        .zip(slices)
        .filter(|(_cpu, slice)| slice.wanted == 1 && slice.counted_ns != 0)
        .map(|(cpu, running)| {
            let Slice {
                counted_ns,
                kernel_stack,
                user_stack,
                global_tid: _,
                pid,
                tid,
                generation,
                wanted: _,
                kind,
                busy: _,
                padding: _,
            } = *running;
            let key = CountKey {
                pid,
                tid,
                cpu,
                bucket,
                generation,
                wait: kind,
                kernel_stack,
                user_stack,
            };
            let value = SliceValue {
                count: u64::from(kind == NOT_SAMPLED),
                ns: now_ns.saturating_sub(counted_ns),
            };
            slice(key, value)
        })
        .collect()
}

/// The parts of waits: until the wake-up, with their number, and from then on.
/// The waker has to do with the first alone.
fn parts(key: CountKey, value: WaitValue, waker: Option<Waker>) -> impl Iterator<Item = Counted> {
    let WaitValue {
        count,
        blocked_ns,
        runnable_ns,
    } = value;
    let first = match key.wait {
        WAIT_PREEMPTED => ThreadState::Preempted,
        WAIT_INTERRUPTIBLE => ThreadState::Interruptible,
        WAIT_IO => ThreadState::Io,
        WAIT_STOPPED => ThreadState::Stopped,
        _ => ThreadState::Uninterruptible,
    };
    let part = |state, count, total_ns| Counted {
        key,
        state,
        count,
        total_ns,
        waker: None,
    };
    let whole = (first == ThreadState::Preempted)
        .then(|| part(first, count, blocked_ns.saturating_add(runnable_ns)));
    let blocked = whole.is_none().then(|| Counted {
        waker,
        ..part(first, count, blocked_ns)
    });
    let woken =
        (whole.is_none() && runnable_ns > 0).then(|| part(ThreadState::Woken, 0, runnable_ns));
    whole.into_iter().chain(blocked).chain(woken)
}

/// The waits that have not ended at `now_ns`, up to then; counted in `bucket`. Each counts for
/// itself, also where others are sampled.
pub(super) fn unfinished(
    waits: &[Wait],
    now_ns: u64,
    bucket: u32,
    rules: &WaitRules,
    counts: &mut WaitCounts,
) -> Vec<Counted> {
    let mut counted = Vec::new();
    for wait in waits.iter().filter(|wait| wait.began_ns != 0) {
        let ready_ns = match (wait.wait, wait.woken_ns) {
            (WAIT_PREEMPTED, _) => wait.began_ns,
            (_, 0) => now_ns,
            (_, woken_ns) => woken_ns,
        };
        if counts.leave_out(rules, now_ns.saturating_sub(wait.began_ns)) {
            continue;
        }
        let user_stack = if wait.how & HOW_TAKEN == 0 {
            NOT_TAKEN
        } else {
            wait.user_stack
        };
        let key = CountKey {
            user_stack,
            ..key_of(wait, bucket)
        };
        counted.extend(parts(
            key,
            WaitValue {
                count: 1,
                blocked_ns: ready_ns.saturating_sub(wait.began_ns),
                runnable_ns: now_ns.saturating_sub(ready_ns),
            },
            None,
        ));
    }
    counted
}

/// What threads have waited since their last samples; counted in `bucket`, without a stack.
pub(super) fn not_sampled(waits: &[Wait], bucket: u32) -> Vec<Counted> {
    waits
        .iter()
        .filter(|wait| wait.gap != wait.left || wait.gap_ns != wait.left_ns)
        .flat_map(|wait| {
            let key = CountKey {
                kernel_stack: 0,
                user_stack: REST,
                ..key_of(wait, bucket)
            };
            parts(
                key,
                WaitValue {
                    count: u64::from(wait.gap.saturating_sub(wait.left)),
                    blocked_ns: wait.gap_ns.saturating_sub(wait.left_ns),
                    runnable_ns: 0,
                },
                None,
            )
        })
        .collect()
}

fn key_of(wait: &Wait, bucket: u32) -> CountKey {
    CountKey {
        pid: wait.pid,
        tid: wait.tid,
        cpu: wait.cpu,
        bucket,
        generation: wait.generation,
        wait: wait.wait,
        kernel_stack: wait.kernel_stack,
        user_stack: wait.user_stack,
    }
}

#[cfg(test)]
mod tests {
    use profiler_common::off_cpu::{WAIT_NONE, WAIT_UNINTERRUPTIBLE};

    use super::*;

    fn wait(kind: u32, began_ns: u64, woken_ns: u64) -> Wait {
        Wait {
            began_ns,
            woken_ns,
            wait: kind,
            ..Wait::default()
        }
    }

    fn check(wait: Wait, expected: &[(ThreadState, u64, u64)]) {
        let counted: Vec<_> = unfinished(
            &[wait],
            1000,
            0,
            &WaitRules::default(),
            &mut WaitCounts::default(),
        )
        .iter()
        .map(|counted| (counted.state, counted.count, counted.total_ns))
        .collect();
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_wait_is_split_at_its_wake_up() {
        check(
            wait(WAIT_INTERRUPTIBLE, 100, 700),
            &[
                (ThreadState::Interruptible, 1, 600),
                (ThreadState::Woken, 0, 300),
            ],
        );
    }

    #[test]
    fn a_wait_that_nobody_ended_lasts_until_the_end() {
        check(
            wait(WAIT_UNINTERRUPTIBLE, 100, 0),
            &[(ThreadState::Uninterruptible, 1, 900)],
        );
    }

    #[test]
    fn a_preempted_thread_waits_for_a_cpu_all_the_time() {
        check(
            wait(WAIT_PREEMPTED, 100, 0),
            &[(ThreadState::Preempted, 1, 900)],
        );
    }

    #[test]
    fn threads_on_a_cpu_are_counted_to_the_end() {
        let slice = |wanted, counted_ns, kind| Slice {
            wanted,
            counted_ns,
            kind,
            ..Slice::default()
        };
        let running = [
            slice(0, 100, NOT_SAMPLED),
            slice(1, 300, NOT_SAMPLED),
            slice(1, 600, WAIT_NONE),
            slice(1, 0, WAIT_NONE),
        ];
        let counted: Vec<_> = still_running(&running, 1000, 0)
            .iter()
            .map(|counted| (counted.key.cpu, counted.count, counted.total_ns))
            .collect();
        assert_eq!(counted, [(1, 1, 700), (2, 0, 400)]);
    }

    #[test]
    fn running_threads_do_not_wait() {
        check(wait(WAIT_IO, 0, 0), &[]);
    }
}
