use profiler_model::{Address, Endpoint, Spread};
use serde_json::{Value, json};

use super::*;

const MS: u64 = 1_000_000;

/// An Envoy with 1,000 requests, without anything else.
pub(crate) fn envoy(pid: Option<u32>) -> LoggingEnvoy {
    LoggingEnvoy {
        process: Endpoint {
            pid,
            start_ticks: pid.map(|_pid| 1),
            comm: pid.map_or_else(String::new, |_pid| "envoy".to_owned()),
            container: None,
            address: Address::Ip([10, 0, 0, 9].into()),
        },
        node_id: "sidecar~10.0.0.9~web-1.shop~shop.svc".to_owned(),
        requests: 1_000,
        connections: 0,
        retried: 0,
        retries: 0,
        missing: None,
        joined: None,
        phases: Vec::new(),
        flags: BTreeMap::new(),
        flagged: Vec::new(),
        details: BTreeMap::new(),
        tls: BTreeMap::new(),
        upstreams: Vec::new(),
        of_other_upstreams: 0,
    }
}

/// A host of the cluster `web`, whose requests all take about as long.
pub(crate) fn host(address: &str, requests: u64, errors: u64, each_ns: u64) -> LoggedUpstream {
    let mut time_ns = Spread::default();
    for request in 0..requests {
        time_ns.add(each_ns + request);
    }
    LoggedUpstream {
        cluster: "web".to_owned(),
        address: address.to_owned(),
        requests,
        errors,
        time_ns,
        ..LoggedUpstream::default()
    }
}

/// Requests with a flag, at a host or none of the cluster `web`.
pub(crate) fn flagged(flag: &str, address: &str, count: u64) -> LoggedFlagged {
    LoggedFlagged {
        flag: flag.to_owned(),
        cluster: "web".to_owned(),
        address: address.to_owned(),
        count,
    }
}

/// What is said of the first of these hosts; nothing is said of the others.
fn said(hosts: &[LoggedUpstream]) -> Option<String> {
    let found = stand_out(hosts);
    assert!(found[1..].iter().all(Option::is_none), "{found:?}");
    found[0].clone()
}

#[test]
fn a_host_that_fails_more_often_than_the_others_stands_out() {
    let hosts = [
        host("10.0.0.1:80", 200, 20, MS),
        host("10.0.0.2:80", 500, 2, MS),
        host("10.0.0.3:80", 500, 3, MS),
    ];
    assert_eq!(
        said(&hosts).unwrap(),
        "10.0 % of its requests fail (6.6 to 14.9 %), of those to the other 2 hosts of the cluster 0.5 % (0.2 to 1.2 %)."
    );
    let hosts = [
        host("10.0.0.1:80", 200, 2, MS),
        host("10.0.0.2:80", 500, 2, MS),
    ];
    assert_eq!(said(&hosts), None);
}

#[test]
fn a_host_that_answers_later_than_the_others_stands_out() {
    let hosts = [
        host("10.0.0.1:80", 100, 0, 40 * MS),
        host("10.0.0.2:80", 100, 0, 10 * MS),
    ];
    let text = said(&hosts).unwrap();
    assert!(text.starts_with("Half of its requests take"), "{text}");
    assert!(text.contains("the other host of the cluster"), "{text}");
    // Both in the same bucket.
    let hosts = [
        host("10.0.0.1:80", 100, 0, 10 * MS + 1),
        host("10.0.0.2:80", 100, 0, 10 * MS),
    ];
    assert_eq!(said(&hosts), None);
}

#[test]
fn few_requests_and_hosts_of_other_clusters_say_nothing() {
    let slow = |requests| host("10.0.0.1:80", requests, requests, 40 * MS);
    let fast = host("10.0.0.2:80", 100, 0, MS);
    assert!(said(&[slow(30), fast.clone()]).is_some());
    assert_eq!(said(&[slow(29), fast.clone()]), None);
    assert_eq!(said(&[slow(100), host("10.0.0.2:80", 29, 0, MS)]), None);
    let other = LoggedUpstream {
        cluster: "other".to_owned(),
        ..fast
    };
    assert_eq!(said(&[slow(100), other]), None);
    assert_eq!(said(&[slow(100)]), None);
}

/// Of 100 values the median lies between the 40th and the 61st, by the binomial distribution.
#[test]
fn the_interval_of_a_median_is_that_of_order_statistics() {
    let mut time_ns = Spread::default();
    // Below 32 each value has a bucket of its own.
    for value in 0..20 {
        time_ns.add_times(value, 5);
    }
    let mut hosts = Hosts::default();
    hosts.add(&LoggedUpstream {
        time_ns,
        ..LoggedUpstream::default()
    });
    let found = hosts.median_ns().unwrap();
    assert_eq!((found.from, found.to), (7, 12));
}

#[test]
fn flags_phases_and_hosts_are_published_with_their_meaning() {
    let mut time_ns = Spread::default();
    time_ns.add(5);
    let counts = |pairs: &[(&str, u64)]| {
        let pairs = pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        pairs.collect::<BTreeMap<String, u64>>()
    };
    let envoy = LoggingEnvoy {
        retried: 3,
        retries: 4,
        missing: Some(612),
        phases: vec![LoggedPhase {
            name: "to_upstream".to_owned(),
            time_ns,
        }],
        flags: counts(&[("DC", 2), ("UF", 7), ("NEW", 1)]),
        flagged: vec![
            flagged("UF", "10.0.0.1:80", 5),
            flagged("DC", "10.0.0.1:80", 2),
            flagged("UF", "", 1),
            LoggedFlagged {
                cluster: String::new(),
                ..flagged("UF", "", 1)
            },
        ],
        details: counts(&[("route_not_found", 1), ("via_upstream", 9)]),
        tls: counts(&[("TLSv1.2", 1), ("TLSv1.3", 2)]),
        upstreams: vec![host("10.0.0.1:80", 10, 1, MS)],
        of_other_upstreams: 5,
        ..envoy(Some(7))
    };
    let found: Value = serde_json::to_value(report(&envoy)).unwrap();
    let names = |field: &str, name: &str| {
        let rows = found[field].as_array().unwrap().iter();
        rows.map(|row| row[name].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(names("flags", "name"), ["UF", "DC", "NEW"]);
    let first = &found["flags"][0];
    assert_eq!(first["long_name"], "UpstreamConnectionFailure");
    assert_eq!(first["count"], 7);
    assert!(first["meaning"].as_str().unwrap().ends_with('.'));
    assert!(first["cause"].as_str().unwrap().contains("connect_timeout"));
    assert_eq!(
        first["upstreams"],
        json!([
            {"cluster": "web", "address": "10.0.0.1:80", "count": 5},
            {"cluster": "web", "address": "", "count": 1},
            {"cluster": "", "address": "", "count": 1},
        ])
    );
    assert_eq!(
        places_text(&envoy, "UF").as_deref(),
        Some("5 to 10.0.0.1:80 of cluster web, 1 to no host of cluster web, 1 elsewhere")
    );
    let many = LoggingEnvoy {
        flagged: (1..9)
            .map(|host| flagged("UF", &format!("10.0.0.{host}:80"), 1))
            .collect(),
        ..envoy.clone()
    };
    let text = places_text(&many, "UF").unwrap();
    assert!(
        text.ends_with("10.0.0.3:80 of cluster web, 4 elsewhere"),
        "{text}"
    );
    assert_eq!(places_text(&envoy, "NEW"), None);
    let unknown = &found["flags"][2];
    assert_eq!(
        (&unknown["long_name"], &unknown["cause"]),
        (&json!("NEW"), &json!(""))
    );
    assert_eq!(
        names("details", "text"),
        ["via_upstream", "route_not_found"]
    );
    assert_eq!(names("tls", "version"), ["TLSv1.3", "TLSv1.2"]);
    assert_eq!(found["phases"][0]["ns"]["p50"], 5);
    let meaning = found["phases"][0]["meaning"].as_str().unwrap();
    assert!(meaning.contains("upstream connection"), "{meaning}");
    assert_eq!(found["upstreams"][0]["stands_out"], Value::Null);
    assert_eq!(found["upstreams"][0]["ns"]["count"], 10);
    assert_eq!(found["missing"], 612);
}

#[test]
fn less_than_all_is_never_all() {
    let of = |requests, missing| {
        received_percent(&LoggingEnvoy {
            requests,
            missing,
            ..envoy(Some(7))
        })
    };
    assert_eq!(of(1_000_000, Some(1)), Some(99.99));
    assert_eq!(of(3, Some(0)), Some(100.0));
    assert_eq!(of(0, Some(0)), None);
    assert_eq!(of(5, None), None);
}
