use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

const KEY: ProcessKey = ProcessKey {
    pid: 7,
    start_ticks: 3,
};

fn pod() -> PodNames {
    PodNames {
        namespace: "shop".to_owned(),
        name: "web.0".to_owned(),
        uid: "u1".to_owned(),
        labels: BTreeMap::new(),
        workload: None,
    }
}

fn logs() -> EnvoyLogs {
    EnvoyLogs {
        process: Some(KEY),
        peer: Some(([10, 0, 0, 1], 40_000).into()),
        node_id: "sidecar~10.0.0.1~web.0.shop~shop.svc.cluster.local".to_owned(),
        version: "1.40.0".to_owned(),
        log_names: vec!["log".to_owned()],
        streams: 2,
        received: ReceivedLogs {
            messages: 9,
            bytes: 100,
            requests: 90,
            connections: 5,
            attempts: 4,
            open: 3,
            unreadable: 2,
            unread: 8,
            refused: 1,
            ..ReceivedLogs::default()
        },
        own: Ok(OwnLogCounts {
            written: Some(120),
            dropped: Some(6),
            failed: None,
            completed: Some(100),
            unknown: Some(4),
        }),
        stage: AccessLogStage::Counted,
        first_ns: 11,
        newest_ns: 12,
    }
}

/// As of a process in the pod.
fn shown(logs: &EnvoyLogs) -> Value {
    let pod = pod();
    let running = LoggingProcess {
        program: "envoy",
        pod: Some(&pod),
    };
    let running = logs.process.map(|_| running);
    serde_json::to_value(AccessLogEnvoy::new(logs, running)).unwrap()
}

#[test]
fn an_envoy_of_the_node_has_its_process_pod_and_counts() {
    let expected = json!({
        "pid": 7, "id": "7-3", "program": "envoy", "pod": "shop/web.0", "claimed": false,
        "node_id": "sidecar~10.0.0.1~web.0.shop~shop.svc.cluster.local", "node_id_differs": false,
        "version": "1.40.0", "peer": "10.0.0.1:40000", "log_names": ["log"], "streams": 2,
        "received": 112, "requests": 90, "connections": 5, "attempts": 4, "open": 3, "unreadable": 2, "unread": 8,
        "refused_messages": 1, "bytes": 100, "written": 120, "dropped": 6, "failed": null, "completed": 100,
        "unknown": 4, "unknown_reason": null, "received_percent": percent(116, 126), "stage": "counted", "first_ns": 11,
        "newest_ns": 12
    });
    assert_eq!(shown(&logs()), expected);
}

#[test]
fn an_envoy_without_a_process_is_only_claimed() {
    let mut claimed = logs();
    claimed.process = None;
    claimed.own = Err("no process of this node".to_owned());
    let shown = shown(&claimed);
    assert_eq!(shown["claimed"], true);
    for field in [
        "pid",
        "id",
        "program",
        "pod",
        "completed",
        "received_percent",
    ] {
        assert_eq!(shown[field], Value::Null, "{field}");
    }
    assert_eq!(shown["unknown_reason"], "no process of this node");
    // There is nothing that it could differ from.
    assert_eq!(shown["node_id_differs"], false);
}

#[test]
fn a_process_that_has_ended_keeps_its_id() {
    let shown = serde_json::to_value(AccessLogEnvoy::new(&logs(), None)).unwrap();
    assert_eq!(shown["id"], "7-3");
    assert_eq!(shown["claimed"], false);
    assert_eq!(shown["program"], Value::Null);
    assert_eq!(shown["pod"], Value::Null);
}

#[test]
fn a_node_id_of_istio_is_held_against_the_pod() {
    let check = |node_id: &str, expected: bool| {
        assert_eq!(names_another_pod(node_id, &pod()), expected, "{node_id}");
    };
    check("sidecar~10.0.0.1~web.0.shop~shop.svc.cluster.local", false);
    check("router~10.0.0.1~web.0.shop~shop.svc.cluster.local", false);
    check("sidecar~10.0.0.1~web.1.shop~shop.svc.cluster.local", true);
    check("sidecar~10.0.0.1~web.0.other~other.svc.cluster.local", true);
    check("sidecar~10.0.0.1~web~x", true);
    check("sidecar~~~", true);
    // Not those of Istio.
    for other in ["", "envoy-1", "web.1.shop", "a~b~c", "a~b~c.d~e~f"] {
        check(other, false);
    }
}

#[test]
fn the_share_is_known_where_the_envoy_counts_its_logs() {
    let check = |written, unknown, dropped, expected| {
        let counted = OwnLogCounts {
            written,
            dropped,
            unknown,
            ..OwnLogCounts::default()
        };
        assert_eq!(received_percent(&counted), expected);
    };
    check(Some(100), Some(0), Some(0), Some(100.0));
    check(Some(100), Some(1), None, Some(99.0));
    check(Some(10), Some(0), Some(30), Some(25.0));
    check(Some(0), Some(0), Some(0), None);
    check(None, None, Some(3), None);
    check(Some(10), None, None, None);
}

#[test]
fn foreign_text_stays_as_it_is_in_json() {
    let mut hostile = logs();
    hostile.node_id = "a\u{202e}\u{1b}[31m\n\"".to_owned();
    hostile.log_names = vec![hostile.node_id.clone()];
    let text = serde_json::to_string(&shown(&hostile)).unwrap();
    assert!(!text.contains(['\u{1b}', '\n']), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["node_id"], hostile.node_id);
    assert_eq!(read["log_names"], json!(hostile.log_names));
}
