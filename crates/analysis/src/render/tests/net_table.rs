use profiler_model::{EdgeKey, Transfer, Values, Window};

use super::*;

fn edge(comm: &str, bytes: u64) -> Edge {
    let end = |comm: &str, pid| Endpoint {
        pid,
        start_ticks: Some(1),
        comm: comm.to_owned(),
        container: None,
        address: Address::Ip([10, 0, 0, 1].into()),
    };
    let mut write_rtt = Values::default();
    write_rtt.add(4, 300);
    Edge {
        key: EdgeKey {
            client: end(comm, Some(7)),
            server: end("", None),
            server_port: Some(80),
            original_destination: None,
        },
        client_port: None,
        client_name: None,
        namespaces: profiler_model::EdgeNamespaces::default(),
        server_name: None,
        client: Some(SideMetrics {
            connections: 1,
            write: Transfer { count: 3, bytes },
            write_rtt,
            min_rtt_us: Some(6),
            ..SideMetrics::default()
        }),
        server: None,
    }
}

const SHOWN: Shown = Shown {
    idle_unix_pairs: false,
    own_pid: 1,
    is_never_known: |metric| matches!(metric, "unix.accept" | "unix.socket"),
};

/// An edge of Unix sockets with the names of both.
fn unix(client: &str, server: &str, calls: u64) -> Edge {
    let mut edge = edge("pair", 0);
    edge.key.client.address = Address::Unix(client.to_owned());
    edge.key.server.address = Address::Unix(server.to_owned());
    edge.key.server_port = None;
    if let Some(side) = &mut edge.client {
        side.write.count = calls;
        side.write_rtt = Values::default();
        side.min_rtt_us = None;
    }
    edge
}

#[test]
fn idle_pairs_of_unnamed_sockets_are_counted_and_not_shown() {
    let mut table = EdgeTable {
        edges: vec![
            unix("unnamed", "unnamed", 0),
            unix("unnamed", "unnamed", 5),
            unix("unnamed", "/run/named", 0),
        ],
        ..EdgeTable::default()
    };
    let note = "1 edges between unnamed Unix sockets that nobody used are not shown";
    let short = text(&table, SHOWN);
    assert!(
        short.contains("total of 2 edges") && short.contains(note),
        "{short}"
    );
    let all = Shown {
        idle_unix_pairs: true,
        ..SHOWN
    };
    let whole = text(&table, all);
    assert!(
        whole.contains("total of 3 edges") && !whole.contains(note),
        "{whole}"
    );
    // Where calls are not counted it is unknown that a pair is idle.
    table
        .unavailable
        .insert("unix.write".into(), "no hook".into());
    assert!(text(&table, SHOWN).contains("total of 3 edges"));
}

#[test]
fn what_came_from_senders_that_are_not_told_is_not_added_up_again() {
    let sent = unix("unnamed", "@name", 2);
    let mut received = unix("unknown", "@name", 0);
    received.key.client.pid = None;
    received.server = Some(SideMetrics {
        connections: 1,
        read: Transfer {
            count: 3,
            bytes: 35,
        },
        ..SideMetrics::default()
    });
    received.client = None;
    let table = EdgeTable {
        edges: vec![sent, received],
        ..EdgeTable::default()
    };
    let text = text(&table, SHOWN);
    let total = text
        .lines()
        .find(|line| line.starts_with("total of 2 edges"));
    let total: Vec<&str> = total.unwrap().split_whitespace().collect();
    // Connections, failed, bytes with their unit, and calls.
    assert_eq!(total[4..9], ["1", "0", "0", "B", "2"], "{text}");
    assert!(text.contains("not in the total: 35 B in 3 reads"), "{text}");
}

#[test]
fn what_unix_sockets_never_have_is_one_line_and_does_not_hide_the_rest() {
    let mut table = EdgeTable::default();
    for (metric, reason) in [
        ("accept", "needs the timed mode"),
        ("unix.accept", "calls on Unix sockets are not timed"),
        ("unix.socket", "Unix sockets do not count their bytes"),
        (
            "unix.read",
            "only sock_recv_length tells it of Unix sockets",
        ),
        ("write.time_ns", "needs the timed mode"),
    ] {
        table.unavailable.insert(metric.into(), reason.into());
    }
    let text = text(&table, SHOWN);
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("unavailable"))
        .collect();
    assert_eq!(
        found,
        [
            "unavailable: accept, write.time_ns: needs the timed mode",
            "unavailable: unix.read: only sock_recv_length tells it of Unix sockets",
            "unavailable: accept, socket: Unix sockets never have them (--json says why)",
        ]
    );
}

#[test]
fn sockets_of_the_command_itself_are_marked() {
    let table = EdgeTable {
        edges: vec![edge("own", 1)],
        ..EdgeTable::default()
    };
    let own = Shown {
        own_pid: 7,
        ..SHOWN
    };
    assert!(text(&table, own).contains("own[7] (this command) 10.0.0.1:*"));
    assert!(!text(&table, SHOWN).contains("this command"));
}

#[test]
fn columns_are_aligned_and_the_largest_edge_is_first() {
    let mut table = EdgeTable {
        edges: vec![edge("small", 900), edge("large", 5 << 20)],
        lost_events: 2,
        lost_bytes: 4096,
        ..EdgeTable::default()
    };
    table.kernel_table.delayed = 7;
    table.unavailable.insert("drop".into(), "no hook".into());
    table.unresolved.insert("owner".into(), 3);
    let expected = "\
CLIENT               SERVER       CONNS  FAILED     SENT  CALLS  RECEIVED  CALLS  MIN RTT    SRTT p50         p99  WAIT p99  RETR  DROP  RESET  ERR
large[7] 10.0.0.1:*  10.0.0.1:80      1       0  5.0 MiB      3       0 B      0     6 us  100-500 us  100-500 us         -     0     -      0    0
small[7] 10.0.0.1:*  10.0.0.1:80      1       0    900 B      3       0 B      0     6 us  100-500 us  100-500 us         -     0     -      0    0
total of 2 edges                      2       0  5.0 MiB      6       0 B      0     6 us  100-500 us  100-500 us         -     0     -      0    0

unavailable: drop: no hook
unresolved: owner: 3
lost: 2 reads and writes, 4.0 KiB: the table of connections was full (--max-connections)
delayed: the end of 7 connections waited in the kernel's table
";
    assert_eq!(&*text(&table, SHOWN), expected);
}

#[test]
fn names_cannot_reach_the_terminal_and_long_ends_are_cut() {
    let mut table = EdgeTable::default();
    table
        .edges
        .push(edge("\u{1b}[31mx\n\u{202e}evil\u{1b}[0m and more", 1));
    let text = text(&table, SHOWN);
    let row = text.lines().nth(1).unwrap();
    assert!(row.is_ascii() && !row.contains('\u{1b}'), "{row}");
    let client = row.split("  ").next().unwrap();
    assert_eq!(client.len(), LONGEST_END, "{client}");
    assert!(client.contains("..") && client.ends_with(":*"), "{client}");
}

#[test]
fn bytes_have_units() {
    for (count, expected) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (200 << 10, "200 KiB"),
        (1 << 40, "1.0 TiB"),
        (u64::MAX, "16384 PiB"),
    ] {
        assert_eq!(bytes(count), expected);
    }
}

#[test]
fn nothing_is_said() {
    let text = text(&EdgeTable::default(), SHOWN);
    assert!(text.ends_with("no connections were seen\n"), "{text}");
}

#[test]
fn how_long_was_counted_is_said_when_it_is_known() {
    let mut table = EdgeTable::default();
    assert!(!text(&table, SHOWN).contains("counted for"));
    table.window = Some(Window {
        from_ns: 1_000_000_000,
        to_ns: 4_058_999_999,
    });
    let text = text(&table, SHOWN);
    assert!(text.contains("\ncounted for 3.05 s\n"), "{text}");
}
