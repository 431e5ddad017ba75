//! Live updates.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use profiler_tests::agent::Agent;
use serde_json::{Value, json};

use crate::targets::{Targets, on_cpu};

/// Reads events until `enough` says so; panics after `limit`.
fn read_events(
    agent: &Agent,
    limit: Duration,
    mut start: impl FnMut(),
    mut enough: impl FnMut(&str, &Value) -> bool,
) {
    let mut stream = TcpStream::connect(agent.api.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let token = agent.api.token.as_deref().unwrap();
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        agent.api.address
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut seen = String::new();
    let deadline = Instant::now() + limit;
    let mut started = false;
    let mut name = String::new();
    let mut line = String::new();
    while Instant::now() < deadline {
        if let Err(error) = reader.read_line(&mut line) {
            assert!(
                matches!(error.kind(), std::io::ErrorKind::WouldBlock),
                "{error}"
            );
            continue;
        }
        if !started && line.starts_with("HTTP/1.1 200") {
            started = true;
            start();
        }
        seen.push_str(&line);
        if let Some(event) = line.strip_prefix("event:") {
            event.trim().clone_into(&mut name);
        }
        if let Some(data) = line.strip_prefix("data:")
            && let Ok(data) = serde_json::from_str(data.trim())
            && enough(&name, &data)
        {
            return;
        }
        line.clear();
    }
    panic!("not all events came within {limit:?}: {seen}");
}

#[test]
fn tasks_processes_and_the_agents_cost_are_announced() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut wanted = vec![
        "task running",
        "task finished",
        "process started",
        "process exited",
        "processes",
        "self",
    ];
    let mut children = Vec::new();
    let workload = profiler_tests::workload::Workload::SharesC;
    // Compiled here, where no time runs.
    workload.build("shares-events").unwrap();
    read_events(
        &agent,
        Duration::from_mins(1),
        || {
            agent
                .api
                .create_task(&on_cpu(json!({ "all": true }), 1, 99))
                .unwrap();
            let arguments = ["--seconds", "1"];
            children.push(targets.shares(workload, "shares-events", &arguments));
        },
        |event, data| {
            let detail = data["state"].as_str().or(data["change"].as_str());
            let heard =
                detail.map_or_else(|| event.to_owned(), |detail| format!("{event} {detail}"));
            wanted.retain(|waited| *waited != heard);
            wanted.is_empty()
        },
    );
}
