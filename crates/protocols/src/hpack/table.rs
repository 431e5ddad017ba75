//! The dynamic table of one direction, also of a connection that was joined late.
//!
//! Indices count from the newest entry (RFC 7541, section 2.3.3), so entries that were inserted during
//! the observation are found whatever stands behind them. Nothing wrong can come of a size that is not
//! known: eviction takes the oldest entries and never moves newer ones, an entry that is larger than
//! the table empties it and is then behind nothing, and an encoder refers to nothing that is gone. So
//! the table keeps what may be gone, and reports a lookup of an entry that it never saw.

use std::collections::VecDeque;

/// What an entry costs beside its text (section 4.1).
const ENTRY_BYTES: usize = 32;
/// Size before any update (RFC 9113, section 6.5.2).
const FIRST_BYTES: usize = 4096;
/// Most that is kept, whatever the peers agreed on.
const KEPT_BYTES: usize = 64 << 10;

/// An entry; `None`: a part of it was in the table before the observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
}

impl Entry {
    /// Its size, or the least that it can have.
    fn size(&self) -> usize {
        let length = |text: &Option<Vec<u8>>| text.as_ref().map_or(0, Vec::len);
        ENTRY_BYTES + length(&self.name) + length(&self.value)
    }
}

/// What an index stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup<'a> {
    Found(&'a Entry),
    /// It was inserted before the observation.
    Unknown,
    /// No encoder sends this.
    Invalid,
}

#[derive(Debug)]
pub(super) struct DynamicTable {
    /// The newest first.
    entries: VecDeque<Entry>,
    /// Sum of their sizes.
    bytes: usize,
    /// Size that the encoder uses; `None`: unknown.
    limit: Option<usize>,
    /// Older entries may be there that were never seen.
    has_unseen: bool,
}

impl DynamicTable {
    /// The table of a connection that begins.
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            limit: Some(FIRST_BYTES),
            has_unseen: false,
        }
    }

    /// The table of a connection that has been there.
    pub(super) fn joined() -> Self {
        Self {
            limit: None,
            has_unseen: true,
            ..Self::new()
        }
    }

    /// The entry of an index, zero being the newest.
    pub(super) fn get(&self, index: usize) -> Lookup<'_> {
        match self.entries.get(index) {
            Some(entry) => Lookup::Found(entry),
            None if self.has_unseen => Lookup::Unknown,
            None => Lookup::Invalid,
        }
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.entries.push_front(entry);
        self.evict();
    }

    /// The encoder says how large the table is from here on (section 6.3).
    pub(super) fn resize(&mut self, limit: usize) {
        self.limit = Some(limit);
        if limit < ENTRY_BYTES {
            self.has_unseen = false;
        }
        self.evict();
    }

    fn evict(&mut self) {
        let limit = self.limit.unwrap_or(usize::MAX);
        while self.bytes > limit.min(KEPT_BYTES) {
            let Some(oldest) = self.entries.pop_back() else {
                break;
            };
            // What is older than an entry that the encoder evicted is gone as well; what only this
            // table cannot keep is not.
            self.has_unseen = self.bytes <= limit;
            self.bytes -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DynamicTable, ENTRY_BYTES, Entry, KEPT_BYTES, Lookup};

    #[test]
    fn the_newest_entry_is_the_first() {
        let mut table = DynamicTable::new();
        table.insert(entry("a", 0));
        table.insert(entry("b", 0));
        assert_eq!(table.get(0), Lookup::Found(&entry("b", 0)));
        assert_eq!(table.get(1), Lookup::Found(&entry("a", 0)));
        assert_eq!(table.get(2), Lookup::Invalid);
    }

    #[test]
    fn entries_that_do_not_fit_are_evicted() {
        let mut table = DynamicTable::new();
        table.resize(2 * (ENTRY_BYTES + 1));
        for name in ["a", "b", "c"] {
            table.insert(entry(name, 0));
        }
        assert_eq!(table.get(1), Lookup::Found(&entry("b", 0)));
        assert_eq!(table.get(2), Lookup::Invalid);
        table.insert(entry("d", 100));
        assert_eq!(table.get(0), Lookup::Invalid);
    }

    #[test]
    fn what_was_not_seen_is_unknown() {
        let mut table = DynamicTable::joined();
        assert_eq!(table.get(0), Lookup::Unknown);
        table.insert(entry("a", 5000));
        table.insert(entry("b", 0));
        assert_eq!(table.get(1), Lookup::Found(&entry("a", 5000)));
        assert_eq!(table.get(2), Lookup::Unknown);
    }

    #[test]
    fn an_eviction_or_an_empty_table_ends_what_is_unknown() {
        let mut table = DynamicTable::joined();
        table.insert(entry("a", 0));
        table.insert(entry("b", 0));
        table.resize(ENTRY_BYTES + 1);
        assert_eq!(table.get(0), Lookup::Found(&entry("b", 0)));
        assert_eq!(table.get(1), Lookup::Invalid);
        let mut table = DynamicTable::joined();
        table.resize(0);
        table.resize(4096);
        assert_eq!(table.get(0), Lookup::Invalid);
    }

    #[test]
    fn tables_larger_than_what_is_kept_lose_their_oldest() {
        let mut table = DynamicTable::new();
        table.resize(1 << 30);
        for _ in 0..100 {
            table.insert(entry("a", 1000));
        }
        let kept = KEPT_BYTES / (ENTRY_BYTES + 1001);
        assert!(matches!(table.get(kept - 1), Lookup::Found(_)));
        assert_eq!(table.get(kept), Lookup::Unknown);
    }

    fn entry(name: &str, value_bytes: usize) -> Entry {
        Entry {
            name: Some(name.as_bytes().to_vec()),
            value: Some(vec![b'v'; value_bytes]),
        }
    }
}
