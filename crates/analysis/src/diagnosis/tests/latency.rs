//! The sentence about latency names what the threads with requests did.

use profiler_model::{
    Edge, EdgeNamespaces, EdgeTable, Endpoint, RequestEdge, RequestTable, SideMetrics, ThreadState,
    Transfer, Window,
    diagnosis::{DiagnosedProcess, DiagnosisScope},
    latency::{LatencyActivityKind as Kind, LatencyInside},
};

use super::{PERIOD_NS, Sample, embedded, profile};
use crate::{
    diagnosis::{DiagnosisInput, diagnose, pids_of},
    idle::IdleRules,
    latency::samples::{REQUESTS, edge, end, operation},
};

const MS: u64 = 1_000_000;
/// In which there are all requests.
const SECONDS: u64 = 10;
const APP: u32 = 7;
const WORKER: u32 = 8;

/// An edge whose server has these threads.
fn served(client: &Endpoint, server: &Endpoint, tids: &[u32]) -> RequestEdge {
    RequestEdge {
        server_tids: tids.to_vec(),
        ..edge(client, server)
    }
}

/// An app that has each request for `each_ms`, and asks a database for `asked_ms` of it.
fn table(each_ms: u64, asked_ms: u64) -> RequestTable {
    let [client, app, store] =
        [(1, "wrk"), (APP, "app"), (9, "redis-server")].map(|(pid, name)| end(pid, name));
    let mut table = RequestTable {
        window: Window {
            from_ns: 0,
            to_ns: SECONDS * 1_000_000_000,
        },
        edges: vec![served(&client, &app, &[WORKER])],
        operations: vec![operation(0, each_ms * MS, Some(each_ms * MS))],
        ..RequestTable::default()
    };
    if asked_ms > 0 {
        table.edges.push(served(&app, &store, &[9]));
        table
            .operations
            .push(operation(1, asked_ms * MS, Some(asked_ms * MS)));
    }
    table
}

/// `each_ms` of every request, by a thread of the app.
fn spent<'a>(tid: u32, frames: &[&'a str], state: ThreadState, each_ms: u64) -> Sample<'a> {
    Sample {
        process: "app",
        pid: APP,
        thread: "worker",
        tid,
        state,
        count: each_ms * REQUESTS * MS / PERIOD_NS,
        ..Sample::of(frames)
    }
}

/// The sentence, and what the app did.
fn sentence(
    table: &RequestTable,
    on_cpu: &[Sample<'_>],
    waits: &[Sample<'_>],
) -> (String, Option<LatencyInside>) {
    let (on_cpu, waits) = (profile(on_cpu, SECONDS), profile(waits, SECONDS));
    let input = DiagnosisInput {
        on_cpu: Some(&on_cpu),
        off_cpu: Some(&waits),
        requests: Some(table),
        ..DiagnosisInput::default()
    };
    let found = diagnose(&embedded(), &IdleRules::new(None).unwrap(), &input);
    let [latency, ..] = found.latency.as_slice() else {
        panic!("{found:#?}");
    };
    assert!(
        found.verdict.starts_with(&latency.text),
        "{}",
        found.verdict
    );
    let inside = latency.inside.first().cloned();
    if let Some(inside) = &inside {
        let parts = inside.activities.iter().map(|activity| activity.mean_ns);
        assert_eq!(parts.sum::<u64>(), inside.mean_ns, "{inside:#?}");
    }
    (latency.text.clone(), inside)
}

const POLL: &[&str] = &["k:ep_poll", "libc.so.6!epoll_wait", "app!run"];
const WORK: &[&str] = &["app!work"];
const SLEEP: &[&str] = &[
    "k:hrtimer_nanosleep",
    "libc.so.6!clock_nanosleep",
    "app!handler",
];

fn computing(each_ms: u64) -> Sample<'static> {
    spent(WORKER, WORK, ThreadState::OnCpu, each_ms)
}

fn kinds(inside: Option<LatencyInside>) -> Vec<(Kind, u64)> {
    let activities = inside.unwrap().activities;
    let kinds = activities.iter();
    kinds
        .map(|activity| (activity.kind, activity.mean_ns / MS))
        .collect()
}

#[test]
fn an_app_that_sleeps_is_asleep_and_its_other_threads_do_not_count() {
    let waits = [
        spent(WORKER, SLEEP, ThreadState::Interruptible, 97),
        // A thread without requests that sleeps all the time.
        spent(11, SLEEP, ThreadState::Interruptible, 100),
    ];
    let (text, inside) = sentence(&table(100, 0), &[computing(2)], &waits);
    assert!(
        text.starts_with("Requests to app (7) take 100 ms on average"),
        "{text}"
    );
    assert!(text.ends_with(": asleep in a timer 97.0 ms."), "{text}");
    let inside = inside.unwrap();
    assert_eq!(inside.threads, 1);
    let [asleep, ..] = inside.activities.as_slice() else {
        panic!("{inside:#?}");
    };
    assert_eq!(asleep.stack, ["clock_nanosleep", "handler"]);
}

#[test]
fn what_a_thread_does_is_told_apart() {
    let lock = &[
        "k:futex_wait_queue",
        "libc.so.6!pthread_mutex_lock",
        "app!handler",
    ];
    let disk = &["k:vfs_fsync_range", "libc.so.6!fsync", "app!handler"];
    let waits = [
        spent(WORKER, lock, ThreadState::Interruptible, 30),
        spent(WORKER, disk, ThreadState::Uninterruptible, 20),
        spent(WORKER, WORK, ThreadState::Preempted, 10),
    ];
    let (_, inside) = sentence(&table(100, 0), &[computing(38)], &waits);
    assert_eq!(
        kinds(inside),
        [
            (Kind::Running, 38),
            (Kind::Lock, 30),
            (Kind::File, 20),
            (Kind::WaitingForCpu, 10),
            // One request at a time is behind no other.
            (Kind::Suspended, 2),
        ]
    );
}

#[test]
fn a_wait_for_events_is_what_the_app_asks_or_unknown() {
    let waits = [spent(WORKER, POLL, ThreadState::Interruptible, 90)];
    let (text, inside) = sentence(&table(100, 80), &[computing(5)], &waits);
    assert_eq!(
        kinds(inside),
        [
            (Kind::OwnRequests, 80),
            (Kind::Suspended, 15),
            (Kind::Running, 5)
        ]
    );
    assert!(
        text.ends_with(": waiting for redis-server at most 80.0 ms."),
        "{text}"
    );
    let (text, inside) = sentence(&table(100, 0), &[computing(5)], &waits);
    assert_eq!(kinds(inside), [(Kind::Suspended, 95), (Kind::Running, 5)]);
    // Connections were not watched: nothing more can be said.
    assert!(text.ends_with(": suspended 95.0 ms."), "{text}");
}

#[test]
fn work_between_requests_does_not_exceed_their_time() {
    let (_, inside) = sentence(
        &table(2, 0),
        &[computing(3)],
        &[spent(WORKER, WORK, ThreadState::Woken, 1)],
    );
    assert_eq!(
        kinds(inside),
        [(Kind::Running, 1), (Kind::WaitingForCpu, 0)]
    );
}

#[test]
fn a_process_that_was_not_recorded_is_unknown_inside() {
    let other = Sample {
        pid: 20,
        ..computing(5)
    };
    let on_cpu = profile(&[other], SECONDS);
    let waits = profile(
        &[Sample {
            pid: 20,
            ..spent(WORKER, SLEEP, ThreadState::Interruptible, 1)
        }],
        SECONDS,
    );
    let requests = table(100, 0);
    let verdict = |pids: Vec<u32>| {
        let input = DiagnosisInput {
            on_cpu: Some(&on_cpu),
            off_cpu: Some(&waits),
            requests: Some(&requests),
            requests_to: pids.clone(),
            pids,
            ..DiagnosisInput::default()
        };
        diagnose(&embedded(), &IdleRules::new(None).unwrap(), &input).verdict
    };
    let text = verdict(vec![APP]);
    assert!(
        text.contains("what it did is not known: its threads were not recorded"),
        "{text}"
    );
    // Requests to others are no answer for the process that was asked for.
    let text = verdict(Vec::new());
    assert!(
        text.starts_with("How long requests take is not known: none"),
        "{text}"
    );
}

#[test]
fn without_requests_their_time_is_not_known() {
    let on_cpu = profile(&[computing(5)], SECONDS);
    let none = RequestTable::default();
    let input = DiagnosisInput {
        on_cpu: Some(&on_cpu),
        requests: Some(&none),
        ..DiagnosisInput::default()
    };
    let found = diagnose(&embedded(), &IdleRules::new(None).unwrap(), &input);
    assert!(
        found
            .verdict
            .starts_with("How long requests take is not known: no requests were seen. "),
        "{}",
        found.verdict
    );
    let has_limit = found
        .limits
        .iter()
        .any(|limit| limit.starts_with("How long requests take"));
    assert!(has_limit, "{:?}", found.limits);
}

/// The sentence about an app that is suspended for 95 ms of each request, with its connections.
fn suspended(edges: &EdgeTable, on_cpu: &[Sample<'_>]) -> String {
    let on_cpu = profile(on_cpu, SECONDS);
    let waits = profile(
        &[spent(WORKER, POLL, ThreadState::Interruptible, 95)],
        SECONDS,
    );
    let requests = table(100, 0);
    let input = DiagnosisInput {
        on_cpu: Some(&on_cpu),
        off_cpu: Some(&waits),
        requests: Some(&requests),
        edges: Some(edges),
        ..DiagnosisInput::default()
    };
    let found = diagnose(&embedded(), &IdleRules::new(None).unwrap(), &input);
    found.latency[0].text.clone()
}

#[test]
fn what_a_suspended_request_waits_for_is_concluded() {
    let none = EdgeTable::default();
    let text = suspended(&none, &[computing(5)]);
    assert!(
        text.contains("suspended 95.0 ms, perhaps for a timer"),
        "{text}"
    );
    let other = Sample {
        thread: "pool-1",
        ..spent(11, WORK, ThreadState::OnCpu, 60)
    };
    let text = suspended(&none, &[computing(5), other]);
    assert!(text.contains("perhaps for its thread pool-1"), "{text}");
    let [app, store] = [(APP, "app"), (9, "secretd")].map(|(pid, name)| end(pid, name));
    let mut unread = EdgeTable::default();
    unread.edges.push(Edge {
        key: edge(&app, &store).key,
        namespaces: EdgeNamespaces::default(),
        client_port: None,
        client_name: None,
        server_name: None,
        client: Some(SideMetrics {
            write: Transfer {
                count: 1,
                bytes: 100,
            },
            ..SideMetrics::default()
        }),
        server: None,
    });
    let text = suspended(&unread, &[computing(5)]);
    assert!(
        text.contains("perhaps waiting for secretd, whose responses were not seen"),
        "{text}"
    );
}

/// The sentence, and why nothing is known of what the app did.
#[track_caller]
fn unknown(table: &RequestTable, waits: &[Sample<'_>], why: &str) {
    let (text, inside) = sentence(table, &[computing(5)], waits);
    assert!(inside.is_none(), "{inside:#?}");
    assert!(
        text.contains(&format!("what it did is not known: {why}")),
        "{text}"
    );
}

#[test]
fn numbers_that_would_be_wrong_are_not_told() {
    let waits = [spent(WORKER, POLL, ThreadState::Interruptible, 90)];
    unknown(&table(100, 0), &[], "samples or waits are missing");
    let mut lost = table(100, 0);
    lost.operations[0].tally.variance = None;
    unknown(&lost, &waits, "how many requests came to it");
    let mut many = table(100, 0);
    many.edges[0].server_tids = (0..256).collect();
    unknown(&many, &waits, "it has too many threads");
    let mut unseen = table(100, 0);
    unseen.edges[0].server_tids.clear();
    unknown(&unseen, &waits, "its own sockets did not see");
    let mut elsewhere = table(100, 0);
    elsewhere.window.to_ns = 0;
    unknown(&elsewhere, &waits, "nothing was recorded at the time");
}

#[test]
fn threads_that_wait_for_a_lock_with_nothing_to_do_are_not_said_to_wait_for_one() {
    let park = &[
        "k:futex_wait_queue",
        "libc.so.6!pthread_cond_wait",
        "app!park",
    ];
    let waits = [spent(WORKER, park, ThreadState::Interruptible, 900)];
    let (text, inside) = sentence(&table(100, 60), &[computing(5)], &waits);
    assert_eq!(
        kinds(inside),
        [
            (Kind::OwnRequests, 60),
            (Kind::Suspended, 35),
            (Kind::Running, 5)
        ]
    );
    assert!(
        text.contains("at most 60.0 ms, suspended 35.0 ms, perhaps for a lock"),
        "{text}"
    );
}

#[test]
fn many_requests_at_once_on_a_busy_thread_are_queued() {
    let mut busy = table(100, 0);
    for operation in &mut busy.operations {
        operation.tally.count *= 10;
        operation.tally.seen *= 10;
    }
    // 9 ms of the hundred, all the time.
    let (text, inside) = sentence(
        &busy,
        &[computing(90)],
        &[spent(WORKER, POLL, ThreadState::Interruptible, 1)],
    );
    assert_eq!(kinds(inside), [(Kind::Queued, 91), (Kind::Running, 9)]);
    assert!(
        text.contains("queued behind other requests 91.0 ms"),
        "{text}"
    );
}

#[test]
fn a_long_poll_is_nothing_that_requests_wait_for() {
    let waits = [spent(WORKER, POLL, ThreadState::Interruptible, 90)];
    let (_, inside) = sentence(&table(100, 30_000), &[computing(5)], &waits);
    assert_eq!(kinds(inside), [(Kind::Suspended, 95), (Kind::Running, 5)]);
}

/// The CPU time of the sidecar, the latency of all.
#[test]
fn a_sidecar_is_diagnosed_and_latency_is_that_of_the_whole_pod() {
    let envoy = |pid| Sample {
        process: "envoy",
        thread: "wrk:worker_0",
        pid,
        tid: pid,
        ..computing(5)
    };
    let rules = embedded();
    let scope = |samples: &[Sample<'_>], scope| {
        let on_cpu = profile(samples, SECONDS);
        pids_of(scope, &rules, [Some(&on_cpu), None])
    };
    let sidecar = DiagnosisScope::Sidecar;
    let app = || computing(2);
    assert_eq!(scope(&[envoy(20), app()], sidecar), [20]);
    assert!(scope(&[envoy(20), app()], DiagnosisScope::All).is_empty());
    // Which of two is the sidecar is not known, and one alone is all there is.
    assert!(scope(&[envoy(20), envoy(21), app()], sidecar).is_empty());
    assert!(scope(&[envoy(20)], sidecar).is_empty());

    let on_cpu = profile(&[envoy(20), app()], SECONDS);
    let waits = [spent(WORKER, SLEEP, ThreadState::Interruptible, 97)];
    let waits = profile(&waits, SECONDS);
    let requests = table(100, 0);
    let input = DiagnosisInput {
        on_cpu: Some(&on_cpu),
        off_cpu: Some(&waits),
        requests: Some(&requests),
        pids: vec![20],
        ..DiagnosisInput::default()
    };
    let found = diagnose(&rules, &IdleRules::new(None).unwrap(), &input);
    assert!(
        found.verdict.contains("asleep in a timer 97.0 ms"),
        "{}",
        found.verdict
    );
    assert!(
        found.verdict.contains("cost of envoy (20) is"),
        "{}",
        found.verdict
    );
    let pids = |processes: &[DiagnosedProcess]| -> Vec<u32> {
        processes.iter().map(|process| process.pid).collect()
    };
    assert_eq!(pids(&found.processes), [20]);
    assert_eq!(pids(&found.other_processes), [APP]);
    assert_eq!(found.coverage.samples, found.processes[0].samples);

    // The quota is that of the app.
    let waits = [spent(WORKER, WORK, ThreadState::Preempted, 60)];
    let waits = profile(&waits, SECONDS);
    let observed = super::document::observed();
    let input = DiagnosisInput {
        off_cpu: Some(&waits),
        observed: Some(&observed),
        ..input
    };
    let found = diagnose(&rules, &IdleRules::new(None).unwrap(), &input);
    assert!(
        found
            .verdict
            .contains("waiting for a CPU 60.0 ms, its quota being used up"),
        "{}",
        found.verdict
    );
}
