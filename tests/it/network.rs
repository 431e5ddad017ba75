//! Connections: every byte and call of the test's own sockets, against what the test did and what the
//! kernel's sockets say.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::AsRawFd as _,
    time::Duration,
};

use profiler_tests::{
    agent::{self, Agent},
    netns::Netns,
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::{
    edges::{WAIT, Watch, assert_own_ends, edge_to, number},
    network_tcp::bound,
    targets::{EXIT, START},
};

/// Checks calls and bytes of one end.
fn assert_transfers(side: &Value, written: (u64, u64), read_bytes: u64) {
    assert_eq!(number(&side["write"]["count"]), written.0, "{side:#}");
    assert_eq!(number(&side["write"]["bytes"]), written.1, "{side:#}");
    assert_eq!(number(&side["read"]["bytes"]), read_bytes, "{side:#}");
}

/// A connection within this process.
fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _from) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(EXIT)).unwrap();
        end.set_nodelay(true).unwrap();
    }
    (client, server)
}

/// Packets that a socket has sent again, by its own account: on a busy machine also some that were not lost.
pub(crate) fn sent_again(socket: &TcpStream) -> u64 {
    // SAFETY: zeros are an account of nothing.
    let mut account: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&account)).unwrap();
    // SAFETY: the account is as long as `length` says, and lives through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut account).cast(),
            &raw mut length,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    account.tcpi_total_retrans.into()
}

fn send(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    from.write_all(&vec![7; bytes]).unwrap();
    to.read_exact(&mut vec![0; bytes]).unwrap();
}

#[test]
fn bytes_and_calls_are_exact_over_ipv4_and_ipv6() {
    let agent = Agent::start().unwrap();
    for (bound, shown) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let listener = TcpListener::bind(bound).unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Watch::own(&agent);
        let (mut client, mut server) = connect(&listener);
        for size in [1, 100, 1000, 1001] {
            send(&mut client, &mut server, size);
        }
        send(&mut server, &mut client, 5000);
        // Data that is only looked at is not read.
        client.write_all(b"looked at").unwrap();
        assert!(server.peek(&mut [0; 4]).unwrap() > 0);
        server.read_exact(&mut [0; 9]).unwrap();
        let client_port = client.local_addr().unwrap().port();
        let again = [&client, &server].map(sent_again);
        drop((client, server));
        let table = watch.finish();
        let edge = edge_to(&table, port);
        assert_own_ends(edge);
        assert_eq!(edge["client"]["port"], client_port);
        for end in ["client", "server"] {
            assert_eq!(edge[end]["address"], shown);
        }
        assert_eq!(edge["original_destination"], Value::Null);
        let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
        assert_transfers(client, (5, 2111), 5000);
        assert_transfers(server, (1, 5000), 2111);
        for (side, again) in [client, server].into_iter().zip(again) {
            assert_eq!(side["connections"], json!({ "count": 1, "open": 0 }));
            // The end of the stream may be sent again after that, too.
            let told = number(&side["retransmit"]["count"]);
            assert!((again..=again + 1).contains(&told), "{again}: {side:#}");
            assert_eq!(side["write"]["time_ns"], Value::Null);
        }
        assert_eq!(client["connect"]["count"], 1);
        assert_eq!(client["connect"]["failed"], 0);
        assert!(number(&client["connect"]["time_ns"]) > 0);
        assert!(number(&client["write_rtt_us"]["count"]) > 0, "{client:#}");
        let waits = &server[WAIT];
        let counts = waits["histogram"]["counts"].as_array().unwrap();
        assert_eq!(
            counts.iter().map(number).sum::<u64>(),
            number(&waits["count"])
        );
        assert!(number(&waits["count"]) > 0);
        // The socket's own account; the end of a stream counts as one byte.
        assert_eq!(client["socket"]["sent_bytes"], 2111);
        assert!((2111..=2112).contains(&number(&server["socket"]["received_bytes"])));
        assert!(
            table["unavailable"]["write.time_ns"].is_string(),
            "{table:#}"
        );
        assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
    }
}

#[test]
fn a_connection_from_before_the_task_has_its_ends_and_only_its_new_bytes() {
    let agent = Agent::start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mut client, mut server) = connect(&listener);
    send(&mut client, &mut server, 4321);
    let watch = Watch::own(&agent);
    send(&mut client, &mut server, 100);
    send(&mut server, &mut client, 10);
    let table = watch.finish();
    let edge = edge_to(&table, port);
    assert_own_ends(edge);
    assert_transfers(&edge["metrics"]["client"], (1, 100), 10);
    assert_transfers(&edge["metrics"]["server"], (1, 10), 100);
    for end in ["client", "server"] {
        let side = &edge["metrics"][end];
        assert_eq!(side["connections"], json!({ "count": 1, "open": 1 }));
    }
}

#[test]
fn thousands_of_short_connections_are_all_there() {
    const CONNECTIONS: u64 = 3000;
    let agent = Agent::start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::own(&agent);
    for _ in 0..CONNECTIONS {
        let (mut client, mut server) = connect(&listener);
        send(&mut client, &mut server, 20);
        send(&mut server, &mut client, 300);
    }
    let table = watch.finish();
    let edge = edge_to(&table, port);
    assert_own_ends(edge);
    let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
    assert_transfers(client, (CONNECTIONS, 20 * CONNECTIONS), 300 * CONNECTIONS);
    assert_transfers(server, (CONNECTIONS, 300 * CONNECTIONS), 20 * CONNECTIONS);
    for side in [client, server] {
        assert_eq!(
            side["connections"],
            json!({ "count": CONNECTIONS, "open": 0 })
        );
    }
    assert_eq!(client["connect"]["count"], CONNECTIONS);
    assert_eq!(edge["client"]["port"], Value::Null);
    assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
}

#[test]
fn a_refused_connection_and_a_reset_are_told_apart() {
    let agent = Agent::start().unwrap();
    // It never listens, and no other socket can get its port.
    let refusing = bound(SocketAddrV4::new([127, 0, 0, 1].into(), 0)).unwrap();
    let closed = SocketAddr::try_from(rustix::net::getsockname(&refusing).unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::own(&agent);
    let refused = TcpStream::connect(closed).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let (mut client, server) = connect(&listener);
    // Closing with unread data resets the connection.
    client.write_all(b"never read").unwrap();
    server.peek(&mut [0]).unwrap();
    drop(server);
    let reset = client.read(&mut [0]).unwrap_err();
    assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
    drop(client);
    let table = watch.finish();
    // It has no other end that could have been missed.
    let unresolved = &table["unresolved"];
    assert_eq!(unresolved["peer_on_this_node"], Value::Null, "{unresolved}");
    let refused = &edge_to(&table, closed.port())["metrics"]["client"];
    assert_eq!(refused["connect"]["count"], 0, "{refused:#}");
    assert_eq!(refused["connect"]["failed"], 1);
    assert_eq!(refused["reset"]["received"], 1);
    let errors = &refused["error"];
    assert_eq!(errors["by_errno"], json!({ "111": 1 }), "{errors}");
    let edge = edge_to(&table, port);
    assert_eq!(edge["metrics"]["server"]["reset"]["sent"], 1, "{edge:#}");
    assert_eq!(edge["metrics"]["client"]["reset"]["received"], 1);
    assert_eq!(
        edge["metrics"]["client"]["error"]["by_errno"],
        json!({ "104": 1 })
    );
}

#[test]
fn what_does_not_fit_the_table_is_counted() {
    const CONNECTIONS: u64 = 64;
    const BYTES: u64 = 1000;
    let netns = Netns::create("full").unwrap();
    let path = netns.path();
    let arguments = [
        "net",
        "--netns",
        path.to_str().unwrap(),
        "--duration=300s",
        "--max-connections=16",
        "--json",
    ];
    let (folder, _guard) = profiler_tests::cleanup::scratch_directory("net").unwrap();
    let mut watching = agent::launch(&arguments, "net", &folder).unwrap();
    wait_for("the command watches", START, || {
        watching.errors().contains("watching").then_some(())
    })
    .unwrap();
    netns
        .within(|| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let mut pairs: Vec<_> = (0..CONNECTIONS).map(|_| connect(&listener)).collect();
            for (client, server) in &mut pairs {
                send(client, server, usize::try_from(BYTES)?);
            }
            Ok(())
        })
        .unwrap();
    watching.interrupt(rustix::process::Signal::TERM).unwrap();
    let output = watching.output();
    let table: Value = serde_json::from_str(&output).unwrap_or_else(|error| {
        panic!("{error}: {output}\n{}", watching.errors());
    });
    let mut counted = 0;
    for edge in table["edges"].as_array().unwrap() {
        for end in ["client", "server"] {
            let side = &edge["metrics"][end];
            for what in ["write", "read"] {
                counted += side[what]["bytes"].as_u64().unwrap_or(0);
            }
        }
    }
    let lost = number(&table["lost"]["bytes"]);
    assert!(lost > 0 && counted > 0, "{table:#}");
    assert_eq!(counted + lost, 2 * CONNECTIONS * BYTES, "{table:#}");
    assert!(number(&table["lost"]["events"]) > 0);
}

/// A number behind `name:` in the output of `ss -i`; 0 when it is not there.
fn ss_number(output: &str, name: &str) -> u64 {
    let rest = output.split_once(&format!(" {name}:"));
    let digits: String = rest
        .map_or("", |(_, rest)| rest)
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || *letter == '/')
        .collect();
    // `retrans:NOW/TOTAL`.
    let last = digits.rsplit('/').next().unwrap_or_default();
    last.parse().unwrap_or(0)
}

#[test]
fn retransmits_and_drops_are_those_of_the_socket() {
    let (left, right) = (
        Netns::create("left").unwrap(),
        Netns::create("right").unwrap(),
    );
    Netns::join((&left, "10.199.0.1/24"), (&right, "10.199.0.2/24")).unwrap();
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = right
        .within(|| Ok(TcpListener::bind("10.199.0.2:0")?))
        .unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let mut client = left.within(|| Ok(TcpStream::connect(address)?)).unwrap();
    let (mut server, _from) = listener.accept().unwrap();
    right
        .run(&[
            "iptables",
            "-A",
            "INPUT",
            "-p",
            "tcp",
            "-m",
            "statistic",
            "--mode",
            "nth",
            "--every",
            "20",
            "--packet",
            "0",
            "-j",
            "DROP",
        ])
        .unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        let mut all = 0_u64;
        while let Ok(count @ 1..) = server.read(&mut bytes) {
            all += count as u64;
        }
        all
    });
    for _ in 0..200 {
        client.write_all(&[7; 10_000]).unwrap();
    }
    // All has arrived when nothing is left to be acknowledged.
    let port = address.port().to_string();
    let filter = ["ss", "-tinHO", "dport", "=", &format!(":{port}")];
    let socket = wait_for("everything is acknowledged", EXIT, || {
        let socket = left.run(&filter).unwrap();
        let idle = ss_number(&socket, "unacked") == 0 && ss_number(&socket, "notsent") == 0;
        idle.then_some(socket)
    })
    .unwrap();
    drop(client);
    assert_eq!(reader.join().unwrap(), 2_000_000);
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_own_ends(edge);
    let addresses: Vec<IpAddr> = ["client", "server"]
        .map(|end| edge[end]["address"].as_str().unwrap().parse().unwrap())
        .into();
    assert_eq!(
        addresses,
        ["10.199.0.1", "10.199.0.2"].map(|text| text.parse::<IpAddr>().unwrap())
    );
    let side = &edge["metrics"]["client"];
    assert_eq!(number(&side["write"]["bytes"]), 2_000_000);
    let retransmits = ss_number(&socket, "retrans");
    assert!(retransmits > 0, "{socket}");
    // The last segment, which ends the stream, may be lost as well.
    let seen = number(&side["retransmit"]["count"]);
    assert!(
        (retransmits..=retransmits + 3).contains(&seen),
        "{seen}: {socket}"
    );
    assert_eq!(
        number(&edge["metrics"]["server"]["read"]["bytes"]),
        2_000_000
    );
    let waited = Duration::from_nanos(number(&edge["metrics"]["server"][WAIT]["time_ns"]));
    assert!(waited > Duration::ZERO);
}
