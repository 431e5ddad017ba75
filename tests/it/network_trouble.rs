//! Connections that fail, break, lose packets, or lose their processes.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use profiler_tests::{agent::Agent, netns::Netns, wait::wait_for, workload::Workload};
use rustix::net::sockopt::{set_socket_linger, set_tcp_user_timeout};
use serde_json::{Map, Value, json};

use crate::{
    edges::{Watch, assert_own_ends, edge_to, number, transfer, watch_program},
    network::sent_again,
    targets::EXIT,
};

const LEFT: &str = "10.198.0.1";
const RIGHT: &str = "10.198.0.2";

/// Two namespaces with a cable between them.
fn cable(what: &str) -> (Netns, Netns) {
    let left = Netns::create(&format!("{what}-left")).unwrap();
    let right = Netns::create(&format!("{what}-right")).unwrap();
    let address = |end: &str| format!("{end}/24");
    Netns::join((&left, &address(LEFT)), (&right, &address(RIGHT))).unwrap();
    (left, right)
}

fn listen(at: &Netns) -> TcpListener {
    at.within(|| Ok(TcpListener::bind((RIGHT, 0))?)).unwrap()
}

fn connect(from: &Netns, to: SocketAddr) -> std::io::Result<TcpStream> {
    from.within(|| Ok(TcpStream::connect(to))).unwrap()
}

fn iptables(at: &Netns, rule: &str) {
    let words: Vec<&str> = ["iptables"].into_iter().chain(rule.split(' ')).collect();
    at.run(&words).unwrap();
}

/// Packets that a rule has met.
fn packets_of_rule(at: &Netns, rule: &str) -> u64 {
    let listed = at
        .run(&["iptables", "-L", "INPUT", rule, "-v", "-x", "-n"])
        .unwrap();
    let count = listed.split_whitespace().next().unwrap();
    count.parse().unwrap_or_else(|_| panic!("{listed}"))
}

/// How often packets were dropped for which reason at an end, without what had arrived already: on a busy machine
/// the other end sends some packets again that were not lost, at most `again`.
fn reasons_to_drop(side: &Value, again: u64) -> Map<String, Value> {
    let mut reasons = side["drop"]["by_reason"].as_object().unwrap().clone();
    let had_arrived: u64 = ["tcp_old_sequence", "tcp_old_data", "tcp_ofomerge"]
        .into_iter()
        .filter_map(|reason| reasons.remove(reason))
        .map(|count| number(&count))
        .sum();
    assert!(had_arrived <= again, "{again}: {side:#}");
    reasons
}

/// What the client of the edge to a port measured, where no connection came about.
fn failed_connect(table: &Value, port: u16) -> &Value {
    let edge = edge_to(table, port);
    assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
    assert_eq!(edge["metrics"]["server"], Value::Null, "{edge:#}");
    let side = &edge["metrics"]["client"];
    assert_eq!(side["connect"]["count"], 0, "{side:#}");
    assert_eq!(side["connect"]["failed"], 1, "{side:#}");
    assert_eq!(
        side["connections"],
        json!({ "count": 1, "open": 0 }),
        "{side:#}"
    );
    side
}

#[test]
fn connects_that_time_out_or_find_no_host_fail_with_their_error() {
    let (left, right) = cable("fail");
    left.run(&["sysctl", "-q", "net.ipv4.tcp_syn_retries=1"])
        .unwrap();
    iptables(&right, "-A INPUT -p tcp --dport 9 -j DROP");
    iptables(
        &right,
        "-A INPUT -p tcp --dport 10 -j REJECT --reject-with icmp-host-unreachable",
    );
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let to = |port: u16| SocketAddr::new(RIGHT.parse().unwrap(), port);
    // Each takes some seconds.
    let failures = std::thread::scope(|scope| {
        let connects = [9, 10].map(|port| {
            scope.spawn({
                let left = &left;
                move || connect(left, to(port)).unwrap_err()
            })
        });
        connects.map(|connect| connect.join().unwrap())
    });
    let kinds = failures.map(|error| error.kind());
    assert_eq!(kinds, [ErrorKind::TimedOut, ErrorKind::HostUnreachable]);
    let (silent, refused) = (packets_of_rule(&right, "1"), packets_of_rule(&right, "2"));
    let table = watch.finish();
    let side = failed_connect(&table, 9);
    assert_eq!(side["error"]["by_errno"], json!({ "110": 1 }), "{side:#}");
    // All but the first of the requests that were dropped.
    let again = |side: &Value| number(&side["retransmit"]["count"]);
    assert!(silent > 1, "{side:#}");
    assert_eq!(again(side), silent - 1, "{side:#}");
    let side = failed_connect(&table, 10);
    assert_eq!(side["error"]["by_errno"], json!({ "113": 1 }), "{side:#}");
    assert_eq!(again(side), refused - 1, "{side:#}");
}

#[test]
fn a_connection_whose_other_end_is_silent_times_out() {
    let (left, right) = cable("silent");
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = listen(&right);
    let address = listener.local_addr().unwrap();
    let mut client = connect(&left, address).unwrap();
    let (_server, _from) = listener.accept().unwrap();
    set_tcp_user_timeout(&client, 1000).unwrap();
    client.set_read_timeout(Some(EXIT)).unwrap();
    iptables(&right, "-A INPUT -p tcp -j DROP");
    client.write_all(&[7; 123]).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let dropped = packets_of_rule(&right, "1");
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
    let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
    assert_eq!(
        client["error"]["by_errno"],
        json!({ "110": 1 }),
        "{client:#}"
    );
    assert_eq!(transfer(client, "write"), (1, 123));
    let again = number(&client["retransmit"]["count"]);
    assert!(again > 0 && again < dropped, "{dropped}: {client:#}");
    assert_eq!(server["read"]["count"], 0, "{server:#}");
    let reasons = Value::from(reasons_to_drop(server, again));
    assert_eq!(reasons, json!({ "netfilter_drop": dropped }), "{server:#}");
}

#[test]
fn losses_are_those_of_the_socket_and_of_the_rule_that_dropped() {
    const WRITES: u64 = 200;
    const BYTES: u64 = 10_000;
    let (left, right) = cable("loss");
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = listen(&right);
    let address = listener.local_addr().unwrap();
    let mut client = connect(&left, address).unwrap();
    let (mut server, _from) = listener.accept().unwrap();
    let rule = "INPUT -p tcp -m statistic --mode nth --every 20 --packet 0 -j DROP";
    iptables(&right, &format!("-A {rule}"));
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        let mut all = 0_u64;
        while let Ok(count @ 1..) = server.read(&mut bytes) {
            all += count as u64;
        }
        all
    });
    for _ in 0..WRITES {
        client.write_all(&[7; 10_000]).unwrap();
    }
    let filter = [
        "ss",
        "-tinHO",
        "dport",
        "=",
        &format!(":{}", address.port()),
    ];
    let socket = wait_for("everything is acknowledged", EXIT, || {
        let socket = left.run(&filter).unwrap();
        (!socket.contains(" unacked:") && !socket.contains(" notsent:")).then_some(socket)
    })
    .unwrap();
    let dropped = packets_of_rule(&right, "1");
    // What ends the connection is not lost.
    iptables(&right, &format!("-D {rule}"));
    drop(client);
    assert_eq!(reader.join().unwrap(), WRITES * BYTES);
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_own_ends(edge);
    let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
    assert_eq!(transfer(client, "write"), (WRITES, WRITES * BYTES));
    assert_eq!(number(&server["read"]["bytes"]), WRITES * BYTES);
    assert_eq!(number(&client["socket"]["sent_bytes"]), WRITES * BYTES);
    // `retrans:NOW/TOTAL`.
    let retransmits = socket.split(" retrans:").nth(1).and_then(|rest| {
        let total = rest.split_whitespace().next()?.split('/').nth(1)?;
        total.parse::<u64>().ok()
    });
    let retransmits = retransmits.unwrap_or_else(|| panic!("{socket}"));
    assert_eq!(
        number(&client["retransmit"]["count"]),
        retransmits,
        "{socket}: {edge:#}"
    );
    assert!(dropped > 0, "{socket}");
    let reasons = Value::from(reasons_to_drop(server, retransmits));
    assert_eq!(reasons, json!({ "netfilter_drop": dropped }), "{server:#}");
}

#[test]
fn acknowledgements_of_a_half_closed_connection_are_no_drops() {
    const ANSWER: usize = 1_000_000;
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let (mut server, _from) = listener.accept().unwrap();
    client.set_read_timeout(Some(EXIT)).unwrap();
    client.write_all(b"go").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let answering = std::thread::spawn(move || {
        // The end of the other side has come: from here on its acknowledgements are not wanted.
        assert_eq!(server.read_to_end(&mut Vec::new()).unwrap(), 2);
        server.write_all(&vec![7; ANSWER]).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        server
    });
    let mut answer = Vec::new();
    assert_eq!(client.read_to_end(&mut answer).unwrap(), ANSWER);
    let server = answering.join().unwrap();
    let again = [&client, &server].map(sent_again);
    drop(server);
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    assert_own_ends(edge);
    let told = ["client", "server"].map(|end| {
        let retransmits = &edge["metrics"][end]["retransmit"];
        number(&retransmits["count"])
    });
    for (index, end) in ["client", "server"].into_iter().enumerate() {
        let (told, own, others) = (told[index], again[index], told[1 - index]);
        // The last packet may be sent again after the socket was asked, too.
        assert!((own..=own + 1).contains(&told), "{end}, {own}: {edge:#}");
        let side = &edge["metrics"][end];
        assert!(reasons_to_drop(side, others).is_empty(), "{end}: {edge:#}");
        assert!(number(&side["drop"]["count"]) <= others, "{end}: {edge:#}");
    }
}

#[test]
fn resets_are_counted_where_they_are_sent_and_where_they_arrive() {
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let mut ports = Vec::new();
    for sender in ["client", "server"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let (server, _from) = listener.accept().unwrap();
        let (breaks, mut sees) = match sender {
            "client" => (client, server),
            _ => (server, client),
        };
        sees.set_read_timeout(Some(EXIT)).unwrap();
        set_socket_linger(&breaks, Some(Duration::ZERO)).unwrap();
        drop(breaks);
        let error = sees.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        ports.push((address.port(), sender));
    }
    let table = watch.finish();
    for (port, sender) in ports {
        // The server's end was never read or written, so that its process may be unknown.
        let edge = edge_to(&table, port);
        assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
        for end in ["client", "server"] {
            let side = &edge["metrics"][end];
            let (sent, received) = if end == sender { (1, 0) } else { (0, 1) };
            assert_eq!(
                side["reset"],
                json!({ "count": 1, "sent": sent, "received": received }),
                "{sender}: {edge:#}"
            );
            let errors = if end == sender {
                json!({})
            } else {
                json!({ "104": 1 })
            };
            assert_eq!(side["error"]["by_errno"], errors, "{sender}: {edge:#}");
        }
    }
}

#[test]
fn connections_that_nobody_accepted_end_with_their_listener() {
    const CONNECTIONS: u64 = 5;
    let agent = Agent::start().unwrap();
    let watch = Watch::own(&agent);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    for client in &mut clients {
        client.write_all(&[7; 40]).unwrap();
        client.set_read_timeout(Some(EXIT)).unwrap();
    }
    drop(listener);
    for client in &mut clients {
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    drop(clients);
    let table = watch.finish();
    let edge = edge_to(&table, address.port());
    let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
    assert_eq!(
        transfer(client, "write"),
        (CONNECTIONS, CONNECTIONS * 40),
        "{edge:#}"
    );
    assert_eq!(client["reset"]["received"], CONNECTIONS, "{edge:#}");
    assert_eq!(server["reset"]["sent"], CONNECTIONS, "{edge:#}");
    for side in [client, server] {
        let all = json!({ "count": CONNECTIONS, "open": 0 });
        assert_eq!(side["connections"], all, "{edge:#}");
    }
    // The received data was not read.
    assert_eq!(server["read"]["count"], 0, "{edge:#}");
    assert_eq!(
        server["socket"]["received_bytes"],
        CONNECTIONS * 40,
        "{edge:#}"
    );
}

#[test]
fn sockets_belong_to_the_process_that_uses_them_until_it_dies() {
    let (table, output) = watch_program(Workload::Descriptors, "descriptors");
    let mut cases = 0;
    for line in output.lines().filter(|line| line.contains(' ')) {
        let [name, port, client, server, written, answered] =
            line.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let value = |text: &str| text.parse::<u64>().unwrap();
        let edge = edge_to(&table, port.parse().unwrap());
        assert_eq!(edge["client"]["pid"], value(client), "{name}: {edge:#}");
        assert_eq!(edge["server"]["pid"], value(server), "{name}: {edge:#}");
        for end in ["client", "server"] {
            assert_eq!(edge[end]["comm"], "descriptors", "{name}: {edge:#}");
            let connections = &edge["metrics"][end]["connections"];
            assert_eq!(
                *connections,
                json!({ "count": 1, "open": 0 }),
                "{name}: {edge:#}"
            );
        }
        let metrics = &edge["metrics"];
        assert_eq!(
            transfer(&metrics["client"], "write"),
            (1, value(written)),
            "{name}: {edge:#}"
        );
        assert_eq!(
            transfer(&metrics["server"], "write"),
            (1, value(answered)),
            "{name}: {edge:#}"
        );
        assert_eq!(
            number(&metrics["client"]["read"]["bytes"]),
            value(answered),
            "{name}"
        );
        assert_eq!(
            number(&metrics["server"]["read"]["bytes"]),
            value(written),
            "{name}"
        );
        cases += 1;
    }
    assert_eq!(cases, 3, "{output}");
}
