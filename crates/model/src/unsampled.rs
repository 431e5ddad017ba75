//! CPU time that a wall-clock profile measured and no sample fell into.

use super::{Clock, FrameSpace, Profile, SampleRow, ThreadId, ThreadState};

/// The frame of a stay on a CPU without a sample.
pub const UNSAMPLED_FRAME: &str = "[on CPU, not sampled]";

/// Which frames stand for CPU time without a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsampled {
    /// [`UNSAMPLED_FRAME`], in the time range in which the thread ran.
    AsMeasured,
    /// The frames of the same thread's samples, see [`Profile::share_out_unsampled`].
    SharedOut,
}

/// CPU time of a profile, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsampledTime {
    /// Of all threads.
    pub cpu_ns: u64,
    /// Between samples, given to the samples of the same thread.
    pub shared_ns: u64,
    /// Of threads without a sample; still under [`UNSAMPLED_FRAME`].
    pub left_ns: u64,
}

/// What is known of a thread's time on CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadTime {
    cpu_ns: u64,
    unsampled_ns: u64,
    samples: u64,
    /// Samples that have got their share, and the sum of it.
    done: u64,
    given_ns: u64,
}

impl ThreadTime {
    fn is_shared(&self) -> bool {
        self.unsampled_ns > 0 && self.samples > 0
    }

    /// The share of the next `samples`; all shares add up to the thread's CPU time.
    fn share(&mut self, samples: u64) -> u64 {
        self.done = self.done.saturating_add(samples);
        let until = u128::from(self.cpu_ns) * u128::from(self.done) / u128::from(self.samples);
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        let share = until.saturating_sub(self.given_ns);
        self.given_ns = until;
        share
    }
}

impl Profile {
    /// Which stacks are those of stays without a sample.
    fn unsampled_stacks(&self) -> Vec<bool> {
        let stands_for_it = |frame: &u32| {
            let frame = &self.frames[*frame as usize];
            let name = frame.functions.first();
            frame.space == FrameSpace::Marker
                && name.is_some_and(|function| self.text(function.name) == UNSAMPLED_FRAME)
        };
        let stacks = self.stacks.iter();
        stacks
            .map(|stack| stack.frames.iter().any(stands_for_it))
            .collect()
    }

    /// Leaves out the CPU time without a sample.
    pub fn drop_unsampled(&mut self) {
        let unsampled = self.unsampled_stacks();
        self.samples
            .retain(|row| row.state != ThreadState::OnCpu || !unsampled[row.stack as usize]);
    }

    /// Gives the CPU time without a sample to the samples of the same thread, in a profile that has
    /// passed [`Profile::check`]. Other profiles than wall-clock ones stay as they are.
    ///
    /// Where a thread has such time, each of its samples stands for an equal part of its CPU time,
    /// and no longer for the time measured around it: a tick hits every nanosecond on a CPU with the
    /// same chance, while the stays that it hits are the longer ones. The sum of a thread does not
    /// change. Threads without a sample keep [`UNSAMPLED_FRAME`].
    pub fn share_out_unsampled(&mut self) -> UnsampledTime {
        let mut time = UnsampledTime::default();
        if self.clock != Clock::Wall {
            return time;
        }
        let stacks = self.unsampled_stacks();
        let is_unsampled = |row: &SampleRow| stacks[row.stack as usize];
        let mut threads = vec![ThreadTime::default(); self.threads.len()];
        let of = |thread: ThreadId| thread as usize;
        let on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
        for row in self.samples.iter().filter(on_cpu) {
            let thread = &mut threads[of(row.thread)];
            thread.cpu_ns = thread.cpu_ns.saturating_add(row.total_ns);
            if is_unsampled(row) {
                thread.unsampled_ns = thread.unsampled_ns.saturating_add(row.total_ns);
            } else {
                thread.samples = thread.samples.saturating_add(row.count);
            }
        }
        for thread in &threads {
            time.cpu_ns = time.cpu_ns.saturating_add(thread.cpu_ns);
            let sum = if thread.is_shared() {
                &mut time.shared_ns
            } else {
                &mut time.left_ns
            };
            *sum = sum.saturating_add(thread.unsampled_ns);
        }
        self.samples.retain_mut(|row| {
            let thread = &mut threads[of(row.thread)];
            if row.state != ThreadState::OnCpu || !thread.is_shared() {
                return true;
            }
            // The rest of a stay after its last sample may be a row of its own, without a sample.
            if is_unsampled(row) || row.count == 0 {
                return false;
            }
            row.total_ns = thread.share(row.count);
            true
        });
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessKey, ProfileBuilder, ProfileProcess, ProfileThread};

    const MS: u64 = 1_000_000;

    /// Rows of thread, frame, number and milliseconds.
    fn profile(clock: Clock, rows: &[(u32, &str, u64, u64)]) -> Profile {
        let mut builder = ProfileBuilder::new(0, 20 * MS, clock);
        for (bucket, (tid, name, count, ms)) in (0..).zip(rows) {
            let process = builder.process(ProfileProcess {
                key: ProcessKey {
                    pid: 7,
                    start_ticks: 1,
                },
                comm: 0,
                exe: 0,
                container: 0,
            });
            let thread = builder.thread(ProfileThread {
                process,
                tid: *tid,
                name: 0,
            });
            let frame = builder.marker(name);
            let stack = builder.stack(vec![frame]);
            builder.sample(SampleRow {
                thread,
                stack,
                cpu: 0,
                bucket,
                state: if *name == "[blocked]" {
                    ThreadState::Interruptible
                } else {
                    ThreadState::OnCpu
                },
                waker: None,
                count: *count,
                total_ns: ms * MS,
            });
        }
        builder.finish()
    }

    /// Milliseconds by thread and frame.
    fn sums(profile: &Profile) -> Vec<(u32, &str, u64)> {
        let row = |row: &SampleRow| {
            let frame = profile.stacks[row.stack as usize].frames[0];
            let name = profile.frames[frame as usize].functions[0].name;
            let tid = profile.threads[row.thread as usize].tid;
            (tid, profile.text(name), row.total_ns / MS)
        };
        profile.samples.iter().map(row).collect()
    }

    #[test]
    fn samples_share_the_cpu_time_of_their_thread_by_their_number() {
        // As much in long stays as in short ones, which are hardly ever sampled.
        let mut profile = profile(
            Clock::Wall,
            &[
                (1, "long", 50, 500),
                (1, "short", 50, 5),
                (1, UNSAMPLED_FRAME, 4950, 495),
                (1, "[blocked]", 10, 70),
                (2, "steady", 3, 31),
                (3, UNSAMPLED_FRAME, 8, 9),
            ],
        );
        let before = profile.total_ns();
        let time = profile.share_out_unsampled();
        assert_eq!(
            sums(&profile),
            [
                (1, "long", 500),
                (1, "short", 500),
                (1, "[blocked]", 70),
                (2, "steady", 31),
                (3, UNSAMPLED_FRAME, 9),
            ]
        );
        assert_eq!(profile.total_ns(), before);
        let expected = UnsampledTime {
            cpu_ns: 1040 * MS,
            shared_ns: 495 * MS,
            left_ns: 9 * MS,
        };
        assert_eq!(time, expected);
    }

    #[test]
    fn shares_add_up_to_the_nanosecond() {
        let mut profile = profile(
            Clock::Wall,
            &[
                (1, "a", 1, 1),
                (1, "b", 1, 1),
                (1, "a", 0, 3),
                (1, "c", 1, 1),
                (1, UNSAMPLED_FRAME, 5, 4),
            ],
        );
        let before = profile.total_ns();
        profile.share_out_unsampled();
        assert_eq!(sums(&profile), [(1, "a", 3), (1, "b", 3), (1, "c", 3)]);
        assert_eq!(profile.total_ns(), before);
    }

    #[test]
    fn time_of_other_clocks_stays_where_it_is() {
        let rows = [(1, "a", 1, 10), (1, UNSAMPLED_FRAME, 1, 10)];
        let mut profile = profile(Clock::CpuClock, &rows);
        let before = profile.clone();
        assert_eq!(profile.share_out_unsampled(), UnsampledTime::default());
        assert_eq!(profile, before);
    }
}
