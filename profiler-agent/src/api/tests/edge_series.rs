//! One edge over time, of a task and of the always-on collection.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Api,
    edges::{always, network_task},
    live::Events,
};

fn sum(numbers: &Value) -> u64 {
    let numbers = numbers.as_array().unwrap();
    numbers.iter().map(|number| number.as_u64().unwrap()).sum()
}

/// The id of the only edge, once there is one.
async fn edge_of(api: &Api, path: &str) -> String {
    let mut events = Events::open_at(api, &format!("{path}/events")).await;
    let found = events
        .find(|_, data| data["edges"].as_array().is_some_and(|e| !e.is_empty()))
        .await;
    found["edges"][0]["id"].as_str().unwrap().to_owned()
}

/// The series once it has something: the table is shown a moment before it is stored.
async fn series_of(api: &Api, path: &str, edge: &str) -> Value {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let series = api.get_json(&format!("{path}/{edge}/series")).await;
        if series["steps_ms"] != json!([]) {
            return series;
        }
        assert!(Instant::now() < deadline, "no step came: {series:#}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_series_of_a_task_add_up_to_its_totals_also_after_its_end() {
    let api = Api::new();
    let id = network_task(&api).await;
    let path = format!("/api/v1/tasks/{id}/edges");
    let edge = edge_of(&api, &path).await;
    for end in ["running", "stopped"] {
        let series = series_of(&api, &path, &edge).await;
        assert_eq!(series["edge"], edge, "{end}");
        let client = &series["client"];
        assert_eq!(sum(&client["write"]["bytes"]), 700, "{end}: {series:#}");
        assert_eq!(sum(&client["write"]["count"]), 2);
        assert_eq!(sum(&client["connections"]), 1);
        // The server was not watched; the answer states that nothing was lost.
        assert_eq!(series["server"], Value::Null);
        assert_eq!(
            (&series["left_out"], &series["damaged"]),
            (&json!(0), &json!(0))
        );
        let steps = series["steps_ms"].as_array().unwrap().len();
        for numbers in [
            &client["open"],
            &client["connect"]["buckets"],
            &client["reset"]["sent"],
            &client["drop"]["count"],
        ] {
            assert_eq!(numbers.as_array().unwrap().len(), steps);
        }
        let bounds = client["write_rtt_us"]["bounds"].as_array().unwrap();
        assert_eq!((&bounds[0], &bounds[1]), (&json!(0), &json!(10)));
        assert_eq!(series["unavailable"]["tls"], "not looked at");
        api.send_empty("POST", &format!("/api/v1/tasks/{id}/stop"))
            .await;
    }
}

#[tokio::test]
async fn the_connections_of_an_edge_are_listed_while_the_task_runs() {
    let api = Api::new();
    let id = network_task(&api).await;
    let path = format!("/api/v1/tasks/{id}/edges");
    let edge = edge_of(&api, &path).await;
    let path = format!("{path}/{edge}/connections");
    let found = api.get_json(&path).await;
    let connection = json!({
        "side": "client", "local": "10.0.0.1:40000", "remote": "192.0.2.7:80", "pid": 1,
        "age_ms": 2500, "open": true, "write_calls": 2, "write_bytes": 700,
        "read_calls": 0, "read_bytes": 0, "rtt_mean_us": null, "min_rtt_us": 6, "retransmits": 3, "drops": 0,
    });
    // That of another edge is not among them.
    assert_eq!(
        (&found["items"], &found["reason"]),
        (&json!([connection]), &Value::Null)
    );
    api.send_empty("POST", &format!("/api/v1/tasks/{id}/stop"))
        .await;
    let ended = api.get_json(&path).await;
    assert_eq!(ended["items"], json!([]));
    let reason = "single connections are listed only while the measurement runs";
    assert_eq!(ended["reason"], reason);
}

#[tokio::test]
async fn what_is_not_there_or_not_meant_is_refused() {
    let api = Api::new();
    let id = network_task(&api).await;
    let path = format!("/api/v1/tasks/{id}/edges");
    let edge = edge_of(&api, &path).await;
    for (path, status) in [
        (format!("{path}/0000000000000000/series"), 404),
        (format!("{path}/1/series"), 404),
        (format!("{path}/{}/series", edge.to_uppercase()), 404),
        (format!("/api/v1/tasks/77/edges/{edge}/series"), 404),
        (format!("{path}/{edge}/series?from=5&to=5"), 422),
        (format!("{path}/{edge}/series?steps=0"), 422),
        (format!("{path}/{edge}/series?steps=9999"), 422),
        (format!("{path}/{edge}/series?step=1"), 422),
        (format!("/api/v1/network/edges/{edge}/series"), 409),
        (format!("{path}/0000000000000000/connections"), 404),
        (format!("{path}/{edge}/connections?side=client"), 422),
        (format!("/api/v1/network/edges/{edge}/connections"), 409),
    ] {
        assert_eq!(api.get(&path).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn the_always_on_collection_has_series_too() {
    let api = always();
    let path = "/api/v1/network/edges";
    let edge = edge_of(&api, path).await;
    // The first step ends after seconds; the edge is known before.
    let series = api.get_json(&format!("{path}/{edge}/series")).await;
    assert_eq!(series["edge"], edge);
    assert!(series["client"].is_object());
    let missing = format!("{path}/00000000000000ff/series");
    assert_eq!(api.get(&missing).await.status(), 404);
}
