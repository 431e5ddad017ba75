//! Secrets that are planted in payload do not come out.

use profiler_host::container_names::ContainerDirectory;
use profiler_model::{RequestOptions, RequestTable, TaskState};
use profiler_network::requests::{
    Keep, TrackerOptions,
    played::{Play, facts},
};
use serde_json::json;

use crate::api::TaskRequests;
use profiler_engine::store::codec::{Density, decode_requests, encode_requests};

const SECRET: &str = "canary-5ecret";

fn all(raw_paths: bool) -> Play {
    let mut options = TrackerOptions {
        keep: Keep::All,
        ..TrackerOptions::default()
    };
    options.privacy.raw_paths = raw_paths;
    Play::with(options)
}

/// Looks for the secret in everything that is made of the table; returns the API's answer.
#[track_caller]
fn check(table: &RequestTable) -> String {
    assert!(!format!("{table:?}").contains(SECRET), "{table:?}");
    let blob = encode_requests(table, Density::Fast).unwrap();
    let stored = decode_requests(&blob).unwrap();
    assert_eq!(stored, *table);
    let answer = TaskRequests::new(
        &TaskState::Finished,
        Some(&stored),
        &ContainerDirectory::default(),
    );
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(!answer.contains(SECRET), "{answer}");
    answer
}

#[test]
fn no_argument_of_a_command_comes_out() {
    let mut play = all(false);
    play.tracker.connection(1, facts(1, true));
    play.ask(1, &format!("AUTH {SECRET}"), "+OK\r\n");
    play.ask(1, &format!("SET {SECRET} {SECRET}"), "+OK\r\n");
    play.ask(1, "GET k", &format!("${}\r\n{SECRET}\r\n", SECRET.len()));
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(table.samples.len(), 3);
    let answer = check(&table);
    assert!(answer.contains("\"AUTH\""), "{answer}");
}

#[test]
fn bodies_come_out_only_of_a_task_that_was_asked_for_them() {
    let wanted = |bodies| {
        let options = RequestOptions {
            bodies,
            samples_all: true,
            ..RequestOptions::default()
        };
        let mut play = Play::with(TrackerOptions::of(&options, 0, 0).unwrap());
        http(&mut play);
        play.tracker.finish(play.now_ns)
    };
    check(&wanted(false));
    let table = wanted(true);
    let answer = TaskRequests::new(
        &TaskState::Finished,
        Some(&table),
        &ContainerDirectory::default(),
    );
    let answer = serde_json::to_value(&answer).unwrap();
    let sample = &answer["samples"][0];
    for body in ["request_body", "response_body"] {
        let expected = json!({ "encoding": "utf-8", "data": SECRET, "cut": false });
        assert_eq!(sample[body], expected, "{body}");
    }
    // Headers stay what they are.
    assert!(!sample["headers"].to_string().contains(SECRET), "{sample}");
}

/// A request and its answer with the secret in every place but the path.
fn http(play: &mut Play) {
    play.tracker.connection(1, facts(1, true));
    let request = format!(
        "POST /users/17/cart?token={SECRET}&x=1 HTTP/1.1\r\nHost: shop.example\r\nAuthorization: Bearer \
         {SECRET}\r\nCookie: id={SECRET}\r\nX-Api-Key: {SECRET}\r\nX-Request-Id: 12345\r\n\
         Proxy-Authorization: Basic {SECRET}\r\nContent-Length: {}\r\n\r\n{SECRET}",
        SECRET.len()
    );
    let answer = format!(
        "HTTP/1.1 201 Created\r\nSet-Cookie: session={SECRET}\r\nContent-Length: {}\r\n\r\n{SECRET}",
        SECRET.len()
    );
    play.moved(1, true, request.as_bytes());
    play.now_ns += 2_000_000;
    play.moved(1, false, answer.as_bytes());
}

#[test]
fn of_a_request_comes_out_what_may_be_seen() {
    let mut play = all(false);
    http(&mut play);
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(table.samples.len(), 1);
    let answer = check(&table);
    assert!(answer.contains("\"status\":201"), "{answer}");
    assert!(answer.contains("\"path\":null"), "{answer}");
    assert!(!answer.contains("/users/17"), "{answer}");
}

#[test]
fn raw_paths_have_no_query() {
    let mut play = all(true);
    http(&mut play);
    let answer = check(&play.tracker.finish(play.now_ns));
    assert!(answer.contains("/users/17/cart"), "{answer}");
}
