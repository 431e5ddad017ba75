//! How large the maps of an object are: by what it counts, and by the CPUs of the machine.

use profiler_common::{
    http::HTTP_ENTRIES,
    http2::HTTP2_ENTRIES,
    limits::{
        CAPTURE_BUFFER_BYTES, CONTENTION_ENTRIES, FILTER_PID_ENTRIES, KNOWN_WALKS,
        LOOP_TABLE_ENTRIES, MANY_PROCESS_SLOTS, MARKS, PROCESS_SLOTS, PROGRAM_CLASSES,
        RING_BUFFER_BYTES, SLICE_COUNT_ENTRIES, STACK_TABLE_ENTRIES, TABLE_BLOCKS, TABLE_PAGES,
        TABLE_RULES, THREAD_TABLE_ENTRIES, WAIT_COUNT_ENTRIES, WAIT_TABLE_ENTRIES, WALK_CLASSES,
    },
    network::{ANSWERS_BUFFER_BYTES, DROP_ENTRIES, ENDED_BUFFER_BYTES, LISTENER_ENTRIES},
    network_calls::CALL_ENTRIES,
    payload::{DATAGRAM_ENTRIES, MESSAGE_CALL_ENTRIES, PAYLOAD_BUFFER_BYTES, SCRATCH_AREAS},
    tls::{
        TLS_CALL_ENTRIES, TLS_CIPHERTEXT_ENTRIES, TLS_CONNECTION_ENTRIES, TLS_PROCESS_ENTRIES,
        TLS_SESSION_ENTRIES,
    },
    unix_sockets::UNIX_ENTRIES,
};

use super::features::cpu_count;

/// Smallest ring buffer (a page).
const NO_BUFFER: u32 = 4096;

/// Entries of an LRU map for each possible CPU. A CPU that inserts keeps 128 free entries to itself (`LOCAL_FREE_TARGET`
/// of `kernel/bpf/bpf_lru_list.c`, before d4adf1c9ee77 of 2025 whatever the map's size): a map with fewer
/// evicts entries that are in use. Four times as many leave three quarters for these.
const LRU_ENTRIES_PER_CPU: u32 = 512;

/// Entries of a counting table of waits or slices for each online CPU: in the 12 buckets of an epoch, 170 threads each.
const WAITS_PER_CPU: u32 = 2048;
/// And at most: 30 to 40 MiB a table.
const MAX_WAITS: u32 = 1 << 18;

/// Bytes of the ring buffer for records for each online CPU, and at most.
const RECORD_BYTES_PER_CPU: u32 = 64 << 10;
const MAX_RECORD_BYTES: u32 = 16 << 20;

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

impl Counting {
    fn has_stacks(self) -> bool {
        match self {
            Self::Samples(_) | Self::Waits | Self::Wall | Self::Everything(_) => true,
            Self::Nothing | Self::Connections { .. } => false,
        }
    }

    pub(super) fn has_waits(self) -> bool {
        match self {
            Self::Waits | Self::Wall | Self::Everything(_) => true,
            Self::Nothing | Self::Samples(_) | Self::Connections { .. } => false,
        }
    }

    /// Whether its programs run for every process of the machine, so that marks tell most of them from targets.
    pub(super) fn marks_processes(self) -> bool {
        self.has_waits() || self.connections().is_some()
    }

    fn has_slices(self) -> bool {
        match self {
            Self::Wall | Self::Everything(_) => true,
            Self::Nothing | Self::Samples(_) | Self::Waits | Self::Connections { .. } => false,
        }
    }

    /// Entries of the table of samples.
    fn samples(self) -> Option<u32> {
        match self {
            Self::Samples(entries) | Self::Everything(entries) => Some(entries),
            Self::Nothing | Self::Waits | Self::Wall | Self::Connections { .. } => None,
        }
    }

    /// What is watched of connections.
    fn connections(self) -> Option<ConnectionNeeds> {
        match self {
            Self::Connections {
                entries,
                network_namespace: _,
                timed,
                capture_bytes,
                tls_bytes,
            } => Some(ConnectionNeeds {
                entries,
                timed,
                payload: capture_bytes.is_some(),
                tls: tls_bytes.is_some(),
            }),
            Self::Everything(entries) => Some(ConnectionNeeds {
                entries,
                timed: true,
                payload: true,
                tls: true,
            }),
            Self::Nothing | Self::Samples(_) | Self::Waits | Self::Wall => None,
        }
    }
}

/// What is watched of connections.
#[derive(Clone, Copy, Debug)]
struct ConnectionNeeds {
    entries: u32,
    timed: bool,
    payload: bool,
    tls: bool,
}

/// What is watched beside what is counted.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of maps of their own whether they are there"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) wakers: bool,
    pub(super) loops: bool,
    /// User stacks are walked with tables.
    pub(super) tables: bool,
    /// The target is some processes and not groups of them.
    pub(super) few_processes: bool,
    /// Programs look at every system call.
    pub(super) calls: bool,
}

/// CPUs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// That may come online: areas of a CPU are found by its number.
    pub(super) possible: u32,
    online: u32,
}

impl Cpus {
    pub(super) fn of_this_machine() -> Self {
        let possible = aya::util::nr_cpus().unwrap_or(1);
        Self {
            possible: u32::try_from(possible).unwrap_or(u32::MAX),
            online: cpu_count(),
        }
    }

    /// Entries of an LRU map that needs `least` on a small machine.
    fn lru(self, least: u32) -> u32 {
        least.max(self.possible.saturating_mul(LRU_ENTRIES_PER_CPU))
    }

    /// Entries of a counting table of waits or slices that needs `least` on a small machine.
    fn waits(self, least: u32) -> u32 {
        let needed = self.online.saturating_mul(WAITS_PER_CPU).min(MAX_WAITS);
        least.max(needed.next_power_of_two())
    }

    fn areas(self, of_a_cpu: u32) -> u32 {
        self.possible.saturating_mul(of_a_cpu)
    }

    fn record_bytes(self) -> u32 {
        let needed = self.online.saturating_mul(RECORD_BYTES_PER_CPU);
        let needed = needed.min(MAX_RECORD_BYTES).next_power_of_two();
        needed.max(RING_BUFFER_BYTES)
    }
}

/// Entries, and bytes of ring buffers, of every map whose size depends on what the object is for or on the machine. A
/// map that the object has no use for gets the least that the kernel takes.
pub(super) fn map_entries(
    counting: Counting,
    asked: Asked,
    cpus: Cpus,
) -> Vec<(&'static str, u32)> {
    let Asked {
        wakers,
        loops,
        tables,
        few_processes,
        calls,
    } = asked;
    let has_stacks = counting.has_stacks();
    let has_waits = counting.has_waits();
    let tables = has_stacks && tables;
    let connections = counting.connections();
    let payload = connections.is_some_and(|connections| connections.payload);
    let tls = connections.is_some_and(|connections| connections.tls);
    let timed = connections.filter(|connections| connections.timed);

    let used = |is_used: bool, entries: u32| if is_used { entries } else { 1 };
    let buffer = |is_used: bool, bytes: u32| if is_used { bytes } else { NO_BUFFER };
    let network = |entries| used(connections.is_some(), entries);
    let counts = counting.samples().unwrap_or(1);
    let waited = used(has_waits, cpus.waits(WAIT_COUNT_ENTRIES));
    let woken = used(has_waits && wakers, cpus.waits(WAIT_COUNT_ENTRIES));
    let contention = used(has_waits, cpus.waits(CONTENTION_ENTRIES));
    let slices = used(counting.has_slices(), cpus.waits(SLICE_COUNT_ENTRIES));
    let slots = if few_processes {
        PROCESS_SLOTS
    } else {
        MANY_PROCESS_SLOTS
    };
    vec![
        (
            "RECORDS",
            if has_stacks {
                cpus.record_bytes()
            } else {
                RING_BUFFER_BYTES
            },
        ),
        ("COUNTS_EVEN", counts),
        ("COUNTS_ODD", counts),
        ("STACKS", used(has_stacks, STACK_TABLE_ENTRIES)),
        (
            "STACK_SCRATCH",
            used(has_stacks, cpus.areas(PROGRAM_CLASSES)),
        ),
        ("BUCKETS", used(has_stacks, cpus.areas(PROGRAM_CLASSES))),
        ("THREADS", used(has_stacks, THREAD_TABLE_ENTRIES)),
        ("WAITED_EVEN", waited),
        ("WAITED_ODD", waited),
        ("RUNS", used(has_waits, cpus.possible)),
        ("CONTENTION_EVEN", contention),
        ("CONTENTION_ODD", contention),
        ("WAITS", used(has_waits, WAIT_TABLE_ENTRIES)),
        ("WAKINGS", used(has_waits && wakers, WAIT_TABLE_ENTRIES)),
        ("WOKEN_EVEN", woken),
        ("WOKEN_ODD", woken),
        ("LOOPS", used(loops, LOOP_TABLE_ENTRIES)),
        ("SLICES_EVEN", slices),
        ("SLICES_ODD", slices),
        ("THREAD_MARKS", used(has_waits, MARKS)),
        ("PROCESS_MARKS", used(counting.marks_processes(), MARKS)),
        ("KNOWN", used(tables && has_waits, KNOWN_WALKS)),
        ("KERNEL_WALKS", used(tables && has_waits, cpus.areas(1))),
        ("WALKS", used(tables, cpus.areas(WALK_CLASSES))),
        ("CAPTURE_SCRATCH", used(tables, cpus.areas(PROGRAM_CLASSES))),
        ("CAPTURES", buffer(tables, CAPTURE_BUFFER_BYTES)),
        ("PROCESSES", used(tables, FILTER_PID_ENTRIES)),
        ("MAPPINGS", used(tables, slots)),
        ("PAGES", used(tables, TABLE_PAGES)),
        ("BLOCKS", used(tables, TABLE_BLOCKS)),
        ("BLOCK_USES", used(tables, TABLE_BLOCKS)),
        ("RULES", used(tables, TABLE_RULES)),
        (
            "CONNECTIONS",
            connections.map_or(1, |connections| connections.entries),
        ),
        ("LISTENERS", network(LISTENER_ENTRIES)),
        ("LISTENING", network(LISTENER_ENTRIES)),
        ("DROPS", network(DROP_ENTRIES)),
        ("UNIX_SOCKETS", network(UNIX_ENTRIES)),
        ("CALLS", network(used(calls, CALL_ENTRIES))),
        ("CALL_TIMES", timed.map_or(1, |timed| timed.entries)),
        (
            "ANSWERS",
            buffer(connections.is_some(), ANSWERS_BUFFER_BYTES),
        ),
        ("ENDED", buffer(connections.is_some(), ENDED_BUFFER_BYTES)),
        ("PIECES", buffer(payload, PAYLOAD_BUFFER_BYTES)),
        ("HTTP_COUNTS", used(payload, HTTP_ENTRIES)),
        ("HTTP2", used(payload, HTTP2_ENTRIES)),
        ("PIECE_SCRATCH", used(payload, cpus.areas(SCRATCH_AREAS))),
        (
            "MESSAGE_CALLS",
            used(payload, cpus.lru(MESSAGE_CALL_ENTRIES)),
        ),
        (
            "DATAGRAM_SOCKETS",
            used(payload, cpus.lru(DATAGRAM_ENTRIES)),
        ),
        ("TLS_CALLS", used(tls, cpus.lru(TLS_CALL_ENTRIES))),
        ("TLS_SESSIONS", used(tls, cpus.lru(TLS_SESSION_ENTRIES))),
        (
            "TLS_CONNECTIONS",
            used(tls, cpus.lru(TLS_CONNECTION_ENTRIES)),
        ),
        (
            "TLS_CIPHERTEXT",
            used(tls, cpus.lru(TLS_CIPHERTEXT_ENTRIES)),
        ),
        ("TLS_PROCESSES", used(tls, TLS_PROCESS_ENTRIES)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const ALL: Asked = Asked {
        wakers: true,
        loops: true,
        tables: true,
        few_processes: false,
        calls: true,
    };
    /// Of a task that watches connections in the light mode.
    const LIGHT: Asked = Asked {
        wakers: false,
        loops: false,
        tables: true,
        few_processes: false,
        calls: false,
    };
    /// What a task would count without payload.
    const CONNECTIONS: Counting = Counting::Connections {
        entries: 65_536,
        network_namespace: 0,
        timed: false,
        capture_bytes: None,
        tls_bytes: None,
    };

    fn cpus(number: u32) -> Cpus {
        Cpus {
            possible: number,
            online: number,
        }
    }

    fn plan(counting: Counting, asked: Asked, cpus: Cpus) -> BTreeMap<&'static str, u32> {
        map_entries(counting, asked, cpus).into_iter().collect()
    }

    /// With fewer, processes that are targets would be taken for none.
    #[test]
    fn every_process_has_its_mark_where_marks_are_looked_at() {
        for counting in [CONNECTIONS, Counting::Waits, Counting::Wall] {
            assert_eq!(plan(counting, LIGHT, cpus(2))["PROCESS_MARKS"], MARKS);
        }
        let samples = plan(Counting::Samples(1), LIGHT, cpus(2));
        assert_eq!(samples["PROCESS_MARKS"], 1);
    }

    /// The test machine with 64 CPUs compares all maps of this kind with the kernel (`xtask/src/vm/verdict.rs`).
    #[test]
    fn maps_that_forget_have_room_beyond_what_each_cpu_keeps_to_itself() {
        let lru = [
            "MESSAGE_CALLS",
            "DATAGRAM_SOCKETS",
            "TLS_CALLS",
            "TLS_SESSIONS",
            "TLS_CONNECTIONS",
            "TLS_CIPHERTEXT",
        ];
        for number in [2, 64, 256] {
            let plan = plan(Counting::Everything(4096), ALL, cpus(number));
            for name in lru {
                let entries = plan.get(name).copied();
                assert!(
                    entries >= Some(number * 4 * 128),
                    "{name} on {number} CPUs: {entries:?}"
                );
            }
        }
    }

    #[test]
    fn tables_of_waits_and_slices_grow_with_the_cpus_that_run() {
        let check = |cpus: Cpus, expected: u32| {
            let plan = plan(Counting::Wall, ALL, cpus);
            for name in [
                "WAITED_EVEN",
                "WAITED_ODD",
                "WOKEN_EVEN",
                "WOKEN_ODD",
                "SLICES_EVEN",
                "SLICES_ODD",
            ] {
                assert_eq!(plan.get(name), Some(&expected), "{name}");
            }
        };
        check(cpus(2), 32_768);
        check(cpus(64), 131_072);
        check(cpus(256), 262_144);
        let small_machine = Cpus {
            possible: 240,
            online: 4,
        };
        check(small_machine, 32_768);
        let records = |number| {
            plan(Counting::Waits, ALL, cpus(number))
                .get("RECORDS")
                .copied()
        };
        assert_eq!(records(2), Some(1 << 20));
        assert_eq!(records(64), Some(4 << 20));
        assert_eq!(records(256), Some(16 << 20));
    }

    #[test]
    fn a_task_without_stacks_has_no_areas_for_them_on_each_cpu() {
        let plan = plan(CONNECTIONS, LIGHT, cpus(256));
        for name in [
            "WALKS",
            "STACK_SCRATCH",
            "CAPTURE_SCRATCH",
            "KNOWN",
            "KERNEL_WALKS",
            "BUCKETS",
        ] {
            assert_eq!(plan.get(name), Some(&1), "{name}");
        }
    }

    #[test]
    fn walks_have_an_area_for_each_cpu_that_may_come_online() {
        let plan = plan(Counting::Waits, ALL, cpus(64));
        assert_eq!(plan.get("WALKS"), Some(&(64 * WALK_CLASSES)));
        assert_eq!(plan.get("STACK_SCRATCH"), Some(&(64 * PROGRAM_CLASSES)));
        assert_eq!(plan.get("CAPTURE_SCRATCH"), Some(&(64 * PROGRAM_CLASSES)));
        assert_eq!(plan.get("BUCKETS"), Some(&(64 * PROGRAM_CLASSES)));
    }

    #[test]
    fn calls_have_a_table_where_programs_look_at_them() {
        let entries = |asked| plan(CONNECTIONS, asked, cpus(2)).get("CALLS").copied();
        assert_eq!(entries(LIGHT), Some(1));
        assert_eq!(
            entries(Asked {
                calls: true,
                ..LIGHT
            }),
            Some(CALL_ENTRIES)
        );
    }
}
