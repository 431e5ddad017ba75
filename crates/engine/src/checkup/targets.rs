//! The processes of a check-up's target, as they are found again and again while it runs.

use std::{collections::BTreeSet, sync::Arc};

use profiler_host::process::{ProcessTable, is_below};
use profiler_model::{Process, Target};

/// Processes that are read; with more of them those that use the CPU most.
const MOST: usize = 256;

/// A target, and the processes that were named by it so far.
#[derive(Debug)]
pub(crate) struct Targets {
    target: Target,
    /// Of a target of pids: these and the children that were seen.
    family: BTreeSet<u32>,
    /// More processes were found than are read.
    pub(crate) is_cut: bool,
}

impl Targets {
    pub(crate) fn new(target: Target) -> Self {
        let family = match &target {
            Target::Pids(pids) => pids.iter().copied().collect(),
            Target::Container(_)
            | Target::Pod(_)
            | Target::Cgroup(_)
            | Target::Comm(_)
            | Target::All
            | Target::NetworkNamespace(_) => BTreeSet::new(),
        };
        Self {
            target,
            family,
            is_cut: false,
        }
    }

    /// The processes that belong to the target now. Reads /proc; blocks.
    pub(crate) fn find(&mut self, table: &ProcessTable) -> Vec<Arc<Process>> {
        table.refresh();
        let mut found = self.among(&table.snapshot(), table);
        if found.len() > MOST {
            self.is_cut = true;
            let share = |process: &Process| process.cpu_percent.unwrap_or(0.0);
            found.sort_by(|a, b| share(b).total_cmp(&share(a)));
            found.truncate(MOST);
        }
        found
    }

    fn among(&mut self, all: &[Arc<Process>], table: &ProcessTable) -> Vec<Arc<Process>> {
        let programs = all.iter().filter(|process| !process.kernel_thread);
        let chosen = |is_chosen: &dyn Fn(&Process) -> bool| {
            programs
                .clone()
                .filter(|process| is_chosen(process))
                .map(Arc::clone)
                .collect()
        };
        match &self.target {
            Target::All => chosen(&|_| true),
            Target::Pids(_) => {
                // Children come after their parents, but for pids that were used again.
                for process in all {
                    if self.family.contains(&process.parent_pid) {
                        self.family.insert(process.key.pid);
                    }
                }
                chosen(&|process| self.family.contains(&process.key.pid))
            }
            Target::Comm(name) => {
                let named: BTreeSet<u32> = table.pids_named(name).into_iter().collect();
                chosen(&|process| named.contains(&process.key.pid))
            }
            Target::Container(id) => {
                let found = table.find_container(id).map(|found| found.pids);
                let pids: BTreeSet<u32> = found.unwrap_or_default().into_iter().collect();
                chosen(&|process| pids.contains(&process.key.pid))
            }
            Target::Pod(selector) => {
                let found = table.find_pods(selector).unwrap_or_default();
                chosen(&|process| found.pids.contains(&process.key.pid))
            }
            Target::Cgroup(path) => chosen(&|process| is_below(&process.cgroup, path)),
            // No task samples those.
            Target::NetworkNamespace(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_is_found_by_its_pid() {
        let pid = std::process::id();
        let table = ProcessTable::new();
        let found = Targets::new(Target::Pids(vec![pid])).find(&table);
        assert!(found.iter().any(|process| process.key.pid == pid));
        assert!(found.iter().all(|process| !process.kernel_thread));
        assert!(
            Targets::new(Target::Pids(vec![4_194_305]))
                .find(&table)
                .is_empty()
        );
    }

    #[test]
    fn children_of_the_named_processes_belong_to_them() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let found = Targets::new(Target::Pids(vec![std::process::id()])).find(&ProcessTable::new());
        let is_found = found.iter().any(|process| process.key.pid == child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_found);
    }
}
