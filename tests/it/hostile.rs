//! Targets whose files are traps: nothing hangs, nothing of the host is read. Targets whose names steer a terminal:
//! no command writes them as they are.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{self, Agent},
    assert_measured,
    process::Running,
    workload::Workload,
};
use serde_json::json;

use crate::targets::{EXIT, START, Targets, burn_all, endless, start_task, stop_task};

const SECRET: &str = "HOST_SECRET_SYMBOL";

const TRAPS: [&str; 6] = [
    "symlink",
    "magic-link",
    "fifo",
    "device",
    "sparse",
    "foreign-owner",
];

fn start(targets: &Targets, trap: &str, secret: &str) -> Running {
    let own = std::process::id().to_string();
    let name = format!("trap-{}", &trap[..trap.len().min(9)]);
    let mut target = targets.contained(Workload::Hostile, &name, &[trap, secret, &own]);
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    target
}

#[test]
fn traps_in_a_targets_files_neither_hang_the_agent_nor_leak_host_files() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    // A perf-map of the host that would name every address.
    let secret = targets.folder.join("secret.map");
    std::fs::write(&secret, format!("0 ffffffffffff {SECRET}\n")).unwrap();
    let secret = secret.to_str().unwrap();

    let honest = start(&targets, "none", secret);
    let trapped: Vec<(&str, Running)> = TRAPS
        .iter()
        .map(|trap| (*trap, start(&targets, trap, secret)))
        .collect();
    let pids: Vec<u32> = trapped
        .iter()
        .map(|(_, target)| target.pid())
        .chain([honest.pid()])
        .collect();
    let id = start_task(&agent, &endless(json!({ "pids": pids }), 499));
    let all: Vec<&Running> = trapped.iter().map(|(_, target)| target).collect();
    burn_all(&[&all[..], &[&honest]].concat(), Duration::from_secs(1));
    let task = stop_task(&agent, &id);
    assert_measured!(task["samples"].as_u64() > Some(500), "{task}");

    let asked = Instant::now();
    let folded = agent
        .api
        .folded(&id, &format!("&pid={}", honest.pid()))
        .unwrap();
    assert_measured!(
        folded.count(|stack| stack.has("jit_spin")) > 50,
        "an honest perf-map must be used: {}",
        folded.summary()
    );
    for (trap, target) in &trapped {
        let folded = agent
            .api
            .folded(&id, &format!("&pid={}", target.pid()))
            .unwrap();
        assert_measured!(folded.total() > 50, "{trap}: {}", folded.summary());
        let leaked = folded.count(|stack| stack.frames.iter().any(|frame| frame.contains(SECRET)));
        assert_eq!(
            leaked,
            0,
            "{trap} made the agent read a host file: {}",
            folded.summary()
        );
        // A perf-map that is too large is read in part; all others must not be read at all.
        if *trap != "sparse" {
            let named = folded.count(|stack| stack.has("jit_spin"));
            assert_eq!(
                named,
                0,
                "{trap}: this map must not be read: {}",
                folded.summary()
            );
        }
        // The program's own file is honest, so its functions are still named.
        let callers = folded.count(|stack| stack.has("call_jit") || stack.has("call_file"));
        assert_measured!(callers > 50, "{trap}: {}", folded.summary());
    }
    assert_measured!(
        asked.elapsed() < Duration::from_mins(1),
        "answers took {:?}",
        asked.elapsed()
    );
    let resident = agent.api.get_json("/api/v1/self").unwrap()["peak_rss_bytes"]
        .as_u64()
        .unwrap();
    assert!(
        resident < 300 << 20,
        "a trap made the agent grow to {resident} bytes"
    );
}

/// Clears the screen, ends a line, turns the direction of writing, and sets a colour by a letter of C1. A process is
/// called by its first 15 bytes, which end behind the direction.
const NAME: &str = "a\x1b[2J\nFORGED\u{202e}\u{9b}31m";

/// A process that calls itself, its file and its folder, an argument, a thread and a Unix socket by [`NAME`].
fn start_named(targets: &Targets) -> Running {
    let folder = targets.folder.join(NAME);
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join(NAME);
    // By another process: what this one has open for writing cannot be run while another thread forks.
    let copied = Command::new("cp")
        .arg(Workload::HostileNames.build("hostile-names").unwrap())
        .arg(&program)
        .status()
        .unwrap();
    assert!(copied.success());
    let mut target = targets
        .launch(&program, "named")
        .args([NAME])
        .start()
        .unwrap();
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    target
}

/// Fails unless the bytes are text of which a terminal only shows letters and ends lines.
fn assert_harmless(bytes: &[u8], what: &str) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let steers = |letter: char| {
        (letter.is_control() && letter != '\n')
            || matches!(
                letter,
                '\u{61c}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{2069}'
                    | '\u{feff}'
            )
    };
    assert!(!text.contains(steers), "{what}: {text:?}");
    let is_forged = text.lines().any(|line| line.starts_with("FORGED"));
    assert!(!is_forged, "{what}: {text}");
}

#[test]
fn names_of_a_process_do_not_steer_the_terminal_of_a_command() {
    let targets = Targets::new();
    let target = start_named(&targets);
    let pid = target.pid().to_string();
    let record = ["record", "--pid", &pid, "--duration", "2s", "--format"];
    let commands: [(&str, Vec<&str>); 8] = [
        ("ps", vec!["ps"]),
        ("ps-pods", vec!["ps", "--pods"]),
        ("ps-json", vec!["ps", "--json"]),
        ("doctor", vec!["doctor", "--pid", &pid]),
        ("doctor-json", vec!["doctor", "--pid", &pid, "--json"]),
        ("net", vec!["net", "--pid", &pid, "--duration", "2s"]),
        (
            "net-json",
            vec!["net", "--pid", &pid, "--duration", "2s", "--json"],
        ),
        (
            "record",
            [&record[..], &["folded", "--output", "-"]].concat(),
        ),
    ];
    let started: Vec<Running> = commands
        .iter()
        .map(|(label, arguments)| agent::launch(arguments, label, &targets.folder).unwrap())
        .collect();
    for mut command in started {
        let status = command.wait(EXIT).unwrap();
        let label = command.label().to_owned();
        assert!(status.success(), "{label}: {}", command.errors());
        let written = |kind: &str| {
            let bytes = std::fs::read(targets.folder.join(format!("{label}.{kind}"))).unwrap();
            assert_harmless(&bytes, &format!("{label}.{kind}"));
            String::from_utf8(bytes).unwrap()
        };
        let (output, errors) = (written("out"), written("err"));
        // The name is there, and visible.
        if label == "record" {
            assert_measured!(output.contains("a\\x1b[2J\\x0aFORGED"), "{output}");
            assert_measured!(errors.contains("\\x1b[2J"), "{errors}");
        } else {
            let escape = if label.ends_with("json") {
                "\\u001b[2J"
            } else {
                "a\\x1b[2J"
            };
            assert!(output.contains(escape), "{label}: {output}");
        }
    }
}
