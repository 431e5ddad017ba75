//! Probes of files that many processes of a task run: put in once, for every process.
//!
//! A probe for one process is a filter of its own that each hit of its place passes, in whichever process (`handler_chain`
//! in kernel/events/uprobes.c), and takes a tenth of a second to go. The programs leave alone who is no target.

use std::collections::HashMap;

use profiler_image::module_file::FileKey;

use crate::bpf::{LoadError, LoadedObject, TlsLink, TlsProbe};

/// From this many processes of a task on. With fewer, others that run the file are spared its breakpoints.
pub(super) const MANY: usize = 16;

/// Which calls of a library probes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Plaintext,
    /// Where it hands out ciphertext, for sessions in memory.
    Ciphertext,
}

/// Both kinds.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) plaintext: SharedProbes,
    pub(super) ciphertext: SharedProbes,
}

impl Shared {
    pub(super) fn of(&mut self, half: Half) -> &mut SharedProbes {
        match half {
            Half::Plaintext => &mut self.plaintext,
            Half::Ciphertext => &mut self.ciphertext,
        }
    }

    pub(super) fn clear(&mut self) {
        self.plaintext.links.clear();
        self.ciphertext.links.clear();
    }
}

/// Probes of files, for every process that runs them.
#[derive(Debug, Default)]
pub(super) struct SharedProbes {
    links: HashMap<FileKey, Vec<TlsLink>>,
    /// Files that the kernel has refused them for.
    refused: Vec<FileKey>,
}

impl SharedProbes {
    pub(super) fn has(&self, key: &FileKey) -> bool {
        self.links.contains_key(key)
    }

    /// Files that many processes run, of the files of each, and that have no such probes yet.
    pub(super) fn due<'a>(&self, files: impl Iterator<Item = &'a FileKey>) -> Vec<FileKey> {
        // Different libraries are few.
        let mut runs: Vec<(FileKey, usize)> = Vec::new();
        for key in files {
            match runs.iter_mut().find(|(known, _)| known == key) {
                Some((_, processes)) => *processes += 1,
                None => runs.push((*key, 1)),
            }
        }
        let is_due = |key: &FileKey| !self.has(key) && !self.refused.contains(key);
        runs.retain(|(key, processes)| *processes >= MANY && is_due(key));
        runs.into_iter().map(|(key, _)| key).collect()
    }

    /// Puts all probes of a file in, or none.
    pub(super) fn attach(
        &mut self,
        object: &mut LoadedObject,
        key: FileKey,
        file: &std::fs::File,
        probes: &[TlsProbe],
    ) -> Result<(), LoadError> {
        let (links, failure) = object.attach_tls(probes, file, None);
        match failure {
            None => {
                self.links.insert(key, links);
                Ok(())
            }
            Some(error) => {
                self.refused.push(key);
                Err(error)
            }
        }
    }

    /// Takes away those of files that no process runs any more.
    pub(super) fn keep(&mut self, runs: impl Fn(&FileKey) -> bool) {
        self.links.retain(|key, _| runs(key));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use profiler_image::module_file::ModuleFile;

    use super::*;

    fn key(path: &str) -> FileKey {
        let file = File::open(path).unwrap();
        ModuleFile::of_memory(file).unwrap().key
    }

    #[test]
    fn files_of_many_processes_are_due_once() {
        let mut shared = SharedProbes::default();
        let (one, other) = (key("/proc/self/exe"), key("/"));
        let files = |many| -> Vec<FileKey> {
            let all = std::iter::repeat_n(one, many);
            all.chain([other]).collect()
        };
        assert_eq!(shared.due(files(MANY - 1).iter()), []);
        assert_eq!(shared.due(files(MANY).iter()), [one]);
        shared.refused.push(one);
        assert_eq!(shared.due(files(MANY).iter()), []);
        shared.refused.clear();
        shared.links.insert(one, Vec::new());
        assert_eq!(shared.due(files(MANY).iter()), []);
        shared.keep(|key| *key == other);
        assert!(!shared.has(&one));
    }
}
