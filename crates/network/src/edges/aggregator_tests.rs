use crate::edges::{
    edge_of_connection::{EdgeOfConnection, Met},
    names::Identity,
};
use profiler_model::{
    Transfer,
    sockets::{Ends, Listing, Tracked, Translation},
};

use super::*;

fn process(pid: u32) -> ProcessKey {
    ProcessKey {
        pid,
        start_ticks: 1,
    }
}

fn flow(
    cookie: u64,
    namespace: u32,
    (local, remote): (&str, &str),
    direction: Option<Direction>,
    pid: u32,
) -> Flow {
    Flow {
        cookie,
        network_namespace: namespace,
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        direction,
        process: (pid != 0).then_some(process(pid)),
        shared: false,
        comm: format!("thread-{pid}"),
        seen_ns: cookie,
        captured_bytes: None,
        http: None,
        metrics: SideMetrics {
            connections: 1,
            write: Transfer {
                count: 1,
                bytes: cookie,
            },
            ..SideMetrics::default()
        },
    }
}

const CLIENT: Option<Direction> = Some(Direction::Client);
const SERVER: Option<Direction> = Some(Direction::Server);

fn edges(flows: &[Flow]) -> Vec<Edge> {
    EdgeAggregator::default()
        .table(flows, &SocketTable::default())
        .0
}

fn pids(edge: &Edge) -> (Option<u32>, Option<u32>) {
    (edge.key.client.pid, edge.key.server.pid)
}

#[test]
fn both_ends_of_a_connection_are_one_edge() {
    let ends = ("10.0.0.1:40000", "10.0.0.2:80");
    let found = edges(&[
        flow(1, 1, ends, CLIENT, 11),
        flow(2, 2, (ends.1, ends.0), SERVER, 22),
    ]);
    let [edge] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(pids(edge), (Some(11), Some(22)));
    assert_eq!(edge.client_port, Some(40000));
    assert_eq!(edge.key.server_port, Some(80));
    assert_eq!(edge.key.original_destination, None);
    assert_eq!(edge.client.as_ref().unwrap().write.bytes, 1);
    assert_eq!(edge.server.as_ref().unwrap().write.bytes, 2);
}

#[test]
fn a_socket_that_is_connected_to_itself_is_its_own_peer() {
    let own = "127.0.0.1:40000";
    let found = edges(&[flow(1, 1, (own, own), CLIENT, 11)]);
    let [edge] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(pids(edge), (Some(11), Some(11)));
    assert!(edge.server.is_none());
}

#[test]
fn a_connect_that_failed_has_no_other_end_that_could_be_missed() {
    let ends = ("127.0.0.1:40000", "127.0.0.1:9");
    let mut one = flow(1, 1, ends, CLIENT, 11);
    let unresolved = |flow: &Flow| {
        let flows = std::slice::from_ref(flow);
        EdgeAggregator::default()
            .table(flows, &SocketTable::default())
            .2
    };
    assert_eq!(unresolved(&one).get("peer_on_this_node"), Some(&1));
    one.metrics.connects_failed = 1;
    assert_eq!(unresolved(&one), BTreeMap::new());
}

#[test]
fn loopback_connections_of_two_namespaces_are_not_mixed() {
    let ends = ("127.0.0.1:40000", "127.0.0.1:80");
    let found = edges(&[
        flow(1, 1, ends, CLIENT, 11),
        flow(2, 2, ends, CLIENT, 12),
        flow(3, 1, (ends.1, ends.0), SERVER, 21),
        flow(4, 2, (ends.1, ends.0), SERVER, 22),
    ]);
    let mut found: Vec<_> = found.iter().map(pids).collect();
    found.sort_unstable();
    assert_eq!(found, [(Some(11), Some(21)), (Some(12), Some(22))]);
}

#[test]
fn ends_say_in_which_namespace_their_sockets_are() {
    let across = ("10.0.0.1:40000", "10.0.0.2:80");
    let local = ("127.0.0.1:40000", "127.0.0.1:80");
    let found = edges(&[
        flow(1, 7, across, CLIENT, 11),
        flow(2, 8, (across.1, across.0), SERVER, 22),
        // Its other end was not seen, and is not on this node.
        flow(3, 7, ("10.0.0.1:40001", "192.0.2.1:443"), CLIENT, 12),
        // Not seen either, but it is no other namespace's loopback.
        flow(4, 9, local, CLIENT, 13),
        // One process with sockets in two namespaces.
        flow(5, 7, ("10.0.0.1:40002", "192.0.2.2:443"), CLIENT, 14),
        flow(6, 8, ("10.0.0.1:40003", "192.0.2.2:443"), CLIENT, 14),
    ]);
    let mut namespaces: Vec<_> = found
        .iter()
        .map(|edge| {
            (
                edge.key.client.pid,
                edge.namespaces.client,
                edge.namespaces.server,
            )
        })
        .collect();
    namespaces.sort_unstable();
    assert_eq!(
        namespaces,
        [
            (Some(11), Some(7), Some(8)),
            (Some(12), Some(7), None),
            (Some(13), Some(9), Some(9)),
            (Some(14), None, None),
        ]
    );
}

#[test]
fn a_redirected_connection_keeps_where_it_was_to_go() {
    // To the sidecar beside the app, and to the one in front of another app.
    let found = edges(&[
        flow(1, 1, ("10.0.0.1:40000", "10.0.0.2:80"), CLIENT, 11),
        flow(2, 1, ("127.0.0.1:15001", "10.0.0.1:40000"), SERVER, 12),
        flow(3, 1, ("10.0.0.1:50000", "10.0.0.2:80"), CLIENT, 12),
        flow(4, 2, ("10.0.0.2:15006", "10.0.0.1:50000"), SERVER, 21),
    ]);
    let found: Vec<_> = found
        .iter()
        .map(|edge| {
            (
                pids(edge),
                edge.key.server_port,
                edge.key.original_destination,
            )
        })
        .collect();
    let asked = Some(("10.0.0.2".parse().unwrap(), 80));
    assert_eq!(
        found,
        [
            ((Some(11), Some(12)), Some(15001), asked),
            ((Some(12), Some(21)), Some(15006), asked)
        ]
    );
}

#[test]
fn a_direction_that_was_not_seen_follows_from_the_other_end() {
    let ends = ("10.0.0.1:40000", "10.0.0.2:80");
    let found = edges(&[
        flow(1, 1, ends, CLIENT, 11),
        flow(2, 2, (ends.1, ends.0), None, 22),
    ]);
    assert_eq!(found.len(), 1);
    assert_eq!(pids(&found[0]), (Some(11), Some(22)));
}

#[test]
fn an_end_that_stays_open_longer_belongs_to_the_same_edge() {
    let ends = ("10.0.0.1:40000", "10.0.0.2:80");
    let (client, server) = (
        flow(1, 1, ends, CLIENT, 11),
        flow(2, 2, (ends.1, ends.0), SERVER, 22),
    );
    let socket_table = SocketTable::default();
    let mut aggregator = EdgeAggregator::default();
    aggregator.end(client, 0);
    aggregator.settle(std::slice::from_ref(&server), (&socket_table, 0), 1, false);
    assert!(aggregator.waiting.is_empty());
    aggregator.end(server, 10 * WAIT_NS);
    let (found, _, unresolved) = aggregator.table(&[], &socket_table);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].client.is_some() && found[0].server.is_some());
    assert!(unresolved.is_empty(), "{unresolved:?}");
}

#[test]
fn what_ended_alone_is_added_up_after_a_while() {
    let socket_table = SocketTable::default();
    let mut aggregator = EdgeAggregator::default();
    for (cookie, port) in [(1, 40000), (2, 40001)] {
        let local = format!("10.0.0.1:{port}");
        aggregator.end(flow(cookie, 1, (&local, "192.0.2.1:443"), CLIENT, 11), 0);
    }
    aggregator.settle(&[], (&socket_table, 9), WAIT_NS - 1, false);
    assert_eq!(aggregator.waiting.len(), 2);
    aggregator.settle(&[], (&socket_table, 9), WAIT_NS, false);
    assert!(aggregator.waiting.is_empty());
    let (found, ..) = aggregator.table(&[], &socket_table);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].client_port, None);
    let client = found[0].client.as_ref().unwrap();
    assert_eq!((client.connections, client.write.bytes), (2, 3));
    assert_eq!(found[0].key.server.pid, None);
}

#[test]
fn processes_are_named_by_their_name_and_not_by_a_thread() {
    let mut aggregator = EdgeAggregator::default();
    aggregator.names().name(process(11), || {
        Some(Identity {
            comm: "envoy".to_owned(),
            container: Some("c0ffee".to_owned()),
        })
    });
    let flows = [flow(1, 1, ("10.0.0.1:1", "10.0.0.2:2"), CLIENT, 11)];
    let (found, ..) = aggregator.table(&flows, &SocketTable::default());
    assert_eq!(found[0].key.client.comm, "envoy");
    assert_eq!(found[0].key.client.container.as_deref(), Some("c0ffee"));
}

#[test]
fn a_number_that_is_used_again_makes_another_edge() {
    let ends = ("10.0.0.1:40000", "192.0.2.1:443");
    let mut later = flow(2, 1, ("10.0.0.1:40001", ends.1), CLIENT, 11);
    later.process = Some(ProcessKey {
        pid: 11,
        start_ticks: 2,
    });
    let found = edges(&[flow(1, 1, ends, CLIENT, 11), later]);
    let starts: Vec<_> = found
        .iter()
        .map(|edge| edge.key.client.start_ticks)
        .collect();
    assert_eq!(starts, [Some(1), Some(2)]);
}

#[test]
fn a_connection_that_began_after_the_last_reading_waits_for_the_next() {
    let socket_table = SocketTable::default();
    let mut aggregator = EdgeAggregator::default();
    let ends = ("10.0.0.1:40000", "192.0.2.1:443");
    aggregator.end(flow(5, 1, ends, CLIENT, 11), 10);
    aggregator.settle(&[], (&socket_table, 4), 10 + WAIT_NS, false);
    assert_eq!(aggregator.waiting.len(), 1);
    aggregator.settle(&[], (&socket_table, 5), 10 + WAIT_NS, false);
    assert!(aggregator.waiting.is_empty());
}

#[test]
fn a_connection_that_several_processes_used_is_counted() {
    let ends = ("10.0.0.1:40000", "192.0.2.1:443");
    let mut shared = flow(1, 1, ends, CLIENT, 11);
    shared.shared = true;
    let (_, _, unresolved) = EdgeAggregator::default().table(&[shared], &SocketTable::default());
    assert_eq!(unresolved["used_by_several_processes"], 1);
}

/// A table of sockets that knows one translation.
fn translating(namespace: u32, before: (&str, &str), after: (&str, &str)) -> SocketTable {
    let ends = |(client, server): (&str, &str)| Ends {
        client: client.parse().unwrap(),
        server: server.parse().unwrap(),
    };
    let translation = Translation {
        before: ends(before),
        after: ends(after),
    };
    let listing = Listing {
        without_diag: None,
        sockets: Vec::new(),
        addresses: Vec::new(),
        tracked: Ok(Tracked {
            translations: vec![translation],
            cut: false,
        }),
    };
    SocketTable::new(vec![(namespace, listing)], |_inode| None)
}

#[test]
fn ends_behind_both_kinds_of_translation_are_joined() {
    // A service's address on the node, the client hidden behind the node's.
    let asked = ("10.0.0.1:40000", "10.96.0.1:80");
    let seen = ("10.0.1.1:51000", "10.0.1.2:8080");
    let socket_table = translating(7, asked, seen);
    let flows = [
        flow(1, 1, asked, CLIENT, 11),
        flow(2, 2, (seen.1, seen.0), SERVER, 22),
    ];
    let (found, _, unresolved) = EdgeAggregator::default().table(&flows, &socket_table);
    let [edge] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(pids(edge), (Some(11), Some(22)));
    assert_eq!(edge.key.client.address.to_string(), "10.0.0.1");
    assert_eq!(edge.key.server.address.to_string(), "10.0.1.2");
    assert_eq!(edge.key.server_port, Some(8080));
    let original = Some(("10.96.0.1".parse().unwrap(), 80));
    assert_eq!(edge.key.original_destination, original);
    assert!(unresolved.is_empty(), "{unresolved:?}");
    // Each end alone says the same of the other.
    for alone in &flows {
        let (found, ..) =
            EdgeAggregator::default().table(std::slice::from_ref(alone), &socket_table);
        let key = &found[0].key;
        assert_eq!(key.client.address.to_string(), "10.0.0.1");
        assert_eq!(key.server.address.to_string(), "10.0.1.2");
        assert_eq!(key.original_destination, original);
        assert_eq!(found[0].client_port, Some(40000));
    }
}

#[test]
fn an_unknown_destination_is_counted() {
    let server = flow(1, 1, ("10.0.0.1:15006", "192.0.2.1:40000"), SERVER, 11);
    let (_, _, unresolved) = EdgeAggregator::default().table(&[server], &SocketTable::default());
    assert_eq!(unresolved["original_destination"], 1);
}

#[test]
fn the_largest_connections_are_listed_with_the_id_of_their_edge() {
    let flows: Vec<Flow> = (1..=150)
        .map(|cookie| {
            let local = format!("10.0.0.1:{}", 40_000 + cookie);
            flow(cookie, 1, (&local, "192.0.2.1:80"), CLIENT, 11)
        })
        .collect();
    let aggregator = EdgeAggregator::default();
    let socket_table = SocketTable::default();
    let mut connections = crate::edges::Connections::default();
    let (found, ..) = aggregator.table_with(&flows, &socket_table, |pair, direction, flow| {
        connections.note(pair, direction, flow);
    });
    let listed = connections.finish(1_000);
    assert_eq!((found.len(), listed.len()), (1, 100));
    let id = profiler_model::EdgeId::of(&found[0].key);
    let (edge, largest) = &listed[0];
    assert_eq!((*edge, largest.write.bytes), (id, 150));
    assert_eq!((largest.pid, largest.age_ns), (Some(11), 850));
    assert_eq!(largest.local.to_string(), "10.0.0.1:40150");
    assert!(listed.iter().all(|(_, one)| one.write.bytes > 50));
}

#[test]
fn single_connections_are_told_with_their_edge_also_when_they_have_ended() {
    let ends = ("10.0.0.1:40000", "10.0.0.2:80");
    let socket_table = SocketTable::default();
    let (client, server) = (
        flow(1, 1, ends, CLIENT, 11),
        flow(2, 2, (ends.1, ends.0), SERVER, 22),
    );
    let open = flow(3, 1, ("10.0.0.1:40001", ends.1), CLIENT, 11);
    for remembers in [false, true] {
        let mut aggregator = EdgeAggregator::default();
        if remembers {
            aggregator.remember_edges();
        }
        aggregator.end(client.clone(), 0);
        aggregator.end(server.clone(), 0);
        aggregator.settle(&[], (&socket_table, 0), 0, true);
        let mut met = Vec::new();
        let listed = std::slice::from_ref(&open);
        aggregator.table_with(listed, &socket_table, |pair, _, flow| {
            met.push(Met::new(pair, flow));
        });
        let edge_of_connection = aggregator.take_edges_of_connections(met);
        let pids = |cookie| {
            let edge_of: Option<&EdgeOfConnection> = edge_of_connection.get(&cookie);
            edge_of.map(|edge_of| (edge_of.edge.client.pid, edge_of.edge.server.pid))
        };
        let ended = remembers.then_some((Some(11), Some(22)));
        assert_eq!((pids(1), pids(2)), (ended, ended));
        assert_eq!(pids(3), Some((Some(11), None)));
        assert_eq!(
            aggregator.take_edges_of_connections(Vec::new()),
            HashMap::new(),
            "they are told once"
        );
    }
}
