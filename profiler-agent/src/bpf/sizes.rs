//! How large the maps of an object are.

use profiler_common::{
    limits::{
        CAPTURE_BUFFER_BYTES, FILTER_PID_ENTRIES, MANY_PROCESS_SLOTS, PROCESS_SLOTS,
        STACK_TABLE_ENTRIES, TABLE_BLOCKS, TABLE_PAGES, TABLE_RULES, THREAD_TABLE_ENTRIES,
        WAIT_COUNT_ENTRIES, WAIT_TABLE_ENTRIES,
    },
    network::{DROP_ENTRIES, ENDED_BUFFER_BYTES, LISTENER_ENTRIES},
};

/// Smallest ring buffer (a page).
const NO_BUFFER: u32 = 4096;

/// What an object counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// It follows processes only.
    Nothing,
    /// Ticks of a clock, in tables of so many entries.
    Samples(u32),
    /// Waits of threads.
    Waits,
    /// Connections, in a table of so many entries.
    Connections {
        entries: u32,
        /// Inode of the only network namespace that is watched; 0: all.
        network_namespace: u32,
    },
    /// All of it, for checks.
    Everything(u32),
}

/// Entries of every map whose size depends on what the object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapSizes {
    counts: u32,
    stacks: u32,
    threads: u32,
    waits: bool,
    connections: Option<u32>,
    tables: bool,
    slots: u32,
}

impl MapSizes {
    /// `tables` when stacks are walked with tables; `few` when the task is for some processes and
    /// not for groups of them.
    pub(super) fn new(counting: Counting, tables: bool, few: bool) -> Self {
        let (sampling, counts, waits, connections) = match counting {
            Counting::Nothing => (false, 1, false, None),
            Counting::Samples(entries) => (true, entries, false, None),
            Counting::Waits => (true, 1, true, None),
            Counting::Connections { entries, .. } => (false, 1, false, Some(entries)),
            Counting::Everything(entries) => (true, entries, true, Some(entries)),
        };
        Self {
            counts,
            waits,
            connections,
            stacks: if sampling { STACK_TABLE_ENTRIES } else { 1 },
            threads: if sampling { THREAD_TABLE_ENTRIES } else { 1 },
            tables: sampling && tables,
            slots: if few {
                PROCESS_SLOTS
            } else {
                MANY_PROCESS_SLOTS
            },
        }
    }

    /// Maps by name.
    pub(super) fn entries(self) -> [(&'static str, u32); 17] {
        let Self {
            counts,
            stacks,
            threads,
            waits,
            connections,
            tables,
            slots,
        } = self;
        let waited = |entries| if waits { entries } else { 1 };
        let table = |entries| if tables { entries } else { 1 };
        let network = |entries| connections.map_or(1, |_entries| entries);
        [
            ("COUNTS_EVEN", counts),
            ("COUNTS_ODD", counts),
            ("STACKS", stacks),
            ("THREADS", threads),
            ("WAITED_EVEN", waited(WAIT_COUNT_ENTRIES)),
            ("WAITED_ODD", waited(WAIT_COUNT_ENTRIES)),
            ("WAITS", waited(WAIT_TABLE_ENTRIES)),
            ("CONNECTIONS", connections.unwrap_or(1)),
            ("LISTENERS", network(LISTENER_ENTRIES)),
            ("DROPS", network(DROP_ENTRIES)),
            (
                "ENDED",
                connections.map_or(NO_BUFFER, |_entries| ENDED_BUFFER_BYTES),
            ),
            ("PROCESSES", table(FILTER_PID_ENTRIES)),
            ("MAPPINGS", table(slots)),
            ("PAGES", table(TABLE_PAGES)),
            ("BLOCKS", table(TABLE_BLOCKS)),
            ("RULES", table(TABLE_RULES)),
            (
                "CAPTURES",
                if tables {
                    CAPTURE_BUFFER_BYTES
                } else {
                    NO_BUFFER
                },
            ),
        ]
    }
}
