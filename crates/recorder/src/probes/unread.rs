//! Files and processes that a task left unread, because they are served remotely or did not answer, and perf maps that
//! it did not believe.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use profiler_image::module_file::Refusal;
use profiler_model::ProcessKey;
use profiler_symbolize::ProcessRead;

/// Files that are counted for themselves.
const LIMIT: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Unread {
    remote: HashSet<Arc<str>>,
    silent: HashSet<Arc<str>>,
    processes: HashSet<ProcessKey>,
    /// Processes whose perf map is not believed.
    old_maps: BTreeSet<u32>,
    /// How many were said.
    said: usize,
}

impl Unread {
    pub(super) fn add(&mut self, process: ProcessKey, read: &ProcessRead) {
        if read.is_silent && self.processes.len() < LIMIT {
            self.processes.insert(process);
        }
        for (path, refusal) in &read.unread {
            let files = match refusal {
                Refusal::Remote => &mut self.remote,
                Refusal::NoAnswer => &mut self.silent,
                Refusal::NotFound
                | Refusal::NotRegular
                | Refusal::TooLarge
                | Refusal::Replaced
                | Refusal::ForeignOwner
                | Refusal::Old
                | Refusal::NoOpenat2
                | Refusal::NotElf
                | Refusal::Panicked
                | Refusal::OverBudget => continue,
            };
            if files.len() < LIMIT {
                files.insert(Arc::clone(path));
            }
        }
    }

    /// Notes that the perf map of a process is older than the process.
    pub(super) fn old_perf_map(&mut self, process: ProcessKey) {
        if self.old_maps.len() < LIMIT {
            self.old_maps.insert(process.pid);
        }
    }

    /// What there is to say, when there is more than was said before.
    pub(super) fn notes(&mut self) -> Vec<String> {
        let (remote, silent) = (self.remote.len(), self.silent.len());
        let processes = self.processes.len();
        let old_maps = self.old_maps.len();
        let all = remote + silent + processes + old_maps;
        if std::mem::replace(&mut self.said, all) == all {
            return Vec::new();
        }
        let remote = (remote > 0).then(|| {
            format!(
                "{remote} modules were left unread, because others serve their file systems (NFS, FUSE and the like) and may \
                 not answer; their frames have addresses in place of names: --remote-files read reads them"
            )
        });
        let silent = (silent > 0).then(|| {
            format!(
                "{silent} modules were left unread, because their file systems did not answer; their frames have addresses \
                 in place of names"
            )
        });
        let processes = (processes > 0).then(|| {
            format!("{processes} processes did not answer and were left unread; their frames have no names")
        });
        let old_maps = self.old_maps.first().map(|first| {
            let more = match old_maps - 1 {
                0 => String::new(),
                more => format!(" and those of {more} more processes"),
            };
            format!(
                "the perf map of process {first}{more} was last written before the process started, so it is another's, or \
                 the clock has been set since; its names are not used: they are when the runtime writes it again"
            )
        });
        [remote, silent, processes, old_maps]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, Refusal)], is_silent: bool) -> ProcessRead {
        let unread = files
            .iter()
            .map(|(path, refusal)| (Arc::from(*path), *refusal));
        ProcessRead {
            code: None,
            unread: unread.collect(),
            is_silent,
        }
    }

    #[test]
    fn files_are_counted_once_and_said_when_there_are_more() {
        let process = |pid| ProcessKey {
            pid,
            start_ticks: 1,
        };
        let mut unread = Unread::default();
        assert_eq!(unread.notes(), Vec::<String>::new());
        unread.add(process(1), &read(&[("/a", Refusal::NotFound)], false));
        assert_eq!(unread.notes(), Vec::<String>::new());
        let two = read(
            &[("/far/a", Refusal::Remote), ("/far/b", Refusal::Remote)],
            false,
        );
        unread.add(process(1), &two);
        unread.add(process(2), &two);
        let notes = unread.notes();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("2 modules were left unread, because others"));
        assert!(
            notes[0].ends_with("--remote-files read reads them"),
            "{notes:?}"
        );
        unread.add(process(2), &two);
        assert_eq!(unread.notes(), Vec::<String>::new());
        unread.add(process(3), &read(&[("/slow", Refusal::NoAnswer)], true));
        let notes = unread.notes();
        assert_eq!(notes.len(), 3);
        assert!(notes[1].starts_with("1 modules"), "{notes:?}");
        assert!(notes[2].starts_with("1 processes"), "{notes:?}");
        unread.old_perf_map(process(9));
        unread.old_perf_map(process(9));
        let notes = unread.notes();
        assert!(
            notes[3].starts_with("the perf map of process 9 was last written before"),
            "{notes:?}"
        );
        unread.old_perf_map(process(10));
        let notes = unread.notes();
        assert!(
            notes[3].starts_with("the perf map of process 9 and those of 1 more"),
            "{notes:?}"
        );
    }
}
