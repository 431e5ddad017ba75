//! What commands print, with each letter that steers a terminal in each text that others choose.
//!
//! A model becomes JSON, in which one text after the other is replaced. A new command, and a new model of one, joins
//! the tests below.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use anyhow::anyhow;
use clap::Parser as _;
use profiler_analysis::render::{
    access_log_table, net_table,
    report::{
        ReportForm, report,
        samples::{changed, rich},
    },
    requests_table,
};
use profiler_host::{
    container_names::ContainerDirectory,
    process::{ProcessTable, pods},
};
use profiler_model::{
    Address, Clock, Container, ContainerNames, ContainerRole, Edge, EdgeKey, EdgeNamespaces,
    EdgeTable, Endpoint, EnvoyLogs, EventLoopTable, Frame, FrameSpace, LoopTurn, ModuleKind,
    NameSource, NamedBy, Operation, PodNames, Process, ProcessKey, Profile, ProfileBuilder,
    ProfileProcess, ProfileThread, RequestEdge, RequestTable, SampleRow, SideMetrics, Sidecar,
    Tally, TaskState, ThreadState, Timings, TlsFileReport, TlsReport, UpstreamHeader, Workload,
    access_log_status::{AccessLogEnvoy, AccessLogStages, AccessLogStatus, LoggingProcess},
    comparison::FindingName,
};
use profiler_protocols::Protocol;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{CliError, asking, diff, doctor, doctor_process, naming, ps, record};
use crate::{
    api,
    config::cli::{Cli, Command, RecordArgs},
    terminal::{self, Text},
};

/// Begins a line when an end of line gets through.
const FORGED: &str = "FORGED";

/// Controls (C0, DEL, C1), and letters that have no width, end lines or turn the direction of writing.
fn steering() -> impl Iterator<Item = char> {
    (0..0x20)
        .chain(0x7f..0xa0)
        .chain([0xad, 0x61c, 0xfeff, 0xe0041])
        .chain(0x200b..=0x200f)
        .chain(0x2028..=0x202e)
        .chain(0x2060..=0x2069)
        .filter_map(char::from_u32)
}

static STEERING: LazyLock<BTreeSet<char>> = LazyLock::new(|| steering().collect());

fn hostile(letter: char) -> String {
    format!("a{letter}{FORGED}")
}

/// Fails unless the text steers nothing.
fn assert_harmless(text: &str, what: &str) {
    let found: Vec<char> = text
        .chars()
        .filter(|letter| *letter != '\n' && STEERING.contains(letter))
        .collect();
    assert!(found.is_empty(), "{what}: {found:?} in\n{text:?}");
    let forged = text.lines().find(|line| line.starts_with(FORGED));
    assert_eq!(forged, None, "{what}: a line is forged in\n{text}");
}

/// Where a text is in JSON: the pointer to it, or the pointer to the object that has it as a key.
#[derive(Debug)]
enum Place {
    Value(String),
    Key(String, String),
}

fn places(value: &Value, at: &str, found: &mut Vec<Place>) {
    match value {
        Value::String(_) => found.push(Place::Value(at.to_owned())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                found.push(Place::Key(at.to_owned(), key.clone()));
                let key = key.replace('~', "~0").replace('/', "~1");
                places(member, &format!("{at}/{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replaced(model: &Value, place: &Place, text: String) -> Value {
    let mut model = model.clone();
    match place {
        Place::Value(at) => *model.pointer_mut(at).unwrap() = Value::String(text),
        Place::Key(at, key) => {
            let members = model.pointer_mut(at).unwrap().as_object_mut().unwrap();
            let member = members.remove(key).unwrap();
            members.insert(text, member);
        }
    }
    model
}

/// Renders a model with each letter in each of its texts. Where the model does not take a text, as in place of an
/// address, there is nothing to render. Returns how many places were seen in what was rendered.
fn check_json(model: &Value, render: impl Fn(Value) -> Option<Text>) -> usize {
    assert!(render(model.clone()).is_some(), "no model: {model}");
    let mut all = Vec::new();
    places(model, "", &mut all);
    let is_shown = |place: &Place| {
        let mut is_shown = false;
        for letter in steering() {
            let Some(text) = render(replaced(model, place, hostile(letter))) else {
                break;
            };
            assert_harmless(&text, &format!("{letter:?} at {place:?}"));
            is_shown |= text.contains(FORGED);
            if !is_shown {
                // What is not printed with one letter is not with another.
                break;
            }
        }
        is_shown
    };
    all.iter().filter(|place| is_shown(place)).count()
}

fn check<T: Serialize + DeserializeOwned>(model: &T, render: impl Fn(T) -> Text) -> usize {
    let model = serde_json::to_value(model).unwrap();
    check_json(&model, |value| {
        serde_json::from_value(value).ok().map(&render)
    })
}

/// The same for a text that is made with a foreign one.
fn check_with(render: impl Fn(&str) -> Text) {
    for letter in steering() {
        let text = render(&hostile(letter));
        assert_harmless(&text, &format!("{letter:?}"));
        assert!(text.contains(FORGED), "{letter:?} is not in\n{text}");
    }
}

fn endpoint(address: Address) -> Endpoint {
    Endpoint {
        pid: Some(7),
        start_ticks: Some(1),
        comm: "comm".to_owned(),
        container: Some("c1".to_owned()),
        address,
    }
}

fn key() -> EdgeKey {
    EdgeKey {
        client: endpoint(Address::Unix("@client".to_owned())),
        server: endpoint(Address::Ip([10, 0, 0, 1].into())),
        server_port: Some(80),
        original_destination: None,
    }
}

fn edges() -> EdgeTable {
    let text = |text: &str| text.to_owned();
    let edge = Edge {
        key: key(),
        namespaces: EdgeNamespaces::default(),
        client_port: None,
        client_name: Some(text("client.example")),
        server_name: Some(text("server.example")),
        client: Some(SideMetrics {
            connections: 1,
            drops_by_reason: BTreeMap::from([(text("reason"), 1)]),
            ..SideMetrics::default()
        }),
        server: None,
    };
    let mut table = EdgeTable {
        edges: vec![edge],
        sources: BTreeMap::from([(text("write"), text("hook"))]),
        unavailable: BTreeMap::from([(text("drop"), text("no hook"))]),
        unresolved: BTreeMap::from([(text("owner"), 3)]),
        ..EdgeTable::default()
    };
    table.kernel_table.missed_runs.insert(text("program"), 1);
    table
}

fn container() -> ContainerNames {
    let text = |text: &str| text.to_owned();
    let workload = Some(Workload {
        kind: text("Deployment"),
        name: text("shop"),
    });
    let pod = PodNames {
        namespace: text("default"),
        name: text("shop-1"),
        uid: text("u1"),
        labels: BTreeMap::from([(text("app"), text("shop"))]),
        workload: workload.clone(),
    };
    ContainerNames {
        name: text("main"),
        role: ContainerRole::Main,
        image: Some(text("image")),
        pod: Some(Arc::new(pod)),
        labels: BTreeMap::new(),
        workload,
        named_by: NamedBy::Cri,
    }
}

fn directory(names: ContainerNames) -> ContainerDirectory {
    let directory = ContainerDirectory::default();
    directory.restore(vec![("c1".to_owned(), names)]);
    directory
}

fn process() -> Process {
    let text = |text: &str| text.to_owned();
    Process {
        key: ProcessKey {
            pid: 7,
            start_ticks: 1,
        },
        parent_pid: 1,
        comm: text("comm"),
        exe: Some(text("/bin/exe")),
        cmdline: vec![text("program"), text("argument")],
        uid: 0,
        user: Some(text("user")),
        cgroup: text("/"),
        container: Some(Container {
            id: text("c1"),
            runtime: text("docker"),
            pod_uid: Some(text("u1")),
        }),
        network_namespace: Some(5),
        threads: 1,
        rss_bytes: 1,
        cpu_percent: None,
        kernel_thread: false,
    }
}

#[test]
fn net() {
    let shown = net_table::Shown {
        idle_unix_pairs: true,
        own_pid: 1,
        is_never_known: |_| false,
    };
    let count = check(&edges(), |table: EdgeTable| net_table::text(&table, shown));
    // Both comms, the Unix socket, the server's name, metric and reason, owner, program.
    assert!(count >= 8, "{count}");
    let names = directory(container());
    let count = check(&edges(), |table: EdgeTable| {
        Text::json(&api::EdgeTable::new(&table, &names)).unwrap()
    });
    assert!(count >= 8, "{count}");
}

#[test]
fn names_of_containers_below_net_and_requests() {
    let model = (key(), container());
    let count = check(&model, |(key, names): (EdgeKey, ContainerNames)| {
        let table = ProcessTable::new();
        table.names().restore(vec![("c1".to_owned(), names)]);
        naming::legend(key.ends(), &table)
    });
    // The comm that distinguishes both ends, namespace, pod, container, workload's kind and name.
    assert!(count >= 6, "{count}");
}

#[test]
fn requests() {
    let text = |text: &str| text.to_owned();
    let operation = Operation {
        edge: Some(0),
        protocol: Protocol::Http1,
        tls: true,
        method: Some(text("GET")),
        route: Some(text("/route")),
        is_other: false,
        tally: Tally::default(),
        server_only: 0,
        client: Timings::default(),
        server: Timings::default(),
    };
    let sidecar = Sidecar {
        process: endpoint(Address::Unix(text("@sidecar"))),
        requests_in: 1,
        requests_out: 1,
        time_in_ns: 2,
        time_out_ns: 1,
        unmatched_in: 0,
        unmatched_out: 0,
        forgotten: 0,
        pairs: BTreeMap::new(),
        upstream_header: UpstreamHeader::default(),
        matched: Vec::new(),
        matched_left_out: 0,
    };
    let file = TlsFileReport {
        path: text("/lib/libssl.so"),
        build_id: text("ab"),
        library: Some(text("OpenSSL")),
        found_by: Some(text("symbols")),
        sites: Vec::new(),
        processes: 1,
        reasons: vec![text("reason")],
    };
    let table = RequestTable {
        edges: vec![RequestEdge {
            key: key(),
            client_port: None,
            connections: 1,
            server_tids: Vec::new(),
            tls: Vec::new(),
        }],
        operations: vec![operation],
        sidecars: vec![sidecar],
        tls: Some(TlsReport {
            files: vec![file],
            unavailable: Some(text("why")),
            ..TlsReport::default()
        }),
        ..RequestTable::default()
    };
    let count = check(&table, |table: RequestTable| requests_table::text(&table));
    // Both comms and the socket of the edge, method, route, comm and socket of the sidecar, path, library, reason,
    // and why there is no TLS.
    assert!(count >= 11, "{count}");
    let count = check(&table, |table: RequestTable| {
        requests_table::live(&table, 5)
    });
    assert!(count >= 5, "{count}");
    let names = directory(container());
    let count = check(&table, |table: RequestTable| {
        let requests = api::TaskRequests::new(&TaskState::Finished, Some(&table), &names);
        Text::json(&requests).unwrap()
    });
    assert!(count >= 11, "{count}");
}

#[test]
fn ps_and_ps_pods() {
    let model = (process(), container());
    let table = |is_json: bool| {
        move |(process, names): (Process, ContainerNames)| {
            let (processes, names) = ([Arc::new(process)], directory(names));
            if is_json {
                ps::json(&processes, &names).unwrap()
            } else {
                ps::text_table(&processes, &names)
            }
        }
    };
    let list = |is_json: bool| {
        move |(process, names): (Process, ContainerNames)| {
            let pods = pods(&[Arc::new(process)], &directory(names));
            ps::pod_list(&pods, is_json).unwrap()
        }
    };
    // Comm, both arguments (the second is masked), user, the container's id, and the three parts of its name.
    let count = check(&model, table(false));
    assert!(count >= 7, "{count}");
    assert!(check(&model, table(true)) >= 7);
    // Program, namespace, pod.
    let count = check(&model, list(false));
    assert!(count >= 3, "{count}");
    assert!(check(&model, list(true)) >= 3);
}

#[test]
fn doctor_of_the_machine_and_of_a_process() {
    check_with(doctor::tests::with);
    check_with(doctor_process::tests::with);
}

#[test]
fn diff_of_an_answer() {
    let answer = json!({
        "a": {"source": "6", "total": 1000, "covered_ns": 10},
        "b": {"source": "7", "total": 1000, "covered_ns": 20},
        "norm": "share", "unknown": "reason", "tested": 1, "significant": 1, "all_functions": 3,
        "functions": [{"name": "function", "self": [100, 150], "change": 0.05, "badge": "new",
            "verdict": "significant", "q": 0.1}]
    });
    let count = check_json(&answer, diff::tests::table_of);
    // Both sources, the reason, name, badge and verdict.
    assert_eq!(count, 6);
    check_with(|foreign| Text::of_json(&json!({ foreign: foreign }).to_string()));
}

#[test]
fn access_logs_status() {
    let logs = EnvoyLogs {
        process: Some(process().key),
        peer: Some(([192, 0, 2, 1], 1).into()),
        node_id: "sidecar~10.0.0.1~web-1.shop~x".to_owned(),
        own: Err("reason".to_owned()),
        ..EnvoyLogs::default()
    };
    let claimed = EnvoyLogs {
        process: None,
        ..logs.clone()
    };
    let names = container();
    let running = LoggingProcess {
        program: "envoy",
        pod: names.pod.as_deref(),
    };
    let status = AccessLogStatus {
        is_on: true,
        listen: Some("0.0.0.0:7118".to_owned()),
        refused_connections: 0,
        failed_connections: 1,
        newest_failure: Some("\u{1b}[31m".to_owned()),
        stage_seconds: AccessLogStages::default(),
        envoys: vec![
            AccessLogEnvoy::new(&logs, Some(running)),
            AccessLogEnvoy::new(&claimed, None),
        ],
    };
    let count = check(&status, |status: AccessLogStatus| {
        access_log_table(&status, 1)
    });
    // The address and the failure; program, pod, node id and reason of the one; node id and peer of the claimed one.
    assert_eq!(count, 8);
}

/// A profile of one sample in a file without names.
fn profile() -> Profile {
    let mut builder = ProfileBuilder::new(0, 1_000_000, Clock::CpuClock);
    let module = builder.module("/bin/unnamed", &[0xab], ModuleKind::Elf);
    let frame = builder.frame(Frame {
        space: FrameSpace::User,
        module,
        offset: 1,
        functions: Vec::new(),
        source: NameSource::None,
    });
    let stack = builder.stack(vec![frame]);
    let comm = builder.string("comm");
    let exe = builder.string("/bin/exe");
    let process = builder.process(ProfileProcess {
        key: ProcessKey {
            pid: 7,
            start_ticks: 1,
        },
        comm,
        exe,
        container: 0,
    });
    let name = builder.string("thread");
    let thread = builder.thread(ProfileThread {
        process,
        tid: 8,
        name,
    });
    builder.sample(SampleRow {
        thread,
        stack,
        cpu: 0,
        bucket: 0,
        state: ThreadState::OnCpu,
        waker: None,
        count: 1,
        total_ns: 1_000_000,
    });
    builder.cover(0, 1_000_000);
    builder.finish()
}

fn record_args() -> RecordArgs {
    let line = "profiler-agent record --all --format folded --output x";
    let Command::Record(args) = Cli::parse_from(line.split(' ')).command else {
        panic!("another command")
    };
    args
}

#[test]
fn record_and_its_notes() {
    let loops = EventLoopTable {
        threshold_ms: 20,
        threads: Vec::new(),
        stalls: vec![LoopTurn {
            pid: 7,
            tid: 8,
            name: "thread".to_owned(),
            duration_ns: 61_500_000,
            ..LoopTurn::default()
        }],
        stall_count: 1,
        lost: 0,
    };
    let args = record_args();
    let model = (profile(), vec!["a note".to_owned()], loops);
    let count = check(
        &model,
        |(profile, notes, loops): (Profile, Vec<String>, EventLoopTable)| {
            record::tests::said(&args, profile, notes, loops)
        },
    );
    // The file without names, the note, the thread that stalled.
    assert!(count >= 3, "{count}");
    // What a running command reports about them.
    check_with(|foreign| {
        let mut text = Text::default();
        text.line(format_args!("note: {foreign}"));
        text
    });
}

#[test]
fn diagnose_in_both_forms_with_a_comparison() {
    for form in [ReportForm::Text, ReportForm::Markdown] {
        check_with(|foreign| {
            let mut comparison = changed();
            // Titles come from a file.
            comparison.findings.gone.push(FindingName {
                id: foreign.to_owned(),
                title: foreign.to_owned(),
            });
            comparison.verdict = format!("It fell: {foreign}.");
            for row in &mut comparison.rows {
                foreign.clone_into(&mut row.feature);
            }
            Text::of(&report(&rich(foreign), Some(&comparison), form))
        });
    }
    check_with(|foreign| Text::json(&rich(foreign)).unwrap());
}

#[test]
fn diagnose_with_rules_of_somebody_else() {
    for form in [ReportForm::Text, ReportForm::Markdown] {
        // Rules may break lines; nothing else of them comes through.
        for letter in steering().filter(|letter| *letter != '\n') {
            let text = || hostile(letter);
            let mut diagnosis = rich("x");
            diagnosis.verdict = text();
            for feature in &mut diagnosis.matrix.features {
                (feature.title, feature.about) = (text(), text());
            }
            for row in &mut diagnosis.matrix.rows {
                row.feature = text();
            }
            for finding in &mut diagnosis.findings {
                (finding.id, finding.title, finding.reason) = (text(), text(), text());
                for setting in &mut finding.settings {
                    (setting.system, setting.key, setting.yaml) = (text(), text(), text());
                    (setting.scope, setting.side_effects) = (text(), text());
                }
            }
            for news in &mut diagnosis.good {
                (news.title, news.text) = (text(), text());
            }
            let shown = report(&diagnosis, None, form);
            assert_harmless(&shown, &format!("{letter:?} in {form:?}"));
            assert!(shown.matches(FORGED).count() >= 10, "{shown}");
        }
    }
}

#[test]
fn errors_and_refusals() {
    check_with(|foreign| {
        let error = anyhow!("read {foreign}").context(foreign.to_owned());
        terminal::failure(&CliError::Runtime(error))
    });
    check_with(|foreign| terminal::failure(&CliError::Found(foreign.to_owned())));
    check_with(|foreign| {
        let answer = json!({ "detail": foreign, "hint": foreign }).to_string();
        terminal::failure(&asking::refusal(404, answer.as_bytes()))
    });
    check_with(|foreign| terminal::failure(&asking::refusal(502, foreign.as_bytes())));
}
