//! TCP beside the usual way: ends that connect to each other, servers that never read, and what the kernel
//! reports about round trips.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::OwnedFd,
    process::{Command, Stdio},
    time::Duration,
};

use profiler_tests::{
    agent::Agent,
    netns::Netns,
    peers::mptcp,
    wait::{wait_for, wait_until},
};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt},
};
use serde_json::{Value, json};

use crate::{
    edges::{Watch, assert_own_ends, edge_to, edges_that, number, transfer},
    targets::{EXIT, START},
};

/// A socket that is bound and does not wait.
pub(crate) fn bound(address: SocketAddrV4) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &address)?;
    Ok(socket)
}

#[test]
fn sockets_that_connect_to_each_other_are_both_clients() {
    let netns = Netns::create("both").unwrap();
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let [left, right] = [5001, 5002].map(|port| SocketAddrV4::new([127, 0, 0, 1].into(), port));
    // While nothing arrives both ask; then the repeated question of each meets the other's.
    let rule = ["INPUT", "-p", "tcp", "-j", "DROP"];
    let change = |how: &str| {
        let words: Vec<&str> = ["iptables", how].into_iter().chain(rule).collect();
        netns.run(&words).unwrap();
    };
    change("-A");
    let ends = netns
        .within(|| {
            let ends = [bound(left)?, bound(right)?];
            for (end, other) in ends.iter().zip([right, left]) {
                anyhow::ensure!(connect(end, &other) == Err(Errno::INPROGRESS));
            }
            Ok(ends)
        })
        .unwrap();
    change("-D");
    for end in &ends {
        wait_for("the ends are connected", EXIT, || {
            sockopt::socket_error(end).unwrap().unwrap();
            rustix::net::getpeername(end).is_ok().then_some(())
        })
        .unwrap();
    }
    let [mut one, mut other] = ends.map(TcpStream::from);
    for end in [&one, &other] {
        end.set_nonblocking(false).unwrap();
        end.set_read_timeout(Some(EXIT)).unwrap();
    }
    one.write_all(&[7; 100]).unwrap();
    other.read_exact(&mut [0; 100]).unwrap();
    other.write_all(&[7; 20]).unwrap();
    one.read_exact(&mut [0; 20]).unwrap();
    drop((one, other));
    let table = watch.finish();
    for (port, written, read) in [(5002, 100, 20), (5001, 20, 100)] {
        let edge = edge_to(&table, port);
        let client = &edge["metrics"]["client"];
        assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
        assert_eq!(edge["metrics"]["server"], Value::Null, "{edge:#}");
        assert_eq!(
            client["connections"],
            json!({ "count": 1, "open": 0 }),
            "{edge:#}"
        );
        assert_eq!(client["connect"]["count"], 1, "{edge:#}");
        assert_eq!(transfer(client, "write"), (1, written), "{edge:#}");
        assert_eq!(transfer(client, "read").1, read, "{edge:#}");
    }
}

/// What a process moves is announced for a socket of another protocol; the connection is one of TCP.
#[test]
fn bytes_over_mptcp_are_those_of_its_connection() {
    const BYTES: u64 = 100_000;
    let agent = Agent::start().unwrap();
    let before = mptcp::Pair::connect().unwrap();
    let watch = Watch::own(&agent);
    let fresh = mptcp::Pair::connect().unwrap();
    let ports = [&before, &fresh].map(|pair| pair.port);
    for mptcp::Pair { client, server, .. } in [&before, &fresh] {
        for (mut from, mut to) in [(client, server), (server, client)] {
            let bytes = vec![7; usize::try_from(BYTES).unwrap()];
            std::thread::scope(|scope| {
                scope.spawn(move || from.write_all(&bytes).unwrap());
                to.read_exact(&mut vec![0; usize::try_from(BYTES).unwrap()])
                    .unwrap();
            });
        }
    }
    drop((before, fresh));
    let table = watch.finish();
    for port in ports {
        let edge = edge_to(&table, port);
        assert_own_ends(edge);
        for end in ["client", "server"] {
            let metrics = &edge["metrics"][end];
            for what in ["write", "read"] {
                assert_eq!(transfer(metrics, what).1, BYTES, "{end}: {edge:#}");
            }
        }
    }
}

/// The smoothed and the minimum round-trip time of the namespace's only connection to the port, in
/// microseconds.
fn round_trips_us(netns: &Netns, port: u16) -> [u64; 2] {
    let filter = format!(":{port}");
    let socket = netns.run(&["ss", "-tinHO", "dport", "=", &filter]).unwrap();
    // `rtt:0.059/0.027` and `minrtt:0.006`, in milliseconds.
    [" rtt:", " minrtt:"].map(|name| {
        let text = socket.split(name).nth(1);
        let text = text.and_then(|rest| rest.split(['/', ' ', '\n']).next());
        let text = text.unwrap_or_else(|| panic!("{socket}"));
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let number = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("{socket}"));
        number(whole) * 1000 + number(&format!("{part:0<3}"))
    })
}

#[test]
fn round_trips_of_writes_are_those_that_the_socket_says() {
    const WRITES: u64 = 25;
    const ANSWER: Duration = Duration::from_millis(5);
    let netns = Netns::create("trips").unwrap();
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let (mut client, mut server) = netns
        .within(|| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            Ok((client, listener.accept()?.0))
        })
        .unwrap();
    let SocketAddr::V4(address) = client.peer_addr().unwrap() else {
        panic!("an IPv4 address");
    };
    for end in [&client, &server] {
        end.set_read_timeout(Some(EXIT)).unwrap();
        end.set_nodelay(true).unwrap();
    }
    let (mut least, mut most) = (Vec::new(), Vec::new());
    let (mut min_before, mut min_after) = (Vec::new(), Vec::new());
    for _ in 0..WRITES {
        // An acknowledgement may come at once, before or after the kernel's hook at the end of the call.
        let [before, min] = round_trips_us(&netns, address.port());
        min_before.push(min);
        client.write_all(&[7; 10]).unwrap();
        let [after, min] = round_trips_us(&netns, address.port());
        min_after.push(min);
        least.push(before.min(after));
        most.push(before.max(after));
        server.read_exact(&mut [0; 10]).unwrap();
        // The acknowledgement waits for the answer: it is in the smoothed time, and not in the minimum.
        std::thread::sleep(ANSWER);
        server.write_all(&[7; 10]).unwrap();
        client.read_exact(&mut [0; 10]).unwrap();
    }
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_own_ends(edge);
    let rtt = &edge["metrics"]["client"]["write_rtt_us"];
    assert_eq!(number(&rtt["count"]), WRITES, "{rtt:#}");
    let about = format!("{rtt:#}\nat least {least:?}\nat most {most:?}");
    let lies = |what: &str, lowest: Option<u64>, highest: Option<u64>| {
        let range = lowest.unwrap()..=highest.unwrap();
        assert!(range.contains(&number(&rtt[what])), "{what}: {about}");
    };
    let (low, high) = (|| least.iter().copied(), || most.iter().copied());
    lies("min", low().min(), high().min());
    lies("max", low().max(), high().max());
    lies("sum", Some(low().sum()), Some(high().sum()));
    let min = number(&edge["metrics"]["client"]["min_rtt_us"]);
    let range = *min_after.iter().min().unwrap()..=*min_before.iter().min().unwrap();
    assert!(range.contains(&min), "{min} is not in {range:?}");
    assert!(min < number(&rtt["max"]), "{min}: {about}");
}

#[test]
fn a_server_that_closes_without_reading_is_the_process_that_listens() {
    const CONNECTIONS: u64 = 10;
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..CONNECTIONS {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"never read").unwrap();
        let (server, _from) = listener.accept().unwrap();
        server.peek(&mut [0]).unwrap();
        drop(server);
        client.set_read_timeout(Some(EXIT)).unwrap();
        client.read(&mut [0]).unwrap_err();
    }
    wait_for("the connections are added up", START, || {
        let table = watch.now();
        let found = edges_that(&table, |edge| edge["server"]["port"] == address.port());
        let count =
            |edge: &&Value| edge["metrics"]["server"]["connections"]["count"] == CONNECTIONS;
        found.iter().any(count).then_some(())
    })
    .unwrap();
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_own_ends(edge);
    let server = &edge["metrics"]["server"];
    assert_eq!(server["reset"]["sent"], CONNECTIONS, "{edge:#}");
    assert_eq!(transfer(server, "read"), (0, 0), "{edge:#}");
    drop(listener);
}

/// An unrelated program, which takes over a port: it listens, connects to itself, and passes some bytes.
const SUCCESSOR: &str = "
import socket, sys
port = int(sys.stdin.readline())
with socket.create_server(('127.0.0.1', port)) as listener:
    client = socket.create_connection(('127.0.0.1', port))
    server, _ = listener.accept()
    client.sendall(b'12345')
    assert server.recv(5) == b'12345'
    client.close()
    server.close()
print('done', flush=True)
sys.stdin.readline()
";

#[test]
fn a_port_that_the_target_gave_up_is_its_own_no_longer() {
    // Not started after the watch, as children of the target belong to it.
    let mut successor = Command::new("python3")
        .args(["-c", SUCCESSOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run python3 (Debian package python3)");
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(&[7; 100]).unwrap();
    server.read_exact(&mut [0; 100]).unwrap();
    // The client closes first, so that the port can be listened on at once.
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    drop((server, listener));
    // The port leaves with the result that follows the end of the listener.
    let made = || watch.now()["window"]["to_ns"].as_u64();
    for _ in 0..2 {
        let before = made();
        wait_until("another result", EXIT, || made() != before).unwrap();
    }
    let input = successor.stdin.as_mut().unwrap();
    writeln!(input, "{port}").unwrap();
    let mut output = BufReader::new(successor.stdout.as_mut().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    let table = watch.finish();
    drop(successor.stdin.take());
    successor.wait().unwrap();
    let edge = edge_to(&table, port);
    assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
    assert_eq!(
        transfer(&edge["metrics"]["server"], "read"),
        (1, 100),
        "{edge:#}"
    );
}
