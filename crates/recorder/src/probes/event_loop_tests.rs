use profiler_common::{
    event_loop::{TURN_BUCKETS, turn_bucket},
    header::RecordHeader,
};

use super::*;

const MS: u64 = NS_PER_MS;
const ORIGIN: Origin = Origin {
    kernel_ns: 1_000 * MS,
    epoch_ns: 5_000_000 * MS,
};

fn book() -> LoopLedger {
    LoopLedger::new(LoopRules { threshold_ms: 20 }, ORIGIN)
}

/// A thread that has made turns of these lengths, and began another one then.
fn counted(tid: u32, turns_ns: &[u64], began_ns: u64) -> Counted {
    let mut thread = Counted {
        header: RecordHeader::default(),
        began_ns,
        turns: turns_ns.len() as u64,
        turns_ns: turns_ns.iter().sum(),
        longest_ns: turns_ns.iter().copied().max().unwrap_or(0),
        stalls: 0,
        stalls_ns: 0,
        cgroups: 1,
        pid: 7,
        tid,
        generation: 0,
        padding: 0,
        comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
        counts: [0; TURN_BUCKETS],
    };
    for turn_ns in turns_ns {
        thread.counts[turn_bucket(*turn_ns)] += 1;
        if *turn_ns >= 20 * MS {
            thread.stalls += 1;
            thread.stalls_ns += turn_ns;
        }
    }
    thread
}

fn ended(thread: &Counted, time_ns: u64) -> Counted {
    let header = RecordHeader {
        time_ns,
        ..thread.header
    };
    Counted { header, ..*thread }
}

fn stall(tid: u32, duration_ns: u64) -> StallRecord {
    StallRecord {
        pid: 7,
        tid,
        began_ns: 1_500 * MS,
        duration_ns,
        ..StallRecord::default()
    }
}

/// Threads of a table: number, turns, stalls.
fn threads(table: &EventLoopTable) -> Vec<(u32, u64, u64)> {
    let threads = table.threads.iter();
    threads
        .map(|thread| (thread.tid, thread.turns, thread.stalls))
        .collect()
}

#[test]
fn a_turn_that_is_not_over_is_a_stall_once_it_is_long_enough() {
    let mut book = book();
    book.live(vec![
        counted(1, &[MS], 1_990 * MS),
        counted(2, &[MS, MS], 1_900 * MS),
        counted(3, &[MS], 0),
    ]);
    let table = book.table(2_000 * MS, 0, |_key| true);
    assert_eq!(threads(&table), [(1, 1, 0), (2, 2, 1), (3, 1, 0)]);
    let [open] = table.stalls.as_slice() else {
        panic!("{table:?}");
    };
    assert_eq!((open.tid, open.duration_ns, open.open), (2, 100 * MS, true));
    assert_eq!(open.start_ns, ORIGIN.epoch_ns + 900 * MS);
    assert_eq!(table.stall_count, 1);
    // A later reading finds that it has gone back.
    book.live(vec![counted(2, &[MS, MS, 120 * MS], 0)]);
    book.stalled(&stall(2, 120 * MS));
    let table = book.table(3_000 * MS, 0, |_key| true);
    assert_eq!(threads(&table), [(2, 3, 1)]);
    assert_eq!(table.stalls.len(), 1);
    assert!(!table.stalls[0].open);
}

#[test]
fn a_thread_that_sleeps_in_epoll_is_not_away_although_its_call_was_missed() {
    let mut book = book();
    book.live(vec![
        counted(2, &[MS], 1_900 * MS),
        counted(3, &[MS], 3_900 * MS),
    ]);
    let table = book.table(4_000 * MS, 3, |_key| false);
    // The other one may have gone back a moment ago.
    assert_eq!(threads(&table), [(2, 1, 0), (3, 1, 1)]);
    assert_eq!((table.stall_count, table.lost), (1, 3));
    assert_eq!(table.stalls[0].tid, 3);
}

#[test]
fn threads_that_end_are_kept_with_the_turn_that_they_ended_in() {
    let mut book = book();
    book.live(vec![counted(1, &[MS], 0), counted(2, &[MS], 0)]);
    book.ended(&ended(&counted(1, &[MS, 30 * MS], 1_100 * MS), 1_200 * MS));
    let table = book.table(9_000 * MS, 0, |_key| true);
    assert_eq!(threads(&table), [(1, 2, 2), (2, 1, 0)]);
    assert_eq!(table.stall_count, 2);
    assert_eq!(table.threads[0].stalls_ns, 130 * MS);
    assert_eq!(table.threads[0].name, "worker");
    assert!(table.stalls[0].open);
    // Its number comes again.
    book.live(vec![counted(1, &[2 * MS], 0)]);
    assert_eq!(
        threads(&book.table(9_000 * MS, 0, |_key| true)),
        [(1, 3, 2)]
    );
}

#[test]
fn the_longest_stalls_are_kept_and_all_are_counted() {
    let mut book = book();
    let many = 5 * MAX_STALLS as u64;
    for number in 0..many {
        // In no order.
        book.stalled(&stall(1, (20 + number * 7919 % many) * MS));
    }
    book.live(vec![Counted {
        stalls: many,
        ..counted(1, &[], 0)
    }]);
    let table = book.table(0, 0, |_key| true);
    assert_eq!(table.stalls.len(), MAX_STALLS);
    assert_eq!(table.stall_count, many);
    assert_eq!(table.stalls[0].duration_ns, (20 + many - 1) * MS);
    let last = &table.stalls[MAX_STALLS - 1];
    assert_eq!(last.duration_ns, (20 + many - MAX_STALLS as u64) * MS);
}

#[test]
fn too_many_ended_threads_are_counted_as_lost() {
    let mut book = book();
    for tid in 0..u32::try_from(MAX_ENDED).unwrap() + 3 {
        book.ended(&ended(&counted(tid, &[MS], 0), 2_000 * MS));
    }
    let table = book.table(2_000 * MS, 4, |_key| true);
    assert_eq!((table.threads.len(), table.lost), (MAX_ENDED, 7));
}

#[test]
fn nobody_reads_of_a_process_that_does_not_exist() {
    assert!(!is_in_epoll(u32::MAX, u32::MAX));
}
