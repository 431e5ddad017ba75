//! Probes where a library hands out ciphertext, for sessions in memory: in which processes they are.
//!
//! Programs that give ciphertext to their sockets themselves need them. A process whose library uses the
//! socket by itself needs none, and is spared their price as soon as that has shown.

use std::collections::HashMap;

use profiler_common::tls::{PROCESS_MATCHED, PROCESS_NESTED, PROCESS_UNBOUND, PROCESS_WORDS};
use profiler_image::{module_file::FileKey, proc_dir::is_running};
use profiler_model::ProcessKey;
use profiler_tls_sites::{Finding, Library, TlsContent, TlsFunction, TlsMapping};

use super::tls_shared::SharedProbes;
use crate::bpf::{LoadError, LoadedObject, TlsLink, TlsProbe};

/// Calls that were bound by a socket's event, and none by ciphertext, after which a process is spared.
const ENOUGH_NESTED: u64 = 64;

/// The probes of one process.
#[derive(Debug, Default)]
pub(super) struct Ciphertext {
    /// By file; empty while probes are away.
    links: HashMap<FileKey, Vec<TlsLink>>,
    /// The process does without them; calls that were not bound until that showed.
    spared: Option<u64>,
}

impl Ciphertext {
    /// Looks at what the kernel side reports about the process.
    pub(super) fn judge(&mut self, words: &[u64; PROCESS_WORDS]) {
        let unbound = words[PROCESS_UNBOUND];
        if self.spared.is_some_and(|known| unbound > known) {
            self.spared = None;
        } else if self.spared.is_none()
            && words[PROCESS_NESTED] >= ENOUGH_NESTED
            && words[PROCESS_MATCHED] == 0
        {
            self.spared = Some(unbound);
            self.links.clear();
        }
    }

    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    /// The probes of one file have gone, or go.
    pub(super) fn forget(&mut self, key: &FileKey) {
        self.links.remove(key);
    }

    pub(super) fn has(&self, key: &FileKey) -> bool {
        self.links.contains_key(key)
    }

    /// The files of a process that are to have probes.
    pub(super) fn wanted<'a>(&self, files: &'a [TlsMapping]) -> Vec<&'a TlsMapping> {
        let is_openssl = |mapping: &TlsMapping| match &mapping.content.finding {
            Finding::Found(found) => found.library == Library::OpenSsl && found.has_plaintext(),
            Finding::None | Finding::Refused(_) => false,
        };
        if self.spared.is_some() || !files.iter().any(is_openssl) {
            return Vec::new();
        }
        let has_calls = |mapping: &&TlsMapping| match &mapping.content.finding {
            Finding::Found(found) => found.ciphertext().next().is_some(),
            Finding::None | Finding::Refused(_) => false,
        };
        files.iter().filter(has_calls).collect()
    }

    /// Puts probes into the files of a process that have none: those files, with what came of it.
    pub(super) fn attach(
        &mut self,
        object: &mut LoadedObject,
        key: ProcessKey,
        files: &[TlsMapping],
        shared: &SharedProbes,
    ) -> Vec<(FileKey, Result<(), LoadError>)> {
        let mut done = Vec::new();
        for mapping in self.wanted(files) {
            if self.has(&mapping.key) {
                continue;
            }
            let own = if shared.has(&mapping.key) {
                Vec::new()
            } else {
                probes(&mapping.content)
            };
            let (links, failure) = object.attach_tls(&own, &mapping.file, Some(key.pid));
            let result = failure.map_or(Ok(()), Err);
            let has_ended = result.is_err() && !is_running(key);
            self.links.insert(mapping.key, links);
            if !has_ended {
                done.push((mapping.key, result));
            }
        }
        done
    }
}

/// Where its library hands out ciphertext.
pub(super) fn probes(content: &TlsContent) -> Vec<TlsProbe> {
    let Finding::Found(found) = &content.finding else {
        return Vec::new();
    };
    let probe = |function: &TlsFunction| {
        let offset = content.offset(function.entry.site.address)?;
        TlsProbe::arguments(function.call, &function.entry, offset)
    };
    found.ciphertext().filter_map(probe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(nested: u64, matched: u64, unbound: u64) -> [u64; PROCESS_WORDS] {
        let mut words = [0; PROCESS_WORDS];
        words[PROCESS_NESTED] = nested;
        words[PROCESS_MATCHED] = matched;
        words[PROCESS_UNBOUND] = unbound;
        words
    }

    #[test]
    fn a_process_that_uses_sockets_is_spared_until_something_is_not_bound() {
        let mut ciphertext = Ciphertext::default();
        ciphertext.judge(&words(ENOUGH_NESTED - 1, 0, 3));
        assert_eq!(ciphertext.spared, None);
        ciphertext.judge(&words(ENOUGH_NESTED, 0, 3));
        assert_eq!(ciphertext.spared, Some(3));
        ciphertext.judge(&words(10 * ENOUGH_NESTED, 0, 3));
        assert_eq!(ciphertext.spared, Some(3));
        ciphertext.judge(&words(10 * ENOUGH_NESTED, 0, 4));
        assert_eq!(ciphertext.spared, None);
    }

    #[test]
    fn a_process_with_sessions_of_both_kinds_is_not_spared() {
        let mut ciphertext = Ciphertext::default();
        ciphertext.judge(&words(10 * ENOUGH_NESTED, 1, 0));
        assert_eq!(ciphertext.spared, None);
    }
}
