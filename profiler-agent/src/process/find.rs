//! Processes by name and containers by id.

use std::collections::HashMap;

use super::{containers::container_of, table::ProcessTable};

/// Fewest characters of a container prefix.
const PREFIX_DIGITS: usize = 12;
/// Longest `comm` of a process, in bytes.
const COMM_BYTES: usize = 15;

/// A container found by [`ProcessTable::find_container`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMatch {
    pub id: String,
    pub runtime: String,
    /// The container's cgroups in the container hierarchy (one, unless a runtime uses several).
    pub cgroups: Vec<String>,
    /// Its processes, ordered.
    pub pids: Vec<u32>,
}

/// Why no container was found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindContainerError {
    #[error("container id {prefix:?} must be at least {PREFIX_DIGITS} hexadecimal digits")]
    InvalidPrefix { prefix: String },
    #[error("no container matches {prefix:?}")]
    NotFound { prefix: String },
    #[error("container prefix {prefix:?} is ambiguous: {matches} containers match")]
    Ambiguous { prefix: String, matches: usize },
}

impl ProcessTable {
    /// Pids of the processes with this `comm`, ordered. Longer names are cut as the kernel does.
    pub fn pids_named(&self, comm: &str) -> Vec<u32> {
        let cut = comm.as_bytes().get(..COMM_BYTES).unwrap_or(comm.as_bytes());
        let entries = self.read_entries();
        let named = entries
            .values()
            .filter(|entry| entry.process.comm.as_bytes() == cut);
        let mut pids: Vec<u32> = named.map(|entry| entry.process.key.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// The container whose id is, or begins with, `prefix`.
    pub fn find_container(&self, prefix: &str) -> Result<ContainerMatch, FindContainerError> {
        let prefix = prefix.to_ascii_lowercase();
        let valid = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if prefix.len() < PREFIX_DIGITS || !prefix.bytes().all(valid) {
            return Err(FindContainerError::InvalidPrefix { prefix });
        }
        let mut found: HashMap<String, ContainerMatch> = HashMap::new();
        for process in self.snapshot() {
            let Some(seen) = container_of(&process.cgroup) else {
                continue;
            };
            if !seen.container.id.starts_with(&prefix) {
                continue;
            }
            let id = seen.container.id;
            let runtime = seen.container.runtime;
            let entry = found.entry(id.clone()).or_insert_with(|| ContainerMatch {
                id,
                runtime,
                cgroups: Vec::new(),
                pids: Vec::new(),
            });
            if !entry.cgroups.iter().any(|cgroup| cgroup == seen.cgroup) {
                entry.cgroups.push(seen.cgroup.to_owned());
            }
            entry.pids.push(process.key.pid);
        }
        if let Some(exact) = found.remove(&prefix) {
            return Ok(exact);
        }
        match found.len() {
            0 => Err(FindContainerError::NotFound { prefix }),
            1 => found
                .into_values()
                .next()
                .ok_or_else(|| FindContainerError::NotFound {
                    prefix: prefix.clone(),
                }),
            matches => Err(FindContainerError::Ambiguous { prefix, matches }),
        }
    }
}
