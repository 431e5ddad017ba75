//! Keeps the kernel's table of connections in order: entries that rest leave it when it is nearly
//! full, and those whose end was missed are ended.

use std::collections::HashSet;

use profiler_common::network::{Connection, FLAG_COMPLETE, FLAG_GONE};

use super::{Session, monotonic_ns};
use crate::{
    bpf::{LoadError, LoadedObject},
    model::KernelTable,
    network::Directory,
};

/// Time between two looks for connections whose end was missed.
const SWEEP_NS: u64 = 20_000_000_000;

impl Session {
    /// Connections in the kernel's table, without those that have ended.
    pub(super) fn entries(&mut self, last: bool) -> Result<Vec<Connection>, LoadError> {
        let mut entries = self.object.connections()?;
        let mut forgotten = Vec::new();
        entries.retain(|entry| {
            if entry.flags & FLAG_GONE != 0 {
                forgotten.push(*entry);
            }
            entry.flags & (FLAG_GONE | FLAG_COMPLETE) == FLAG_COMPLETE
        });
        for entry in forgotten {
            self.object.forget_connection(entry.cookie)?;
            let whole = self.resting.end(&entry);
            self.finished.push(whole);
        }
        // At the end as well: what rests may have ended without anybody's notice.
        if last || monotonic_ns().saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.sweep(&mut entries)?;
        }
        Ok(entries)
    }

    /// What is to be said about the table, of which so many entries are in use.
    pub(super) fn kernel_table(&mut self, used: usize, refused: u64) -> KernelTable {
        KernelTable {
            capacity: u64::from(self.capacity),
            used: used as u64,
            refused,
            evicted: self.resting.evicted,
            swept: self.resting.swept,
            missed_runs: self.object.missed_runs(),
        }
    }

    /// Ends the connections whose end was missed; takes them out of `entries`.
    fn sweep(&mut self, entries: &mut Vec<Connection>) -> Result<(), LoadError> {
        let listed_ns = monotonic_ns();
        let before = std::mem::take(&mut self.directory);
        self.directory = Directory::read(&self.table, &self.wanted, self.beside, before);
        self.directory_read_ns = listed_ns;
        self.swept_ns = listed_ns;
        let directory = &self.directory;
        let listed: HashSet<u64> = directory
            .sockets()
            .map(|(socket, _owner)| socket.cookie)
            .collect();
        let is_known = |namespace| directory.listeners().knows(namespace);
        let gone = self
            .resting
            .gone(entries.iter(), &listed, listed_ns, is_known);
        for entry in entries.extract_if(.., |entry| gone.contains(&entry.cookie)) {
            self.object.forget_connection(entry.cookie)?;
            self.finished
                .extend(self.resting.sweep(entry.cookie, Some(&entry)));
        }
        for cookie in gone {
            self.finished.extend(self.resting.sweep(cookie, None));
        }
        Ok(())
    }

    /// Takes connections that rest out of a table that is nearly full.
    pub(super) fn make_room(&mut self, table: &HashSet<u64>) -> Result<(), LoadError> {
        if !self.can_evict {
            return Ok(());
        }
        if self.resting.has_marked() {
            LoadedObject::let_programs_end();
        }
        let object = &mut self.object;
        self.resting
            .make(table, |cookie, action| object.evict(cookie, action))?;
        // Their counts are in the ring buffer until then.
        self.read();
        Ok(())
    }
}
