//! Which ends of Unix sockets belong together.

use profiler_common::unix_sockets::UnixSocket;

use super::*;

const PATH: &[u8] = b"/run/server.sock\0";

/// A socket that wrote as many bytes as its cookie says.
fn end(cookie: u64, peer_cookie: u64, pid: u32, name: &[u8], peer_name: &[u8]) -> UnixEnd {
    let mut socket = UnixSocket {
        cookie,
        peer_cookie,
        inode: 100 + cookie,
        peer_inode: if peer_cookie == 0 {
            0
        } else {
            100 + peer_cookie
        },
        kind: 1,
        sent_bytes: cookie,
        sent_count: 1,
        pid,
        ..UnixSocket::default()
    };
    for (bytes, to, length) in [
        (name, &mut socket.name, &mut socket.name_bytes),
        (
            peer_name,
            &mut socket.peer_name,
            &mut socket.peer_name_bytes,
        ),
    ] {
        to[..bytes.len()].copy_from_slice(bytes);
        *length = u32::try_from(bytes.len()).unwrap();
    }
    UnixEnd::decode(&socket)
}

fn nobody(_process: ProcessKey) -> Identity {
    Identity::default()
}

fn pids(edge: &Edge) -> (Option<u32>, Option<u32>) {
    (edge.key.client.pid, edge.key.server.pid)
}

fn written(edge: &Edge) -> (Option<u64>, Option<u64>) {
    let bytes = |side: &Option<SideMetrics>| side.as_ref().map(|side| side.write.bytes);
    (bytes(&edge.client), bytes(&edge.server))
}

#[test]
fn both_ends_are_one_edge_to_the_name() {
    let ends = [end(1, 2, 11, b"", PATH), end(2, 1, 22, PATH, b"")];
    let (edges, unresolved) =
        UnixEdgeAggregator::default().table(&ends, &UnixListing::default(), nobody);
    let [edge] = edges.as_slice() else {
        panic!("{edges:?}");
    };
    assert_eq!(pids(edge), (Some(11), Some(22)));
    assert_eq!(written(edge), (Some(1), Some(2)));
    assert_eq!(edge.key.server.address.to_string(), "/run/server.sock");
    assert_eq!(edge.key.client.address.to_string(), "unnamed");
    assert!(unresolved.is_empty(), "{unresolved:?}");
    // An end whose namespace could not be read is in none that is known.
    assert_eq!(edge.namespaces, EdgeNamespaces::default());
}

#[test]
fn ends_say_in_which_namespace_they_are() {
    let mut ends = [end(1, 2, 11, b"", PATH), end(2, 1, 22, PATH, b"")];
    (ends[0].network_namespace, ends[1].network_namespace) = (7, 8);
    let (edges, _) = UnixEdgeAggregator::default().table(&ends, &UnixListing::default(), nobody);
    let known = EdgeNamespaces {
        client: Some(7),
        server: Some(8),
    };
    assert_eq!(edges[0].namespaces, known);
}

#[test]
fn an_end_that_outlives_its_peer_stays_in_the_same_edge() {
    let mut aggregator = UnixEdgeAggregator::default();
    let listing = UnixListing::default();
    let (client, server) = (end(1, 2, 11, b"", PATH), end(2, 1, 22, PATH, b""));
    let both = [client, server.clone()];
    aggregator.settle(&both, &listing, |end| end.cookie == 1);
    aggregator.settle(&[server], &listing, |_end| true);
    let (edges, unresolved) = aggregator.table(&[], &listing, nobody);
    let [edge] = edges.as_slice() else {
        panic!("{edges:?}");
    };
    assert_eq!(written(edge), (Some(1), Some(2)));
    assert_eq!(edge.client.as_ref().unwrap().open, 0);
    assert!(unresolved.is_empty(), "{unresolved:?}");
}

#[test]
fn a_peer_that_is_not_watched_is_known_by_its_inode() {
    let mut listing = UnixListing::default();
    listing.own(102, 22);
    let ends = [end(1, 2, 11, b"", PATH)];
    let (edges, unresolved) = UnixEdgeAggregator::default().table(&ends, &listing, nobody);
    assert_eq!(pids(&edges[0]), (Some(11), Some(22)));
    assert_eq!(written(&edges[0]), (Some(1), None));
    assert!(unresolved.is_empty(), "{unresolved:?}");
}

#[test]
fn a_receiver_of_datagrams_has_no_peer() {
    let ends = [end(1, 0, 11, b"\0log", b"")];
    let (edges, unresolved) =
        UnixEdgeAggregator::default().table(&ends, &UnixListing::default(), nobody);
    assert_eq!(pids(&edges[0]), (None, Some(11)));
    assert_eq!(edges[0].key.server.address.to_string(), "@log");
    assert_eq!(edges[0].key.client.address.to_string(), "unknown");
    assert_eq!(unresolved.get("unix_peer"), Some(&1));
}

#[test]
fn of_a_pair_the_end_that_was_made_first_is_the_client() {
    let ends = [end(2, 1, 22, b"", b""), end(1, 2, 11, b"", b"")];
    let (edges, _) = UnixEdgeAggregator::default().table(&ends, &UnixListing::default(), nobody);
    assert_eq!(edges.len(), 1);
    assert_eq!(pids(&edges[0]), (Some(11), Some(22)));
}

#[test]
fn of_two_names_the_one_that_is_listened_on_is_the_servers() {
    let mut listing = UnixListing::default();
    listing.add(
        1,
        vec![UnixDiagSocket {
            cookie: 9,
            inode: 109,
            peer_inode: 0,
            kind: 1,
            listening: true,
            network_namespace: 1,
            name: PATH.to_vec(),
        }],
    );
    let ends = [end(1, 2, 11, PATH, b"\0me"), end(2, 1, 22, b"\0me", PATH)];
    let (edges, _) = UnixEdgeAggregator::default().table(&ends, &listing, nobody);
    assert_eq!(edges.len(), 1);
    assert_eq!(pids(&edges[0]), (Some(22), Some(11)));
}

#[test]
fn a_process_is_one_end_whatever_its_threads_are_called() {
    let named = |cookie: u64, comm: &str| UnixEnd {
        comm: comm.to_owned(),
        ..end(cookie, 10 + cookie, 11, b"", PATH)
    };
    let mut aggregator = UnixEdgeAggregator::default();
    let mut listing = UnixListing::default();
    for cookie in 1..=3 {
        listing.own(110 + cookie, 22);
    }
    let names = |comm: &'static str| {
        move |process: ProcessKey| Identity {
            comm: format!("{comm}-{}", process.pid),
            container: None,
        }
    };
    // The first has ended before the process was called something else.
    let first = [named(1, "app")];
    aggregator.settle(&first, &listing, |_end| true);
    let others = [named(2, "Compositor"), named(3, "IO thread")];
    let (edges, unresolved) = aggregator.table(&others, &listing, names("main"));
    let [edge] = edges.as_slice() else {
        panic!("{edges:?}");
    };
    assert_eq!(written(edge), (Some(1 + 2 + 3), None));
    assert_eq!(edge.key.client.comm, "main-11");
    assert_eq!(edge.key.client.start_ticks, Some(0));
    assert_eq!(edge.key.server.start_ticks, Some(1));
    assert!(unresolved.is_empty(), "{unresolved:?}");
}
