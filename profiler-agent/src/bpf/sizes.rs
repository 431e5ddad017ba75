//! How large the maps of an object are.

use profiler_common::limits::{
    CAPTURE_BUFFER_BYTES, FILTER_PID_ENTRIES, MANY_PROCESS_SLOTS, PROCESS_SLOTS,
    STACK_TABLE_ENTRIES, TABLE_BLOCKS, TABLE_PAGES, TABLE_RULES, THREAD_TABLE_ENTRIES,
};

/// Smallest ring buffer (a page).
const NO_BUFFER: u32 = 4096;

/// Entries of every map whose size depends on what the object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapSizes {
    counts: u32,
    stacks: u32,
    threads: u32,
    tables: bool,
    slots: u32,
}

impl MapSizes {
    /// `counts` as in `ObjectRequest::count_entries`; `tables` when stacks are walked with tables;
    /// `few` when the task is for some processes and not for groups of them.
    pub(super) fn new(counts: Option<u32>, tables: bool, few: bool) -> Self {
        let sampling = counts.is_some();
        Self {
            counts: counts.unwrap_or(1),
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
    pub(super) fn entries(self) -> [(&'static str, u32); 10] {
        let Self {
            counts,
            stacks,
            threads,
            tables,
            slots,
        } = self;
        let table = |entries| if tables { entries } else { 1 };
        [
            ("COUNTS_EVEN", counts),
            ("COUNTS_ODD", counts),
            ("STACKS", stacks),
            ("THREADS", threads),
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
