//! How large the maps of an object are.

use profiler_common::{
    limits::{
        CAPTURE_BUFFER_BYTES, FILTER_PID_ENTRIES, KNOWN_WALKS, LOOP_TABLE_ENTRIES,
        MANY_PROCESS_SLOTS, MARKS, PROCESS_SLOTS, SLICE_COUNT_ENTRIES, STACK_TABLE_ENTRIES,
        TABLE_BLOCKS, TABLE_PAGES, TABLE_RULES, THREAD_TABLE_ENTRIES, WAIT_COUNT_ENTRIES,
        WAIT_TABLE_ENTRIES,
    },
    network::{ANSWERS_BUFFER_BYTES, DROP_ENTRIES, ENDED_BUFFER_BYTES, LISTENER_ENTRIES},
    network_calls::CALL_ENTRIES,
    payload::{DATAGRAM_ENTRIES, MESSAGE_CALL_ENTRIES, PAYLOAD_BUFFER_BYTES, SCRATCH_AREAS},
    unix_sockets::UNIX_ENTRIES,
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
    /// Waits, and time on the CPU.
    Wall,
    /// Connections, in a table of so many entries.
    Connections {
        entries: u32,
        /// Inode of the only network namespace that is watched; 0: all.
        network_namespace: u32,
        /// Whether system calls are timed.
        timed: bool,
        /// First bytes of each piece of payload that are captured; `None`: there is no payload.
        capture_bytes: Option<u32>,
        /// The same of each call of a TLS library; `None`: no plaintext is captured.
        tls_bytes: Option<u32>,
    },
    /// All of them, for checks.
    Everything(u32),
}

/// What is watched beside what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) wakers: bool,
    pub(super) loops: bool,
}

/// Entries of every map whose size depends on what the object is for.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of maps of their own whether they are there"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapSizes {
    counts: u32,
    stacks: u32,
    threads: u32,
    waits: bool,
    /// Of time on the CPU.
    slices: u32,
    wakers: bool,
    /// Of threads with event loops.
    loops: u32,
    connections: Option<u32>,
    /// Of connections whose calls are timed.
    call_times: u32,
    payload: bool,
    pub(super) tls: bool,
    tables: bool,
    slots: u32,
}

impl MapSizes {
    /// `tables` when stacks are walked with tables; `few` when the task is for some processes and
    /// not for groups of them.
    pub(super) fn new(counting: Counting, asked: Asked, tables: bool, few: bool) -> Self {
        let Asked { wakers, loops } = asked;
        let sampling = !matches!(counting, Counting::Nothing | Counting::Connections { .. });
        let (counts, waits, slices, connections) = match counting {
            Counting::Nothing => (1, false, 1, None),
            Counting::Samples(entries) => (entries, false, 1, None),
            Counting::Waits => (1, true, 1, None),
            Counting::Wall => (1, true, SLICE_COUNT_ENTRIES, None),
            Counting::Connections { entries, .. } => (1, false, 1, Some(entries)),
            Counting::Everything(entries) => (entries, true, SLICE_COUNT_ENTRIES, Some(entries)),
        };
        Self {
            counts,
            waits,
            slices,
            wakers: waits && wakers,
            loops: if loops { LOOP_TABLE_ENTRIES } else { 1 },
            connections,
            call_times: match counting {
                Counting::Connections {
                    entries,
                    timed: true,
                    ..
                }
                | Counting::Everything(entries) => entries,
                _ => 1,
            },
            tls: match counting {
                Counting::Connections { tls_bytes, .. } => tls_bytes.is_some(),
                Counting::Everything(_) => true,
                Counting::Nothing | Counting::Samples(_) | Counting::Waits | Counting::Wall => {
                    false
                }
            },
            payload: match counting {
                Counting::Connections { capture_bytes, .. } => capture_bytes.is_some(),
                Counting::Everything(_) => true,
                Counting::Nothing | Counting::Samples(_) | Counting::Waits | Counting::Wall => {
                    false
                }
            },
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
    pub(super) fn entries(self) -> [(&'static str, u32); 34] {
        let Self {
            counts,
            stacks,
            threads,
            waits,
            slices,
            wakers,
            loops,
            connections,
            call_times,
            payload,
            tls: _,
            tables,
            slots,
        } = self;
        let waited = |entries| if waits { entries } else { 1 };
        let woken = |entries| if wakers { entries } else { 1 };
        let table = |entries| if tables { entries } else { 1 };
        let heard = |entries| if payload { entries } else { 1 };
        let network = |entries| connections.map_or(1, |_entries| entries);
        [
            ("COUNTS_EVEN", counts),
            ("COUNTS_ODD", counts),
            ("STACKS", stacks),
            ("THREADS", threads),
            ("WAITED_EVEN", waited(WAIT_COUNT_ENTRIES)),
            ("WAITED_ODD", waited(WAIT_COUNT_ENTRIES)),
            ("WAITS", waited(WAIT_TABLE_ENTRIES)),
            ("WAKINGS", woken(WAIT_TABLE_ENTRIES)),
            ("WOKEN_EVEN", woken(WAIT_COUNT_ENTRIES)),
            ("WOKEN_ODD", woken(WAIT_COUNT_ENTRIES)),
            ("LOOPS", loops),
            ("SLICES_EVEN", slices),
            ("SLICES_ODD", slices),
            ("THREAD_MARKS", waited(MARKS)),
            ("PROCESS_MARKS", waited(MARKS)),
            ("KNOWN", if tables { waited(KNOWN_WALKS) } else { 1 }),
            ("CONNECTIONS", connections.unwrap_or(1)),
            ("LISTENERS", network(LISTENER_ENTRIES)),
            ("DROPS", network(DROP_ENTRIES)),
            ("UNIX_SOCKETS", network(UNIX_ENTRIES)),
            ("CALLS", network(CALL_ENTRIES)),
            ("CALL_TIMES", call_times),
            (
                "ANSWERS",
                connections.map_or(NO_BUFFER, |_entries| ANSWERS_BUFFER_BYTES),
            ),
            (
                "ENDED",
                connections.map_or(NO_BUFFER, |_entries| ENDED_BUFFER_BYTES),
            ),
            (
                "PIECES",
                if payload {
                    PAYLOAD_BUFFER_BYTES
                } else {
                    NO_BUFFER
                },
            ),
            ("MESSAGE_CALLS", heard(MESSAGE_CALL_ENTRIES)),
            ("DATAGRAM_SOCKETS", heard(DATAGRAM_ENTRIES)),
            ("PIECE_SCRATCH", if payload { scratch_areas() } else { 1 }),
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

/// Areas in which pieces of payload are put together, on every CPU that there may be.
fn scratch_areas() -> u32 {
    let cpus = aya::util::nr_cpus().unwrap_or(1);
    u32::try_from(cpus)
        .unwrap_or(u32::MAX)
        .saturating_mul(SCRATCH_AREAS)
}
