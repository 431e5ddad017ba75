//! Who had the CPU while threads waited for one: the kernel's numbers of processes become processes.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use profiler_common::contention::{ContentionKey, HOLDER_IDLE, HOLDER_OUTSIDE, Runs};
use profiler_model::{ContentionRow, CpuHolder, ProcessKey, ThreadState};

use super::{
    assembler::SampleAssembler,
    source::{Counted, Held},
};

/// Processes that end within it keep a number without a name.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Who had the CPU for which threads still wait at `now_ns`, of waits that have not ended: the CPU that they left, where
/// the scheduler most often leaves them.
pub(super) fn still_held(unfinished: &[Counted], runs: &[Runs], now_ns: u64) -> Vec<Held> {
    let mut held = Vec::new();
    for Counted {
        key,
        state,
        total_ns,
        ..
    } in unfinished
    {
        let waits_for_cpu = matches!(state, ThreadState::Preempted | ThreadState::Woken);
        let Some(runs) = runs.get(key.cpu as usize).filter(|_| waits_for_cpu) else {
            continue;
        };
        runs.between(now_ns.saturating_sub(*total_ns), now_ns, |holder, ns| {
            let key = ContentionKey {
                pid: key.pid,
                tid: key.tid,
                generation: key.generation,
                holder,
                cpu: key.cpu,
                bucket: key.bucket,
            };
            held.push(Held { key, ns });
        });
    }
    held
}

impl SampleAssembler {
    /// Adds what one drain brought. A process that has ended and is not in the table any more has a number and no
    /// name.
    pub(super) fn add_contention(&mut self, held: &[Held]) {
        self.look_for(held);
        // A few processes have the CPU again and again.
        let mut holders = HashMap::new();
        for Held { key, ns } in held {
            let image = self.image_of((key.pid, key.tid, key.generation));
            let thread = self.thread_id(key.tid, &image);
            let holder = *holders.entry(key.holder).or_insert_with(|| {
                let holder = self.holder(key.holder);
                self.builder.holder(holder)
            });
            self.earliest_bucket = self.earliest_bucket.min(key.bucket);
            self.builder.wait_for_cpu(ContentionRow {
                thread,
                holder,
                bucket: key.bucket,
                ns: *ns,
            });
        }
    }

    /// Looks at the processes of the machine again where some are not known.
    fn look_for(&mut self, held: &[Held]) {
        let is_unknown = |held: &Held| {
            !matches!(held.key.holder, HOLDER_IDLE | HOLDER_OUTSIDE)
                && self.table.get(held.key.holder).is_none()
        };
        let may_look = self
            .looked_at
            .is_none_or(|looked_at| looked_at.elapsed() >= LOOK_AGAIN);
        if may_look && held.iter().any(is_unknown) {
            self.table.refresh();
            self.looked_at = Some(Instant::now());
        }
    }

    fn holder(&mut self, pid: u32) -> CpuHolder {
        match pid {
            HOLDER_IDLE => CpuHolder::Idle,
            HOLDER_OUTSIDE => CpuHolder::OutOfSight,
            pid => {
                let known = self.table.get(pid);
                let key = known.as_ref().map_or(
                    ProcessKey {
                        pid,
                        start_ticks: 0,
                    },
                    |known| known.key,
                );
                let names = known.as_ref().and_then(|known| self.table.names_of(known));
                let container_name = names.map_or_else(String::new, |names| names.title());
                CpuHolder::Process {
                    process: self.process(key, known.as_deref()),
                    container_name: self.builder.string(&container_name),
                }
            }
        }
    }
}
