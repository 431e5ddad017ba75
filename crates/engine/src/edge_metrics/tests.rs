//! Series of made-up tables.

use std::{collections::BTreeMap, time::Instant};

use profiler_model::{Address, Edge, EdgeKey, EdgeTable, Endpoint, SideMetrics, Transfer, Values};
use prometheus_client::{encoding::text::encode, registry::Registry};

use super::{choice::ENDED_AFTER, *};
use crate::network_watch::WatchedEdges;

fn edge(comm: &str, port: u16, bytes: u64) -> Edge {
    let mut connect = Values::default();
    connect.add(6, 1_100_000);
    let end = |comm: &str, pid| Endpoint {
        pid,
        start_ticks: Some(1),
        comm: comm.to_owned(),
        container: None,
        address: Address::Ip([192, 0, 2, 9].into()),
    };
    Edge {
        key: EdgeKey {
            client: end(comm, Some(1)),
            server: end("", None),
            server_port: Some(port),
            original_destination: None,
        },
        client_port: None,
        client_name: None,
        namespaces: profiler_model::EdgeNamespaces::default(),
        server_name: None,
        client: Some(SideMetrics {
            connections: 1,
            open: 1,
            write: Transfer { count: 2, bytes },
            connect,
            drops: 3,
            drops_by_reason: BTreeMap::from([("NO_SOCKET".to_owned(), 3)]),
            ..SideMetrics::default()
        }),
        server: None,
    }
}

fn table(edges: Vec<Edge>) -> EdgeTable {
    EdgeTable {
        edges,
        ..EdgeTable::default()
    }
}

fn text(table: &EdgeTable, choice: &mut Choice, most: usize) -> String {
    text_at(table, choice, most, Instant::now())
}

fn text_at(table: &EdgeTable, choice: &mut Choice, most: usize, now: Instant) -> String {
    let watched = WatchedEdges {
        table: Some(table.clone().into()),
        ..WatchedEdges::default()
    };
    let mut registry = Registry::with_prefix("profiler_agent");
    registry.register_collector(Box::new(NetworkMetrics::read(&watched, choice, most, now)));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

/// Written bytes by server port; `other` has port 0.
fn written(text: &str) -> BTreeMap<u16, u64> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("profiler_agent_network_write_bytes_total{"));
    lines
        .map(|line| {
            let (labels, value) = line.split_once("} ").unwrap();
            let port = labels.split("server_port=\"").nth(1).unwrap();
            let port = port.split('"').next().unwrap();
            (port.parse().unwrap_or(0), value.parse().unwrap())
        })
        .collect()
}

#[test]
fn names_and_units_are_those_of_the_field() {
    let mut one = edge("app", 80, 700);
    one.client.as_mut().unwrap().min_rtt_us = Some(6);
    let text = text(&table(vec![one]), &mut Choice::default(), 5);
    let labels = "client=\"app\",client_container=\"\",server=\"192.0.2.9\",server_container=\"\",\
                  server_port=\"80\",side=\"client\"";
    for line in [
        format!("profiler_agent_network_write_bytes_total{{{labels}}} 700"),
        format!("profiler_agent_network_write_calls_total{{{labels}}} 2"),
        format!("profiler_agent_network_open_connections{{{labels}}} 1"),
        format!("profiler_agent_network_connect_duration_seconds_sum{{{labels}}} 0.0011"),
        format!("profiler_agent_network_connect_duration_seconds_count{{{labels}}} 1"),
        format!(
            "profiler_agent_network_connect_duration_seconds_bucket{{le=\"0.001\",{labels}}} 0"
        ),
        format!(
            "profiler_agent_network_connect_duration_seconds_bucket{{le=\"0.005\",{labels}}} 1"
        ),
        format!("profiler_agent_network_connect_duration_seconds_bucket{{le=\"+Inf\",{labels}}} 1"),
        format!(
            "profiler_agent_network_dropped_packets_by_reason_total{{{labels},reason=\"NO_SOCKET\"}} 3"
        ),
        "# UNIT profiler_agent_network_write_bytes bytes".to_owned(),
        "# TYPE profiler_agent_network_write_rtt_seconds histogram".to_owned(),
        format!("profiler_agent_network_min_rtt_seconds{{{labels}}} 0.000006"),
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no {line} in\n{text}"
        );
    }
}

#[test]
fn what_is_not_available_has_no_series() {
    let mut without = table(vec![edge("app", 80, 700)]);
    for metric in ["write", "drop", "connect"] {
        without.unavailable.insert(metric.to_owned(), String::new());
    }
    let text = text(&without, &mut Choice::default(), 5);
    for name in ["write", "drop", "connect_d"] {
        assert!(
            !text.contains(&format!("_network_{name}_bytes_total{{")),
            "{text}"
        );
        assert!(
            !text.contains(&format!("network_{name}ped_packets_total{{")),
            "{text}"
        );
        assert!(
            !text.contains(&format!("network_{name}uration_seconds_count{{")),
            "{text}"
        );
    }
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = "a\"} 1\n\\x\u{1b}[31m\u{202e}";
    let text = text(
        &table(vec![edge(hostile, 80, 1)]),
        &mut Choice::default(),
        5,
    );
    assert!(
        text.contains(r#"{client="a\"} 1\\x0a\\x\\x1b[31m\\u{202e}","#),
        "{text}"
    );
    assert!(
        text.lines()
            .all(|line| line.starts_with("profiler_agent_") || line.starts_with('#'))
    );
}

#[test]
fn the_largest_have_series_and_the_others_are_one() {
    let edges = (1..=300).map(|port| edge("app", port, u64::from(port)));
    let text = text(&table(edges.collect()), &mut Choice::default(), 200);
    let written = written(&text);
    assert_eq!(written.len(), 201);
    assert_eq!(written[&0], (1..=100).sum::<u64>());
    assert_eq!(written[&101], 101);
    assert!(text.contains("profiler_agent_network_edges 300"));
}

#[test]
fn no_series_becomes_less_whoever_comes_and_goes() {
    let mut choice = Choice::default();
    let mut before = BTreeMap::new();
    let mut sizes = BTreeMap::from([(1, 100), (2, 50), (3, 10)]);
    let mut folded = 0;
    for step in 0..40_u64 {
        // A small one overtakes the others, a new one comes, one with series is folded away.
        *sizes.entry(3).or_default() += 30 * step;
        *sizes.entry(1).or_default() += 1;
        if step == 10 {
            sizes.insert(4, 5000);
        }
        if step == 20 {
            folded += sizes.remove(&2).unwrap();
        }
        let edges = sizes.iter().map(|(port, bytes)| edge("app", *port, *bytes));
        let mut all = table(edges.collect());
        all.folded.client.write.bytes = folded;
        let now = written(&text(&all, &mut choice, 2));
        for (port, value) in &now {
            let earlier = before.get(port).copied().unwrap_or(0);
            assert!(
                *value >= earlier,
                "step {step}, port {port}: {value} after {earlier}"
            );
        }
        let sum: u64 = sizes.values().sum();
        assert_eq!(now.values().sum::<u64>(), sum + folded, "step {step}");
        assert!(now.len() <= 3);
        let apart: Vec<u16> = now.keys().copied().filter(|port| *port > 0).collect();
        // Its place goes to the largest of the others.
        let expected = if step < 20 { [1, 2] } else { [1, 3] };
        assert_eq!(apart, expected, "step {step}");
        before = now;
    }
}

#[test]
fn a_connection_that_moves_to_another_edge_leaves_no_series_with_less() {
    let mut choice = Choice::default();
    let mut known = edge("app", 1, 1000);
    let side = known.client.as_mut().unwrap();
    side.connections = 6;
    side.min_rtt_us = Some(5);
    let shows = |text: &str, metric: &str, value: &str| {
        let line = format!("profiler_agent_network_{metric}{{client=\"app\",");
        let mut lines = text.lines().filter(|found| found.starts_with(&line));
        assert!(
            lines.any(|found| found.ends_with(&format!("\"1\",side=\"client\"}} {value}"))),
            "{metric} is not {value}: {text}"
        );
    };
    text(&table(vec![known.clone()]), &mut choice, 5);
    let mut less = known.clone();
    let side = less.client.as_mut().unwrap();
    side.connections = 5;
    side.open = 0;
    side.write.bytes = 600;
    side.min_rtt_us = Some(9);
    side.connect = Values::default();
    side.connect.add(6, 400_000);
    let now = text(&table(vec![less, edge("app", 2, 400)]), &mut choice, 5);
    for (metric, value) in [
        ("connections_total", "6"),
        ("write_bytes_total", "1000"),
        ("open_connections", "0"),
        ("min_rtt_seconds", "0.000005"),
        ("connect_duration_seconds_sum", "0.0011"),
        ("connect_duration_seconds_count", "1"),
    ] {
        shows(&now, metric, value);
    }
    let more = known.client.as_mut().unwrap();
    more.connections = 8;
    more.write.bytes = 1001;
    let now = text(&table(vec![known]), &mut choice, 5);
    shows(&now, "connections_total", "8");
    shows(&now, "write_bytes_total", "1001");
}

#[test]
fn an_edge_that_has_ended_gives_its_series_back_and_is_counted_on() {
    let mut choice = Choice::default();
    let begin = Instant::now();
    let mut ended = edge("app", 1, 1000);
    ended.client.as_mut().unwrap().open = 0;
    let mut all = table(vec![ended, edge("app", 2, 10)]);
    let ports = |text: &str| written(text).into_iter().collect::<Vec<_>>();
    let both = [(1, 1000), (2, 10)];
    assert_eq!(ports(&text_at(&all, &mut choice, 5, begin)), both);
    let soon = begin + ENDED_AFTER / 2;
    assert_eq!(ports(&text_at(&all, &mut choice, 5, soon)), both);
    // The open one has done nothing either, and stays.
    for later in [ENDED_AFTER, ENDED_AFTER * 5] {
        let text = text_at(&all, &mut choice, 5, begin + later);
        assert_eq!(ports(&text), [(0, 1000), (2, 10)]);
    }
    // It comes back: what it had counted until it is seen again stays where it is.
    for (bytes, expected) in [
        (1007, [(0, 1007), (1, 0), (2, 10)]),
        (1010, [(0, 1007), (1, 3), (2, 10)]),
    ] {
        all.edges[0].client.as_mut().unwrap().write.bytes = bytes;
        let text = text_at(&all, &mut choice, 5, begin + ENDED_AFTER * 6);
        assert_eq!(ports(&text), expected);
    }
}

#[test]
fn an_edge_has_as_many_series_as_it_says() {
    let mut full = edge("app", 80, 700);
    let side = full.client.as_mut().unwrap();
    side.min_rtt_us = Some(1);
    for values in side.values_mut() {
        values.add(6, 1);
    }
    full.server = full.client.clone();
    let mut one = table(vec![full]);
    // Those of the timed mode, which this collection never has.
    for metric in ["accept", "write.time_ns", "read.time_ns"] {
        one.unavailable.insert(metric.to_owned(), String::new());
    }
    let text = text(&one, &mut Choice::default(), 5);
    let series = text.lines().filter(|line| line.contains("client=\"app\""));
    let series = series.count();
    assert_eq!(series, SERIES_OF_EDGE, "{text}");
}
