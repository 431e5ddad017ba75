//! Server-sent events.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream},
    http::header,
};
use futures_util::StreamExt;
use serde_json::Value;

use super::Api;

/// Reads events of a stream.
pub(super) struct Events {
    chunks: BodyDataStream,
    buffer: String,
}

impl Events {
    pub(super) async fn open(api: &Api) -> Self {
        Self::open_at(api, "/api/v1/events").await
    }

    pub(super) async fn open_at(api: &Api, path: &str) -> Self {
        let response = api.get(path).await;
        assert_eq!(response.status(), 200);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/event-stream"
        );
        let body: Body = response.into_body();
        Self {
            chunks: body.into_data_stream(),
            buffer: String::new(),
        }
    }

    /// The next event with its data; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                let event = field("event: ").zip(field("data: "));
                self.buffer = rest.to_owned();
                if let Some((name, data)) = event {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let read = tokio::time::timeout(Duration::from_secs(10), self.chunks.next());
            let chunk = read.await.expect("an event in time")?.unwrap();
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    pub(super) async fn find(&mut self, holds: impl Fn(&str, &Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while let Some((name, data)) = self.next().await {
            assert!(std::time::Instant::now() < deadline, "other events only");
            if holds(&name, &data) {
                return data;
            }
        }
        panic!("the stream ended");
    }
}

#[tokio::test]
async fn changes_of_a_task_arrive() {
    let api = Api::new();
    let mut events = Events::open(&api).await;
    let id = api.running_task().await;
    let running = events
        .find(|name, data| name == "task" && data["id"] == *id && data["samples"] == 8)
        .await;
    assert_eq!(running["state"], "running");
    assert_eq!(running["target"], serde_json::json!({"all": true}));
    api.send_empty("POST", &format!("/api/v1/tasks/{id}/stop"))
        .await;
    events
        .find(|name, data| name == "task" && data["state"] == "cancelled")
        .await;
    api.send_empty("DELETE", &format!("/api/v1/tasks/{id}"))
        .await;
    let deleted = events.find(|name, _| name == "task_deleted").await;
    assert_eq!(deleted, serde_json::json!({"id": id}));
}

#[tokio::test]
async fn processes_and_own_cost_are_refreshed_while_somebody_listens() {
    let api = Api::new();
    let mut events = Events::open(&api).await;
    let own = std::process::id().to_string();
    let refreshed = events.find(|name, _| name == "processes").await;
    let items = refreshed["items"].as_array().unwrap();
    assert!(
        items
            .iter()
            .any(|item| item["id"].as_str().unwrap().starts_with(&format!("{own}-")))
    );
    // Readings of pods are those of the list.
    let places = |list: &Value| {
        let of = |pod: &Value| (pod["kind"].clone(), pod["network_namespace"].clone());
        list.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let pods = api.get_json("/api/v1/pods").await;
    for reading in places(&refreshed["pods"]) {
        assert!(places(&pods["items"]).contains(&reading), "{reading:?}");
    }
    assert!(!refreshed["pods"].as_array().unwrap().is_empty());
    let cost = events.find(|name, _| name == "self").await;
    assert!(cost["rss_bytes"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_stopping_agent_ends_the_stream() {
    let api = Api::new();
    let mut events = Events::open(&api).await;
    api.shutdown.cancel();
    while events.next().await.is_some() {}
    assert!(api.state.is_shutting_down());
}
