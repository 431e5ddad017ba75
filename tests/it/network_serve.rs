//! Connections as a server of the agent shows them: the collection that is always on, tables live, and
//! metrics for Prometheus.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    assert_measured,
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START};

const EDGES: &str = "/api/v1/network/edges";

/// An agent that watches the node all the time, when its collection runs.
fn always<const N: usize>(arguments: [&str; N]) -> Agent {
    let mut options = ServeOptions::with_arguments(["--network", "always"]);
    options.arguments.extend(arguments.map(str::to_owned));
    let agent = Agent::start_with(options).unwrap();
    wait_for("the collection runs", START, || {
        let table = agent.api.get_json(EDGES).unwrap();
        (table["state"] == "running" && table["age_ms"].is_u64()).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
    agent
}

/// A connection within this process.
fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _from) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(EXIT)).unwrap();
    }
    (client, server)
}

fn send(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    from.write_all(&vec![7; bytes]).unwrap();
    to.read_exact(&mut vec![0; bytes]).unwrap();
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

/// Bytes that this process wrote as client to a port; 0 before the edge is there.
fn written(table: &Value, port: u16) -> u64 {
    let edges = table["edges"].as_array().unwrap();
    let edge = edges
        .iter()
        .find(|edge| edge["server"]["port"] == port && edge["client"]["pid"] == std::process::id());
    edge.map_or(0, |edge| {
        edge["metrics"]["client"]["write"]["bytes"]
            .as_u64()
            .unwrap_or(0)
    })
}

/// Waits until the node's table has this many bytes to a port; returns that table.
fn wait_for_bytes(agent: &Agent, port: u16, bytes: u64) -> Value {
    let mut last = Value::Null;
    let found = wait_for("the bytes are counted", EXIT, || {
        last = agent.api.get_json(EDGES).unwrap();
        (written(&last, port) == bytes).then(|| last.clone())
    });
    found.unwrap_or_else(|error| panic!("{error:#}: port {port} in {last:#}"))
}

/// Reads tables of a stream until `enough` says so; every table that came.
fn read_tables(agent: &Agent, path: &str, mut enough: impl FnMut(&Value) -> bool) -> Vec<Value> {
    let mut stream = TcpStream::connect(agent.api.address).unwrap();
    stream.set_read_timeout(Some(EXIT)).unwrap();
    let token = agent.api.token.as_deref().unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
        agent.api.address
    )
    .unwrap();
    let mut tables = Vec::new();
    let mut name = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        assert_eq!(name, "edges");
        // The body comes in pieces, which may cut a long line: only whole tables are looked at.
        let Ok(table) = serde_json::from_str(data) else {
            continue;
        };
        let done = enough(&table);
        tables.push(table);
        if done {
            return tables;
        }
    }
    tables
}

/// One sample of the text format.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: String,
    labels: Vec<(String, String)>,
}

impl Series {
    fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads the text strictly: what Prometheus would refuse panics here.
fn parse_metrics(text: &str) -> BTreeMap<Series, f64> {
    let mut all = BTreeMap::new();
    let mut types = BTreeMap::new();
    let mut family = String::new();
    let mut ended = false;
    for line in text.lines() {
        assert!(!ended, "something after the end: {line}");
        if let Some(comment) = line.strip_prefix("# ") {
            if comment == "EOF" {
                ended = true;
                continue;
            }
            let mut words = comment.splitn(3, ' ');
            let (kind, name) = (words.next().unwrap(), words.next().unwrap());
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
            if kind == "TYPE" {
                let known = types.insert(name.to_owned(), words.next().unwrap().to_owned());
                assert_eq!(known, None, "{name} is described twice");
            }
            name.clone_into(&mut family);
            continue;
        }
        let (series, rest) = parse_series(line);
        assert!(
            series.name.starts_with(&family),
            "{line} is not of {family}"
        );
        let suffix = &series.name[family.len()..];
        let allowed: &[&str] = match types[&family].as_str() {
            "counter" => &["_total"],
            "histogram" => &["_sum", "_count", "_bucket"],
            "gauge" => &[""],
            other => panic!("{other}: {line}"),
        };
        assert!(
            allowed.contains(&suffix),
            "{line} of type {}",
            types[&family]
        );
        let value: f64 = rest.strip_prefix(' ').unwrap().parse().unwrap();
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let twice = all.insert(series, value);
        assert_eq!(twice, None, "twice: {line}");
    }
    assert!(ended, "the text is cut");
    all
}

fn parse_series(line: &str) -> (Series, &str) {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = line.find(|letter| !is_name(letter)).unwrap();
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(label.chars().all(is_name), "{line}");
            let mut text = String::new();
            let mut letters = value.char_indices();
            let end = loop {
                match letters.next().unwrap_or_else(|| panic!("open: {line}")) {
                    (at, '"') => break at,
                    (_, '\\') => match letters.next().unwrap().1 {
                        'n' => text.push('\n'),
                        escaped @ ('"' | '\\') => text.push(escaped),
                        other => panic!("\\{other}: {line}"),
                    },
                    (_, letter) => text.push(letter),
                }
            };
            labels.push((label.to_owned(), text));
            rest = &value[end + 1..];
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',').unwrap_or_else(|| panic!("{line}"));
        }
    }
    labels.sort();
    let name = name.to_owned();
    (Series { name, labels }, rest)
}

fn metrics(agent: &Agent) -> BTreeMap<Series, f64> {
    parse_metrics(&agent.api.get("/metrics").unwrap().text())
}

/// The value of a client's series to a port.
fn client_value(all: &BTreeMap<Series, f64>, name: &str, port: u16) -> Option<f64> {
    let port = port.to_string();
    let found = all.iter().find(|(series, _)| {
        series.name == format!("profiler_agent_network_{name}")
            && series.label("server_port") == Some(&port)
            && series.label("side") == Some("client")
    });
    found.map(|(_, value)| *value)
}

fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    name.trim_end().to_owned()
}

#[test]
fn the_collection_of_the_node_sees_what_was_before_it_and_what_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port_of(&listener);
    let (mut client, mut server) = connect(&listener);
    send(&mut client, &mut server, 5000);
    let agent = always([]);
    // Of the older connection only what comes now.
    send(&mut client, &mut server, 100);
    wait_for_bytes(&agent, port, 100);
    let (mut second, mut other) = connect(&listener);
    send(&mut second, &mut other, 23);
    let table = wait_for_bytes(&agent, port, 123);
    assert_eq!(table["reason"], Value::Null);
    assert_eq!(table["restarts"], 0);
    assert!(table["since_ns"].as_u64().unwrap() > 0);
    drop((second, other));
    // What has ended stays counted.
    send(&mut client, &mut server, 1);
    wait_for_bytes(&agent, port, 124);
    let probes = agent.api.get_json("/api/v1/probes").unwrap();
    let probes = probes["items"].as_array().unwrap().clone();
    let state = |name: &str| {
        let found = probes.iter().find(|probe| probe["name"] == name);
        found.map_or(Value::Null, |probe| probe["state"].clone())
    };
    assert_eq!(state("network_always"), "attached");
    assert_eq!(state("network_state"), "attached");
    assert_eq!(
        agent.api.get_json("/api/v1/meta").unwrap()["network"],
        "always"
    );
}

#[test]
fn a_collection_that_cannot_start_says_why() {
    let mut options = ServeOptions::with_arguments(["--network", "always"]);
    let doctor = profiler_tests::agent::run(&["doctor", "--json"], EXIT)
        .unwrap()
        .1;
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    for program in doctor["network"].as_array().unwrap() {
        let name = program["name"].as_str().unwrap();
        options.arguments.push(format!("--deny-probe={name}"));
    }
    let agent = Agent::start_with(options).unwrap();
    let refused = wait_for("the reason is shown", START, || {
        let table = agent.api.get_json(EDGES).unwrap();
        (table["state"] == "waiting").then_some(table)
    })
    .unwrap();
    assert!(
        refused["reason"].as_str().unwrap().contains("network"),
        "{refused:#}"
    );
    assert!(refused["restarts"].as_u64().unwrap() >= 1);
    assert_eq!(refused["since_ns"], Value::Null);
    let probes = agent.api.get_json("/api/v1/probes").unwrap();
    let probes = probes["items"].as_array().unwrap().clone();
    let probe = probes
        .iter()
        .find(|probe| probe["name"] == "network_always");
    let probe = probe.unwrap();
    assert_eq!(probe["state"], "unavailable");
    assert_eq!(probe["reason"], refused["reason"]);
}

#[test]
fn tables_come_live_for_a_task_and_for_the_node() {
    let agent = always([]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port_of(&listener);
    let specification = json!({
        "kind": "network", "target": { "pids": [std::process::id()] }, "duration_s": 300
    });
    let id = agent.api.create_task(&specification).unwrap();
    agent.api.wait_sampling(&id, START).unwrap();
    let (mut client, mut server) = connect(&listener);
    send(&mut client, &mut server, 777);
    let path = format!("/api/v1/tasks/{id}/edges");
    let events = format!("{path}/events");
    let tables = read_tables(&agent, &events, |table| written(table, port) == 777);
    assert_eq!(written(tables.last().unwrap(), port), 777, "{tables:#?}");
    let tables = read_tables(&agent, &format!("{EDGES}/events"), |table| {
        written(table, port) == 777
    });
    let last = tables.last().unwrap();
    assert_eq!(
        (written(last, port), &last["state"]),
        (777, &json!("running"))
    );
    // The stream of a task ends with the task, and its last table is the result.
    let tables = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stopped = false;
            read_tables(&agent, &events, |_table| {
                if !stopped {
                    stopped = true;
                    send(&mut client, &mut server, 1);
                    agent.api.stop_task(&id).unwrap();
                }
                false
            })
        });
        reader.join().unwrap()
    });
    assert_eq!(written(tables.last().unwrap(), port), 778);
    assert_eq!(tables.last().unwrap(), &agent.api.get_json(&path).unwrap());
}

#[test]
fn metrics_are_those_of_the_edges_and_never_become_less() {
    let agent = always([]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port_of(&listener);
    let mut before: BTreeMap<Series, f64> = BTreeMap::new();
    let mut sum = 0;
    for round in 1..=3 {
        // One connection that ends and one that stays.
        for _ in 0..2 {
            let (mut client, mut server) = connect(&listener);
            send(&mut client, &mut server, 1000 * round);
            send(&mut server, &mut client, 10);
            sum += 1000 * round as u64;
        }
        let table = wait_for_bytes(&agent, port, sum);
        // The table may be newer by now, but nothing more happens to this edge.
        let now = metrics(&agent);
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let expected = sum as f64;
        assert_eq!(
            client_value(&now, "write_bytes_total", port),
            Some(expected)
        );
        let edges = table["edges"].as_array().unwrap();
        let edge = edges.iter().find(|edge| edge["server"]["port"] == port);
        let side = &edge.unwrap()["metrics"]["client"];
        for (metric, value) in [
            ("write_calls_total", &side["write"]["count"]),
            ("read_bytes_total", &side["read"]["bytes"]),
            ("connections_total", &side["connections"]["count"]),
            ("connect_duration_seconds_count", &side["connect"]["count"]),
            ("write_rtt_seconds_count", &side["write_rtt_us"]["count"]),
        ] {
            assert_eq!(client_value(&now, metric, port), value.as_f64(), "{metric}");
        }
        let named = now.keys().find(|series| {
            series.label("server_port") == Some(&port.to_string())
                && series.label("client") == Some(&own_name())
        });
        assert!(named.is_some(), "no series of {}", own_name());
        for (series, value) in &before {
            if !series.name.contains("_network_")
                || series.name.ends_with("_connections")
                || series.name.ends_with("_edges")
            {
                continue;
            }
            let later = now.get(series);
            let is_least = series.name.ends_with("_min_rtt_seconds");
            assert!(
                later.is_none_or(|later| if is_least {
                    later <= value
                } else {
                    later >= value
                }),
                "{series:?} was {value} and is {later:?}"
            );
        }
        before = now;
    }
}

#[test]
fn three_hundred_edges_have_as_many_series_as_they_may() {
    const EDGES_MADE: usize = 300;
    const MOST: usize = 20;
    let agent = always(["--network-metrics-edges=20"]);
    let listeners: Vec<_> = (0..EDGES_MADE)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let mut kept = Vec::new();
    for (index, listener) in listeners.iter().enumerate() {
        let (mut client, mut server) = connect(listener);
        send(&mut client, &mut server, 1000 + index);
        kept.push((client, server));
    }
    let last = listeners.last().unwrap();
    let table = wait_for_bytes(&agent, port_of(last), (1000 + EDGES_MADE - 1) as u64);
    let ports: Vec<u16> = listeners.iter().map(port_of).collect();
    let own: u64 = ports.iter().map(|port| written(&table, *port)).sum();
    let all: usize = (0..EDGES_MADE).map(|index| 1000 + index).sum();
    assert_eq!(own, all as u64);
    let now = metrics(&agent);
    let written: Vec<(&Series, &f64)> = now
        .iter()
        .filter(|(series, _)| {
            series.name == "profiler_agent_network_write_bytes_total"
                && series.label("side") == Some("client")
        })
        .collect();
    let is_other = |series: &Series| series.label("client") == Some("other");
    let with_port = written.iter().filter(|(series, _)| !is_other(series));
    let with_port = with_port.count();
    assert!((1..=MOST).contains(&with_port), "{with_port} edges");
    let others = written.iter().filter(|(series, _)| is_other(series));
    assert_eq!(others.count(), 1);
    let sum: f64 = written.iter().map(|(_, value)| **value).sum();
    #[expect(clippy::cast_precision_loss, reason = "less than a megabyte")]
    let least = all as f64;
    assert!(sum >= least, "{sum} of {least}");
}

#[test]
fn a_table_comes_about_once_a_second() {
    let agent = always([]);
    let begin = std::time::Instant::now();
    let mut seen = 0;
    read_tables(&agent, &format!("{EDGES}/events"), |_table| {
        seen += 1;
        seen == 4
    });
    // The first is there already; three more take some three seconds.
    let took = begin.elapsed();
    assert_measured!(
        took >= Duration::from_millis(1500) && took < EXIT,
        "{seen} tables in {took:?}"
    );
}
