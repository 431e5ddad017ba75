//! Many connections: every byte of them is counted, or counted as lost.

use std::{
    path::Path,
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{self, Agent},
    assert_measured,
    cleanup::scratch_directory,
    netns::Netns,
    process::{Launch, Running},
    wait::wait_for,
    workload::Workload,
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::targets::{EXIT, START};

/// Opening the connections of the test on a busy machine.
const OPENING: Duration = Duration::from_mins(1);
/// Longer than the time between two looks for connections whose end was missed.
const SWEEP: Duration = Duration::from_mins(1);

/// What a program says it has done, over both ends of all its connections.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
struct Totals {
    connections: u64,
    writes: u64,
    written: u64,
    reads: u64,
    got: u64,
    lasted_ns: u64,
}

/// Starts a program of connections inside the namespace, up to its first wait.
fn start(netns: &Netns, label: &str, arguments: &[u64], mode: &str, folder: &Path) -> Running {
    let program = Workload::Connections.build("connections").unwrap();
    let mut running = Launch::new(&program, label, folder)
        .netns(netns)
        .args([mode])
        .args(arguments.iter().map(u64::to_string))
        .start()
        .unwrap();
    running
        .wait_for_line(OPENING, |line| (line == "ready").then_some(()))
        .unwrap();
    running
}

/// Has every program do its work, and says what each has done.
fn work(programs: &mut [Running], limit: Duration) -> Vec<(u32, Totals)> {
    for program in &*programs {
        program.signal(Signal::USR1).unwrap();
    }
    let report = |line: &str| serde_json::from_str::<Totals>(line).ok();
    programs
        .iter_mut()
        .map(|program| {
            let totals = program.wait_for_line(limit, report).unwrap();
            (program.pid(), totals)
        })
        .collect()
}

/// Watches the namespace with a table of this many connections.
fn watch(netns: &Netns, connections: u32, folder: &Path) -> Running {
    let path = netns.path();
    let room = format!("--max-connections={connections}");
    let arguments = [
        "net",
        "--netns",
        path.to_str().unwrap(),
        "--duration=600s",
        &room,
        "--json",
    ];
    let watching = agent::launch(&arguments, "net", folder).unwrap();
    wait_for("the command watches", START, || {
        watching.errors().contains("watching").then_some(())
    })
    .unwrap();
    watching
}

/// Ends the watch; its result.
fn end(mut watching: Running) -> Value {
    watching.signal(Signal::TERM).unwrap();
    watching.wait(OPENING).unwrap();
    let output = watching.output();
    serde_json::from_str(&output)
        .unwrap_or_else(|error| panic!("{error}: {output}\n{}", watching.errors()))
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// What the edges of a process, of any without one, report about both ends of its connections.
fn counted(table: &Value, pid: Option<u32>) -> Totals {
    let mut totals = Totals::default();
    for edge in table["edges"].as_array().unwrap() {
        for end in ["client", "server"] {
            let own = pid.is_none_or(|pid| edge[end]["pid"] == pid);
            let side = &edge["metrics"][end];
            if !own || side.is_null() {
                continue;
            }
            if end == "client" {
                totals.connections += number(&side["connections"]["count"]);
            }
            totals.writes += number(&side["write"]["count"]);
            totals.written += number(&side["write"]["bytes"]);
            totals.reads += number(&side["read"]["count"]);
            totals.got += number(&side["read"]["bytes"]);
        }
    }
    totals
}

/// The table without its edges, of which there may be hundreds.
fn summary(table: &Value) -> Value {
    json!({
        "lost": table["lost"],
        "kernel_table": table["kernel_table"],
        "unresolved": table["unresolved"],
        "unavailable": table["unavailable"],
    })
}

/// New connections per second of all programs together.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds of a test stay below 2^52"
)]
fn rate(reports: &[(u32, Totals)]) -> f64 {
    reports
        .iter()
        .map(|(_, totals)| totals.connections as f64 / (totals.lasted_ns as f64 / 1e9))
        .sum()
}

/// Side by side, since each waits for most of its time.
#[test]
fn what_a_small_table_loses_is_known_exactly_and_missed_ends_are_found() {
    let tests = [
        a_table_that_is_too_small_loses_a_number_that_is_known_exactly,
        connections_whose_end_was_missed_are_found,
    ];
    let ended = std::thread::scope(|scope| {
        let threads = tests.map(|test| scope.spawn(test));
        threads.map(ScopedJoinHandle::join)
    });
    if let Some(failure) = ended.into_iter().find_map(Result::err) {
        std::panic::resume_unwind(failure);
    }
}

fn a_table_that_is_too_small_loses_a_number_that_is_known_exactly() {
    const ROOM: u32 = 2_000;
    const HELD: u64 = 1_500;
    const RATE: u64 = 500;
    let netns = Netns::create("small").unwrap();
    let (folder, _guard) = scratch_directory("load").unwrap();
    let watching = watch(&netns, ROOM, &folder);
    // More ends than there is room for: some are refused, others leave when they rest.
    let mut programs = vec![start(&netns, "hold", &[HELD, 40], "hold", &folder)];
    let mut churning = [start(
        &netns,
        "churn",
        &[RATE, 10_000, 50],
        "churn",
        &folder,
    )];
    let mut reports = work(&mut churning, OPENING);
    // Those that rested are used once more, and join again as far as there is room.
    reports.extend(work(&mut programs, OPENING));
    let table = end(watching);
    let summary = summary(&table);
    eprintln!("{summary}");
    let found = counted(&table, None);
    let sum =
        |pick: fn(&Totals) -> u64| reports.iter().map(|(_, totals)| pick(totals)).sum::<u64>();
    let (events, bytes) = (
        sum(|totals| totals.writes + totals.reads),
        sum(|totals| totals.written + totals.got),
    );
    let lost = &table["lost"];
    assert_eq!(
        found.writes + found.reads + number(&lost["events"]),
        events,
        "{summary}"
    );
    assert_eq!(
        found.written + found.got + number(&lost["bytes"]),
        bytes,
        "{summary}"
    );
    let kernel = &table["kernel_table"];
    assert!(number(&lost["events"]) > 0, "{summary}");
    assert!(number(&kernel["refused"]) > 0, "{summary}");
    assert!(number(&kernel["evicted"]) > 0, "{summary}");
    assert!(number(&kernel["used"]) <= u64::from(ROOM), "{summary}");
    assert_measured!(kernel["missed_runs"] == json!({}), "{summary}");
}

fn connections_whose_end_was_missed_are_found() {
    const CONNECTIONS: u64 = 5;
    let netns = Netns::create("missed").unwrap();
    let (folder, _guard) = scratch_directory("load").unwrap();
    let denied = ["network_destroy", "network_state"].map(|name| format!("--deny-probe={name}"));
    let agent = Agent::start_with(agent::ServeOptions {
        arguments: denied.into(),
        ..agent::ServeOptions::default()
    })
    .unwrap();
    let specification = json!({
        "kind": "network",
        "target": { "network_namespace": netns.path() },
        "duration_s": 300,
    });
    let id = agent.api.create_task(&specification).unwrap();
    wait_for("the task has started", START, || {
        agent.api.task(&id).unwrap()["started_at_ns"].as_u64()
    })
    .unwrap();
    // A namespace without any process cannot be looked into.
    let _stays = start(&netns, "stays", &[1, 40], "hold", &folder);
    let mut programs = [start(&netns, "hold", &[CONNECTIONS, 40], "hold", &folder)];
    let reports = work(&mut programs, OPENING);
    let [mut program] = programs;
    let pid = program.pid();
    program.interrupt(Signal::USR1).unwrap();
    let path = format!("/api/v1/tasks/{id}/edges");
    let swept = |table: &Value| table["kernel_table"]["swept"].as_u64();
    let table = wait_for("the missed ends are found", SWEEP, || {
        let table = agent.api.get_json(&path).unwrap();
        (swept(&table) == Some(2 * CONNECTIONS)).then_some(table)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", agent.api.get_json(&path).unwrap()));
    let found = counted(&table, Some(pid));
    let (_, totals) = reports[0];
    assert_eq!(
        (found.written, found.got),
        (totals.written, totals.got),
        "{table:#}"
    );
    for edge in table["edges"].as_array().unwrap() {
        for end in ["client", "server"] {
            let side = &edge["metrics"][end];
            let own = edge[end]["pid"] == pid && !side.is_null();
            assert!(!own || side["connections"]["open"] == 0, "{edge:#}");
        }
    }
    agent.api.stop_task(&id).unwrap();
    agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
}

/// Without a processor to itself the machine does not reach the rate.
mod alone {
    use super::*;

    #[test]
    fn twenty_thousand_open_and_five_thousand_new_a_second_are_counted_to_the_byte() {
        const HOLDERS: u64 = 4;
        const HELD: u64 = 5_000;
        const CHURNERS: u64 = 2;
        const RATE: u64 = 5_000;
        const MILLISECONDS: u64 = 60_000;
        /// What a machine that is busy with something else must reach nevertheless.
        const FLOOR: f64 = 4_000.0;
        let netns = Netns::create("load").unwrap();
        let (folder, _guard) = scratch_directory("load").unwrap();
        let watching = watch(&netns, 65_536, &folder);
        let mut holding: Vec<Running> = (0..HOLDERS)
            .map(|index| {
                start(
                    &netns,
                    &format!("hold{index}"),
                    &[HELD, 40],
                    "hold",
                    &folder,
                )
            })
            .collect();
        let mut churning: Vec<Running> = (0..CHURNERS)
            .map(|index| {
                let arguments = [RATE / CHURNERS, MILLISECONDS, 50];
                start(
                    &netns,
                    &format!("churn{index}"),
                    &arguments,
                    "churn",
                    &folder,
                )
            })
            .collect();
        let began = Instant::now();
        let mut reports = work(&mut churning, Duration::from_millis(MILLISECONDS) + OPENING);
        let reached = rate(&reports);
        eprintln!(
            "{reached:.0} new connections a second for {:?}",
            began.elapsed()
        );
        reports.extend(work(&mut holding, OPENING));
        let table = end(watching);
        let summary = summary(&table);
        eprintln!("{summary}");
        assert_measured!(
            reached >= FLOOR,
            "the programs reached {reached:.0} a second"
        );
        assert_eq!(table["lost"]["events"], 0, "{summary}");
        assert_eq!(table["lost"]["bytes"], 0, "{summary}");
        let kernel = &table["kernel_table"];
        assert_eq!(kernel["refused"], 0, "{summary}");
        assert_measured!(kernel["missed_runs"] == json!({}), "{summary}");
        assert!(number(&kernel["used"]) >= 2 * HOLDERS * HELD, "{summary}");
        for (pid, totals) in reports {
            let expected = Totals {
                lasted_ns: 0,
                ..totals
            };
            assert_eq!(counted(&table, Some(pid)), expected, "{summary}");
        }
    }
}
