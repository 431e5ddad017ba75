//! The API fuzzed for a minute from its OpenAPI document; for half an hour by `cargo xtask bench api-fuzz`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use profiler_tests::{
    api::Api,
    api_fuzz::{self, Options},
    assert_measured,
    cleanup::scratch_directory,
};
use serde_json::{Value, json};

/// The same each time; the long form takes another by `--seed`.
const SEED: u32 = 1;
/// Fewest requests with a token and without: a twentieth of what an idle machine makes in the time.
const LEAST: [u64; 2] = [100, 25];

/// A minute in all.
const OPTIONS: Options = Options {
    seed: SEED,
    coverage: Duration::from_secs(18),
    with_token: Duration::from_secs(12),
    without_token: Duration::from_secs(6),
    rounds: 2,
    odd_shares: 10,
    whole: Duration::ZERO,
    least: LEAST,
};

#[test]
fn a_minute_of_fuzzing_finds_no_fault_and_no_growth() {
    let found = api_fuzz::run(&OPTIONS, |line| println!("{line}")).unwrap();
    assert!(
        found.faults.is_empty(),
        "{} faults:\n{}",
        found.faults.len(),
        found.faults.join("\n")
    );
    // Beside other tests the agent meets their programs, whose symbols are memory and files of its own.
    assert_measured!(found.growth.is_empty(), "{:#?}", found.growth);
    assert_measured!(found.slow.is_empty(), "{:#?}", found.slow);
    assert_measured!(
        found.with_token >= LEAST[0] && found.without_token >= LEAST[1],
        "{} requests with a token, {} without",
        found.with_token,
        found.without_token
    );
    assert!(found.operations > 50 && found.odd > 1000, "{found:#?}");
}

/// Answers of a server whose document promises an object with a text `a`: path, status, media type, body, and what is to be
/// found.
const WRONG: [(&str, u16, &str, &str, &str); 5] = [
    (
        "/undeclared",
        418,
        "application/problem+json",
        r#"{"status":418,"code":"teapot","detail":"no coffee"}"#,
        "Undocumented status code",
    ),
    (
        "/broken",
        500,
        "application/problem+json",
        r#"{"status":500,"code":"internal","detail":"broken"}"#,
        "server_error_is_meant",
    ),
    (
        "/silent",
        404,
        "application/problem+json",
        "{}",
        "refusal_says_why",
    ),
    (
        "/shape",
        200,
        "application/json",
        r#"{"a":1}"#,
        "Response violates schema",
    ),
    (
        "/media",
        200,
        "text/plain",
        "a",
        "Undocumented Content-Type",
    ),
];

/// Serves them, whatever is asked, for as long as the test runs.
fn wrong_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that has gone is not a reason to end.
            thread::spawn(move || stream.ok().and_then(answer));
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut head = vec![0; 64 << 10];
    let length = stream.read(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head[..length]).into_owned();
    let (_, status, media_type, body, _) = WRONG.iter().find(|(path, ..)| text.contains(path))?;
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).ok()
}

fn promised() -> Value {
    let promised = json!({
        "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } }
    });
    let responses = json!({
        "200": { "description": "", "content": { "application/json": { "schema": promised } } },
        "404": { "description": "", "content": { "application/problem+json": { "schema": {} } } },
        "500": { "description": "", "content": { "application/problem+json": { "schema": {} } } }
    });
    let parameter = json!([{ "name": "n", "in": "query", "schema": { "type": "integer" } }]);
    let paths: serde_json::Map<String, Value> = WRONG
        .iter()
        .map(|(path, ..)| {
            let operation = json!({ "parameters": parameter, "responses": responses });
            ((*path).to_owned(), json!({ "get": operation }))
        })
        .collect();
    json!({ "openapi": "3.1.0", "info": { "title": "", "version": "1" }, "paths": paths })
}

#[test]
fn what_is_wrong_with_a_server_is_found() {
    let (folder, _guard) = scratch_directory("wrong-server").unwrap();
    let api = Api::new(wrong_server(), Some("0123456789abcdef".to_owned()));
    let found = api_fuzz::faults(&api, &promised(), &folder, Duration::from_secs(10)).unwrap();
    let all = found.join("\n");
    for (path, .., expected) in WRONG {
        let is_found = |fault: &String| fault.contains(path) && fault.contains(expected);
        assert!(found.iter().any(is_found), "{path}, {expected}: {all}");
    }
    assert!(
        all.contains("/shape: token") && all.contains("where a refusal is due"),
        "a token that was not asked for: {all}"
    );
}
