use serde_json::{Value, json};

use super::*;

/// An answer with an Envoy on this node and a claimed one.
fn answer() -> Value {
    json!({
        "is_on": true, "listen": "0.0.0.0:7118", "refused_connections": 0, "failed_connections": 0, "newest_failure": null,
        "stage_seconds": { "full": 60.0, "counted": 0.5, "held": 0.0 },
        "envoys": [
            {
                "pid": 4711, "id": "4711-8", "program": "envoy", "pod": "shop/web-0", "claimed": false,
                "node_id": "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", "node_id_differs": true,
                "version": "1.40.0", "peer": "10.0.0.1:40000", "log_names": ["profiler-access-logs"], "streams": 2,
                "received": 1_202_800, "requests": 1_202_739, "connections": 61, "attempts": 0, "open": 0,
                "unreadable": 0, "unread": 2000, "refused_messages": 1, "bytes": 1, "written": 1_203_441, "dropped": 612,
                "failed": 3, "completed": 1_203_441, "unknown": 90, "unknown_reason": "it has not been asked",
                "received_percent": 99.94, "stage": "full", "first_ns": 1, "newest_ns": 5_000_000_000_u64
            },
            {
                "pid": null, "id": null, "program": null, "pod": null, "claimed": true, "node_id": "gateway",
                "node_id_differs": false, "version": "", "peer": "192.0.2.1:1", "log_names": [], "streams": 0,
                "received": 5, "requests": 5, "connections": 0, "attempts": 0, "open": 0, "unreadable": 0, "unread": 0,
                "refused_messages": 0, "bytes": 1, "written": null, "dropped": null, "failed": null,
                "completed": null, "unknown": null, "unknown_reason": "it has not been asked",
                "received_percent": null, "stage": "full", "first_ns": 1, "newest_ns": 0
            }
        ]
    })
}

fn check(answer: Value, expected: &[&str]) {
    let status = serde_json::from_value(answer).unwrap();
    let text = access_log_table(&status, 70_000_000_000);
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_table_shows_what_is_missing_and_who_is_only_claimed() {
    check(
        answer(),
        &[
            "access logs are received on 0.0.0.0:7118",
            "ENVOY                        REQUESTS      COMPLETED  RECEIVED   DROPPED   UNKNOWN  NEWEST",
            "envoy[4711] shop/web-0      1,202,739      1,203,441   99.94 %       612        90  65.0 s ago",
            "  its node id names another pod: sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local",
            "  its own counts are not known: it has not been asked",
            "  entries that it could not send: 3",
            "  refused messages: 1",
            "  entries that were counted and not read, as there were too many: 2,000",
            "gateway                             5              -         -         -         -  -",
            "  only claimed: no process of this node is known to hold its connection from 192.0.2.1:1",
        ],
    );
}

#[test]
fn without_envoys_it_says_what_to_do() {
    let mut answer = answer();
    answer["envoys"] = json!([]);
    answer["refused_connections"] = json!(1234);
    answer["failed_connections"] = json!(2);
    answer["newest_failure"] = json!("10.0.0.7:1: it does not speak TLS\u{1b}[0m");
    check(
        answer.clone(),
        &[
            "access logs are received on 0.0.0.0:7118",
            "connections refused because there were too many: 1,234",
            "connections that failed before anything was received: 2, the newest from 10.0.0.7:1: it does not speak TLS\\x1b[0m",
            "no Envoy has sent any: `profiler-agent access-logs snippet --for envoy|istio|envoy-gateway --address HOST:PORT` \
             prints what to configure, with the agent's address as Envoys reach it",
        ],
    );
    answer["is_on"] = json!(false);
    answer["listen"] = Value::Null;
    check(
        answer,
        &["access logs are not received: start the agent with `serve --access-logs ADDR:PORT`"],
    );
}

#[test]
fn less_than_all_is_not_shown_as_all() {
    for (percent, expected) in [(100.0, "100.00 %"), (99.9999, "99.99 %"), (0.0, "0.00 %")] {
        assert_eq!(share(percent), expected);
    }
}

#[test]
fn a_clock_that_is_ahead_makes_no_age() {
    assert_eq!(age(9_000_000_000, 1), "0 ns ago");
}

fn check_of_doctor(answer: Result<Value, &str>, expected: &[&str]) {
    let answer = answer.map(|answer| serde_json::from_value(answer).unwrap());
    let check = AccessLogCheck::new("http://127.0.0.1:7117", answer.map_err(str::to_owned));
    let text = check.text(70_000_000_000);
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn doctor_says_what_arrives_from_whom() {
    check_of_doctor(
        Ok(answer()),
        &[
            "access logs             received on 0.0.0.0:7118",
            "                        envoy[4711] shop/web-0: 1,202,739 requests, 61 connections, 99.94 % of its entries, \
             newest 65.0 s ago",
            "                        gateway, only claimed: 5 requests, 0 connections, newest -",
        ],
    );
    let mut many = answer();
    let envoy = many["envoys"][1].clone();
    many["envoys"] = json!(vec![envoy; MOST_NAMED + 3]);
    let status = serde_json::from_value(many).unwrap();
    let text = AccessLogCheck::new("", Ok(status)).text(0);
    assert_eq!(text.lines().count(), 1 + MOST_NAMED + 1);
    assert!(text.ends_with(" 3 more: `profiler-agent access-logs status`\n"));
}

#[test]
fn doctor_says_what_to_do_where_nothing_arrives() {
    let mut none = answer();
    none["envoys"] = json!([]);
    check_of_doctor(
        Ok(none.clone()),
        &[
            "access logs             received on 0.0.0.0:7118, and no Envoy has sent any",
            "                        -> `profiler-agent access-logs snippet --for envoy|istio|envoy-gateway --address \
             HOST:PORT` prints what to configure, with the agent's address as Envoys reach it",
        ],
    );
    none["failed_connections"] = json!(3);
    none["newest_failure"] = json!("10.0.0.7:1: it does not speak TLS");
    check_of_doctor(
        Ok(none.clone()),
        &[
            "access logs             received on 0.0.0.0:7118, and no Envoy has sent any",
            "                        connections that failed before anything was received: 3, the newest from 10.0.0.7:1: it does not speak TLS",
            "                        -> `profiler-agent access-logs snippet --for envoy|istio|envoy-gateway --address \
             HOST:PORT` prints what to configure, with the agent's address as Envoys reach it",
        ],
    );
    none["is_on"] = json!(false);
    check_of_doctor(
        Ok(none),
        &[
            "access logs             the agent at http://127.0.0.1:7117 does not receive any",
            "                        -> start the agent with `serve --access-logs ADDR:PORT`",
        ],
    );
    check_of_doctor(
        Err("nothing listens\nforged\x1b[2J"),
        &[
            "access logs             unknown: nothing listens",
            "                        forged\\x1b[2J",
        ],
    );
}
