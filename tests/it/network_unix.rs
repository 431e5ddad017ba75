//! Unix sockets: edges between the processes at both ends, with their names and every byte.

use std::{
    io::{Read as _, Write as _},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
    process::{Command, Stdio},
};

use profiler_tests::{agent::Agent, cleanup::scratch_directory, wait::wait_for};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde_json::{Value, json};

use crate::{
    edges::{WAIT, Watch, assert_own_ends, edge_to_name, edges_that, number, transfer},
    targets::{EXIT, START, Targets},
};

/// A connection within this process to a name.
fn connect(listener: &UnixListener) -> (UnixStream, UnixStream) {
    let client = UnixStream::connect_addr(&listener.local_addr().unwrap()).unwrap();
    let (server, _from) = listener.accept().unwrap();
    (client, server)
}

fn send(from: &mut UnixStream, to: &mut UnixStream, bytes: usize) {
    from.write_all(&vec![7; bytes]).unwrap();
    to.read_exact(&mut vec![0; bytes]).unwrap();
}

fn abstract_name(what: &str) -> (String, SocketAddr) {
    let name = format!("profiler-{what}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    (format!("@{name}"), address)
}

fn assert_unix(edge: &Value) {
    assert_eq!(edge["protocol"], "unix", "{edge:#}");
    for end in ["client", "server"] {
        assert_eq!(edge[end]["port"], Value::Null, "{edge:#}");
        let side = &edge["metrics"][end];
        if !side.is_null() {
            for nothing in [
                "connect",
                "close",
                "write_rtt_us",
                "min_rtt_us",
                "retransmit",
                "drop",
                "reset",
                "socket",
            ] {
                assert_eq!(side[nothing], Value::Null, "{nothing}: {edge:#}");
            }
        }
    }
}

#[test]
fn streams_have_their_name_both_ends_and_every_byte() {
    let agent = Agent::start().unwrap();
    let (folder, _guard) = scratch_directory("unix").unwrap();
    // What a name holds must not reach a terminal.
    let path = folder.join("server\x1b[31m.sock");
    let (name, address) = abstract_name("stream");
    let listeners = [
        UnixListener::bind(&path).unwrap(),
        UnixListener::bind_addr(&address).unwrap(),
    ];
    let watch = Watch::own(&agent);
    for listener in &listeners {
        let (mut client, mut server) = connect(listener);
        for size in [1, 100, 1000] {
            send(&mut client, &mut server, size);
        }
        send(&mut server, &mut client, 5000);
        // Written before it is accepted, and closed before it is read.
        let mut early = UnixStream::connect_addr(&listener.local_addr().unwrap()).unwrap();
        early.write_all(&[7; 50]).unwrap();
        drop(early);
        let (mut late, _from) = listener.accept().unwrap();
        late.read_exact(&mut [0; 50]).unwrap();
    }
    let table = watch.finish();
    let path = folder.join("server\\x1b[31m.sock");
    for name in [path.to_str().unwrap(), &name] {
        let edge = edge_to_name(&table, name);
        assert_own_ends(edge);
        assert_unix(edge);
        assert_eq!(edge["client"]["address"], "unnamed");
        let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
        assert_eq!(transfer(client, "write"), (4, 1151), "{edge:#}");
        assert_eq!(number(&client["read"]["bytes"]), 5000, "{edge:#}");
        assert_eq!(transfer(server, "write"), (1, 5000), "{edge:#}");
        assert_eq!(number(&server["read"]["bytes"]), 1151, "{edge:#}");
        assert!(number(&server[WAIT]["count"]) > 0, "{edge:#}");
        for side in [client, server] {
            assert_eq!(
                side["connections"],
                json!({ "count": 2, "open": 0 }),
                "{edge:#}"
            );
        }
    }
    for metric in ["unix.connect", "unix.write_rtt_us"] {
        assert!(table["unavailable"][metric].is_string(), "{table:#}");
    }
    assert_eq!(table["unresolved"], json!({}), "{table:#}");
    assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
}

#[test]
fn pairs_lead_to_the_process_that_inherited_the_other_end() {
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let (mut own, other) = UnixStream::pair().unwrap();
    let input: OwnedFd = other.into();
    let output = input.try_clone().unwrap();
    let mut echo = Command::new("cat")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .spawn()
        .unwrap();
    own.set_read_timeout(Some(EXIT)).unwrap();
    own.write_all(&[7; 77]).unwrap();
    own.read_exact(&mut [0; 77]).unwrap();
    let child = echo.id();
    let is_it = |edge: &Value| edge["server"]["pid"] == child;
    let table = wait_for("the edge is there", START, || {
        let table = watch.now();
        (!edges_that(&table, is_it).is_empty()).then_some(table)
    });
    // It ends at the end of its input.
    drop(own);
    assert!(echo.wait().unwrap().success());
    let early = table.unwrap();
    let early = edges_that(&early, is_it);
    assert_eq!(early[0]["server"]["comm"], "cat", "{early:#?}");
    let table = watch.finish();
    let [edge] = edges_that(&table, is_it)[..] else {
        panic!("{table:#}");
    };
    assert_unix(edge);
    assert_eq!(edge["client"]["pid"], std::process::id());
    for end in ["client", "server"] {
        let side = &edge["metrics"][end];
        assert_eq!(edge[end]["address"], "unnamed");
        assert_eq!(number(&side["write"]["bytes"]), 77, "{edge:#}");
        assert_eq!(number(&side["read"]["bytes"]), 77, "{edge:#}");
    }
}

/// Where the child of the test below finds the name that it is to write to.
const WRITE_TO: &str = "PROFILER_TEST_WRITE_TO";

#[test]
#[ignore = "not a test: the child of the next one"]
fn threads_that_write_and_end() {
    let name = std::env::var(WRITE_TO).unwrap();
    let writers = ["Compositor", "IO thread"].map(|thread| {
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let write = move || {
            let mut stream = UnixStream::connect_addr(&address).unwrap();
            stream.write_all(b"x").unwrap();
        };
        let thread = std::thread::Builder::new().name(thread.to_owned());
        thread.spawn(write).unwrap()
    });
    for writer in writers {
        writer.join().unwrap();
    }
}

#[test]
fn threads_of_a_process_that_has_ended_are_one_end_by_the_name_of_the_process() {
    let agent = Agent::start().unwrap();
    let (shown, address) = abstract_name("threads");
    let listener = UnixListener::bind_addr(&address).unwrap();
    // Of the whole node, so that the process was not known before.
    let watch = Watch::start(&agent, &json!({ "all": true }));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "network_unix::threads_that_write_and_end",
        ])
        .env(WRITE_TO, shown.trim_start_matches('@'))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    assert!(child.wait().unwrap().success());
    for _ in 0..2 {
        let (mut server, _from) = listener.accept().unwrap();
        server.read_exact(&mut [0]).unwrap();
    }
    let table = watch.finish();
    let edge = edge_to_name(&table, &shown);
    let client = &edge["client"];
    assert_eq!(client["pid"], pid, "{edge:#}");
    // The child runs the same program.
    let own = std::fs::read_to_string(format!("/proc/{}/comm", std::process::id())).unwrap();
    assert_eq!(client["comm"], own.trim_end(), "{edge:#}");
    assert!(number(&client["start_ticks"]) > 0, "{edge:#}");
    assert_eq!(
        transfer(&edge["metrics"]["client"], "write"),
        (2, 2),
        "{edge:#}"
    );
}

#[test]
fn packets_keep_their_borders() {
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let (left, right) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    for size in [10, 20, 30] {
        assert_eq!(rustix::io::write(&left, &vec![7; size]).unwrap(), size);
    }
    for size in [10, 20, 30] {
        assert_eq!(rustix::io::read(&right, &mut [0; 100]).unwrap(), size);
    }
    let table = watch.finish();
    let fits = |edge: &Value| {
        edge["protocol"] == "unix" && edge["metrics"]["client"]["write"]["bytes"] == 60
    };
    let [edge] = edges_that(&table, fits)[..] else {
        panic!("{table:#}");
    };
    assert_own_ends(edge);
    assert_eq!(transfer(&edge["metrics"]["client"], "write"), (3, 60));
    assert_eq!(transfer(&edge["metrics"]["server"], "read"), (3, 60));
    drop((left, right));
}

#[test]
fn datagrams_have_a_peer_only_where_it_is_known() {
    let agent = Agent::start().unwrap();
    let (name, address) = abstract_name("datagrams");
    let watch = Watch::own(&agent);
    let receiver = UnixDatagram::bind_addr(&address).unwrap();
    let connected = UnixDatagram::unbound().unwrap();
    connected.connect_addr(&address).unwrap();
    for size in [10, 20] {
        assert_eq!(connected.send(&vec![7; size]).unwrap(), size);
    }
    let unconnected = UnixDatagram::unbound().unwrap();
    assert_eq!(unconnected.send_to_addr(&[7; 5], &address).unwrap(), 5);
    for _ in 0..3 {
        receiver.recv(&mut [0; 100]).unwrap();
    }
    let table = watch.finish();
    let to_name = edges_that(&table, |edge| edge["server"]["address"] == name.as_str());
    let [sent] = to_name
        .iter()
        .filter(|edge| !edge["metrics"]["client"].is_null())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{table:#}");
    };
    assert_own_ends(sent);
    assert_unix(sent);
    assert_eq!(transfer(&sent["metrics"]["client"], "write"), (2, 30));
    // The senders to a datagram receiver are not reported, nor the destinations of an unconnected one.
    let [received] = to_name
        .iter()
        .filter(|edge| edge["client"]["pid"].is_null())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{table:#}");
    };
    assert_eq!(received["client"]["address"], "unknown");
    assert_eq!(transfer(&received["metrics"]["server"], "read"), (3, 35));
    let lost = edges_that(&table, |edge| edge["server"]["address"] == "unknown");
    let own = std::process::id();
    let lost: Vec<_> = lost
        .iter()
        .filter(|edge| edge["client"]["pid"] == own)
        .collect();
    assert_eq!(lost.len(), 1, "{table:#}");
    assert_eq!(transfer(&lost[0]["metrics"]["client"], "write"), (1, 5));
    assert_eq!(table["unresolved"]["unix_peer"], 2, "{table:#}");
}

#[test]
fn sockets_from_before_the_task_count_from_then_on_and_idle_ones_are_there() {
    let agent = Agent::start().unwrap();
    let (busy, address) = abstract_name("busy");
    let busy_listener = UnixListener::bind_addr(&address).unwrap();
    let (idle, address) = abstract_name("idle");
    let idle_listener = UnixListener::bind_addr(&address).unwrap();
    let (mut client, mut server) = connect(&busy_listener);
    let _kept = connect(&idle_listener);
    send(&mut client, &mut server, 4321);
    let watch = Watch::own(&agent);
    send(&mut client, &mut server, 100);
    let table = watch.finish();
    let edge = edge_to_name(&table, &busy);
    assert_own_ends(edge);
    assert_eq!(transfer(&edge["metrics"]["client"], "write"), (1, 100));
    assert_eq!(number(&edge["metrics"]["server"]["read"]["bytes"]), 100);
    let edge = edge_to_name(&table, &idle);
    assert_own_ends(edge);
    for end in ["client", "server"] {
        let side = &edge["metrics"][end];
        assert_eq!(transfer(side, "write"), (0, 0));
        assert_eq!(side["connections"], json!({ "count": 1, "open": 1 }));
    }
}

#[test]
fn a_server_that_is_not_watched_is_known_by_its_process() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (_nginx, path) = targets.nginx(1);
    let watch = Watch::own(&agent);
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(EXIT)).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut answer = [0; 4096];
    let count = client.read(&mut answer).unwrap();
    let name = path.to_str().unwrap();
    wait_for("the server is found", START, || {
        let table = watch.now();
        let found = edges_that(&table, |edge| {
            edge["server"]["address"] == name && edge["server"]["comm"] == "nginx"
        });
        (!found.is_empty()).then_some(())
    })
    .unwrap();
    let table = watch.finish();
    let edge = edge_to_name(&table, name);
    assert_unix(edge);
    assert_eq!(edge["client"]["pid"], std::process::id());
    assert_eq!(edge["metrics"]["server"], Value::Null, "{edge:#}");
    let client = &edge["metrics"]["client"];
    assert_eq!(transfer(client, "write"), (1, 27), "{edge:#}");
    assert_eq!(transfer(client, "read"), (1, count as u64), "{edge:#}");
}

#[test]
fn many_short_connections_do_not_fill_the_table() {
    const CONNECTIONS: u64 = 20_000;
    let agent = Agent::start().unwrap();
    let (name, address) = abstract_name("short");
    let listener = UnixListener::bind_addr(&address).unwrap();
    let watch = Watch::own(&agent);
    let mut counted = 0;
    for done in 0..CONNECTIONS {
        let (mut client, mut server) = connect(&listener);
        send(&mut client, &mut server, 20);
        drop((client, server));
        // Two entries each, and room for some sixteen thousand: what is gone leaves by and by.
        if done - counted >= 4000 {
            wait_for("connections are added up", START, || {
                let table = watch.now();
                let found = edges_that(&table, |edge| edge["server"]["address"] == name.as_str());
                let side = &found.first()?["metrics"]["client"]["connections"];
                counted = number(&side["count"]);
                let open = number(&side["open"]);
                (counted > done && open < 1000).then_some(())
            })
            .unwrap();
        }
    }
    let table = watch.finish();
    let edge = edge_to_name(&table, &name);
    assert_own_ends(edge);
    assert_eq!(
        transfer(&edge["metrics"]["client"], "write"),
        (CONNECTIONS, 20 * CONNECTIONS)
    );
    assert_eq!(
        transfer(&edge["metrics"]["server"], "read"),
        (CONNECTIONS, 20 * CONNECTIONS)
    );
    assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
}
