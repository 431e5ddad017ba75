//! Shared board that probes write their state to and the API reads from.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use profiler_model::{LossKind, Losses};
use profiler_recording::{ProbeState, ProbeStatus, ProbeStatusSource, ProgramStats};

use crate::bpf::{Group, LOOPS, LoadedObject, MULTI, ProgramReport, WORK, is_of};

/// See the module. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ProbeStatuses {
    inner: Arc<Mutex<Board>>,
}

#[derive(Debug, Default)]
struct Board {
    probes: BTreeMap<String, ProbeStatus>,
    losses: Losses,
    /// Totals of finished collections.
    finished: BTreeMap<String, ProgramStats>,
    /// Latest reading of each running collection.
    running: BTreeMap<u64, Vec<ProgramStats>>,
    /// Collections that have begun.
    begun: u64,
}

/// What the programs of a collection have run so far. When it is dropped, that is added to the totals.
#[derive(Debug)]
pub(super) struct ProgramRuns {
    statuses: ProbeStatuses,
    collection: u64,
    is_counted: bool,
}

impl ProgramRuns {
    /// Reads the programs of the collection's object.
    pub(super) fn publish(&self, object: &LoadedObject) {
        let statistics = program_stats(object, self.is_counted);
        self.statuses
            .with(|board| board.running.insert(self.collection, statistics));
    }
}

impl Drop for ProgramRuns {
    fn drop(&mut self) {
        self.statuses.with(|board| {
            for statistics in board.running.remove(&self.collection).unwrap_or_default() {
                add(&mut board.finished, &statistics);
            }
        });
    }
}

impl ProbeStatuses {
    fn with<T>(&self, use_board: impl FnOnce(&mut Board) -> T) -> T {
        use_board(&mut self.inner.lock())
    }

    pub fn set(&self, status: ProbeStatus) {
        self.with(|board| board.probes.insert(status.name.clone(), status));
    }

    /// Writes down what is there before anything has used it, or that it must not be used.
    pub(super) fn announce(&self, name: &str, minimum_kernel: &str, denied: &[String]) {
        let is_denied = denied.iter().any(|denied| denied == name);
        self.set(ProbeStatus {
            name: name.to_owned(),
            state: if is_denied {
                ProbeState::Denied
            } else {
                ProbeState::Available
            },
            reason: is_denied.then(|| format!("{name} is denied by --deny-probe")),
            minimum_kernel: minimum_kernel.to_owned(),
        });
    }

    /// Names of the probes, in the alphabet's order.
    pub fn names(&self) -> Vec<String> {
        self.with(|board| board.probes.keys().cloned().collect())
    }

    /// Those of `denied` that no probe has. `bpf_loop`, `uprobe_multi` and `work` can be denied as well, and so can the programs of
    /// TLS, which a task says itself.
    pub fn unknown(&self, denied: &[String]) -> Vec<String> {
        self.with(|board| {
            let is_known = |name: &String| {
                board.probes.contains_key(name)
                    || [LOOPS, MULTI, WORK].contains(&name.as_str())
                    || is_of(Group::Tls, name)
                    || is_of(Group::KernelNames, name)
            };
            let unknown = denied.iter().filter(|name| !is_known(name));
            unknown.cloned().collect()
        })
    }

    /// Counts a loss that belongs to no task.
    pub fn lost(&self, kind: LossKind, count: u64) {
        self.with(|board| board.losses.add(kind, count));
    }

    /// For a collection that begins. `is_counted`: the kernel counts runs and times of programs.
    pub(super) fn program_runs(&self, is_counted: bool) -> ProgramRuns {
        ProgramRuns {
            statuses: self.clone(),
            collection: self.with(|board| {
                board.begun += 1;
                board.begun
            }),
            is_counted,
        }
    }
}

impl ProbeStatusSource for ProbeStatuses {
    fn probes(&self) -> Vec<ProbeStatus> {
        self.with(|board| board.probes.values().cloned().collect())
    }

    fn programs(&self) -> Vec<ProgramStats> {
        self.with(|board| {
            let mut sums = board.finished.clone();
            for statistics in board.running.values().flatten() {
                add(&mut sums, statistics);
            }
            sums.into_values().collect()
        })
    }

    fn losses(&self) -> Losses {
        self.with(|board| board.losses.clone())
    }
}

fn add(sums: &mut BTreeMap<String, ProgramStats>, statistics: &ProgramStats) {
    let sum = sums
        .entry(statistics.name.clone())
        .or_insert_with(|| ProgramStats {
            name: statistics.name.clone(),
            run_count: None,
            run_time_ns: None,
            verified_instructions: None,
        });
    let plus = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0) + right.unwrap_or(0)),
    };
    sum.run_count = plus(sum.run_count, statistics.run_count);
    sum.run_time_ns = plus(sum.run_time_ns, statistics.run_time_ns);
    sum.verified_instructions = statistics
        .verified_instructions
        .or(sum.verified_instructions);
}

/// What the programs of an object have run; times and numbers of runs where the kernel counts them.
fn program_stats(object: &LoadedObject, is_counted: bool) -> Vec<ProgramStats> {
    let stats = |program: ProgramReport| ProgramStats {
        name: program.name,
        run_count: is_counted.then_some(program.run_count),
        run_time_ns: is_counted
            .then(|| u64::try_from(program.run_time.as_nanos()).unwrap_or(u64::MAX)),
        verified_instructions: program.verified_instructions.map(u64::from),
    };
    object.programs().into_iter().map(stats).collect()
}
