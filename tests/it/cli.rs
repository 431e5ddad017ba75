//! The commands that need no server.

use std::time::Duration;

use profiler_tests::{
    agent::{Agent, ServeOptions, launch, run, token_in},
    api::Api,
    assert_measured,
    folded::Folded,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::targets::{EXIT, Targets, assert_built_shares, burn, on_cpu};

const QUICK: Duration = Duration::from_mins(1);

#[test]
fn record_finds_targets_by_name_cgroup_and_the_whole_node_in_every_format() {
    let targets = Targets::new();
    let _target = targets.busy("shares-formats");
    let runs = [
        (vec!["--comm", "shares-formats"], "folded"),
        (vec!["--comm", "shares-formats"], "pprof"),
        (vec!["--all"], "svg"),
        (vec!["--all"], "speedscope"),
        (vec!["--cgroup", "/"], "flamegraph"),
    ];
    let mut started = Vec::new();
    for (index, (target, format)) in runs.into_iter().enumerate() {
        let output = targets.folder.join(format!("{index}.{format}"));
        let mut arguments = vec!["record"];
        arguments.extend(target);
        let path = output.to_str().unwrap().to_owned();
        arguments.extend([
            "--duration",
            "2s",
            "--frequency",
            "299",
            "--format",
            format,
            "--output",
            &path,
        ]);
        started.push((
            launch(&arguments, &format!("record-{index}"), &targets.folder).unwrap(),
            format,
            output,
        ));
    }
    for (mut process, format, output) in started {
        let status = process.wait(QUICK).unwrap();
        assert!(status.success(), "{format}: {}", process.errors());
        let bytes = std::fs::read(output).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        match format {
            "pprof" => assert_eq!(&bytes[..2], [0x1f, 0x8b], "gzip"),
            "flamegraph" => assert_eq!(&bytes[..4], b"PFG1"),
            _ => assert!(text.contains("hot_sixty"), "{format}"),
        }
    }
}

#[test]
fn a_command_that_record_starts_is_recorded_from_its_first_instruction_to_its_end() {
    let targets = Targets::new();
    let output = targets.folder.join("command.folded");
    let shell = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 3";
    let record = |command: &[&str]| {
        let mut arguments = vec!["record", "--frequency=999", "--format=folded", "--output"];
        arguments.push(output.to_str().unwrap());
        arguments.push("--");
        arguments.extend(command);
        run(&arguments, QUICK).unwrap()
    };
    let (status, _, errors) = record(&["sh", "-c", shell]);
    assert!(status.success(), "{errors}");
    assert!(
        errors.contains("the command ended with exit status: 3"),
        "{errors}"
    );
    let folded = Folded::parse(&std::fs::read_to_string(&output).unwrap()).unwrap();
    assert_measured!(folded.total() > 50, "{}", folded.summary());
    // Nothing of the process before it became the command, and all of the command.
    let of_shell = folded
        .stacks
        .iter()
        .filter(|stack| stack.frames[0].starts_with("sh"));
    let of_shell: u64 = of_shell.map(|stack| stack.count).sum();
    assert_measured!(of_shell * 10 >= folded.total() * 9, "{}", folded.summary());

    // What cannot be started says so in its own words.
    let (status, _, errors) = record(&["/nonexistent/program"]);
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("start /nonexistent/program"), "{errors}");
    assert!(
        errors.contains("the command could not be started"),
        "{errors}"
    );
    let (status, _, errors) = run(
        &[
            "record",
            "--all",
            "--format=folded",
            "--output=-",
            "--",
            "true",
        ],
        QUICK,
    )
    .unwrap();
    assert_eq!(status.code(), Some(2), "{errors}");
    assert!(errors.contains("cannot be used with"), "{errors}");
}

#[test]
fn ctrl_c_writes_what_was_collected() {
    let targets = Targets::new();
    let target = targets.busy("shares-ctrl-c");
    let pid = target.pid().to_string();
    let output = targets.folder.join("early.folded");
    let mut process = launch(
        &[
            "record",
            "--pid",
            &pid,
            "--duration",
            "1h",
            "--frequency",
            "499",
            "--format",
            "folded",
            "--output",
            output.to_str().unwrap(),
        ],
        "record",
        &targets.folder,
    )
    .unwrap();
    burn(&target, Duration::from_secs(3));
    let status = process.interrupt(Signal::INT).unwrap();
    assert!(status.success(), "{status}: {}", process.errors());
    let folded = Folded::parse(&std::fs::read_to_string(output).unwrap()).unwrap();
    assert_measured!(folded.total() > 700, "{}", folded.summary());
}

#[test]
fn record_works_beside_a_server_and_opens_no_data_directory() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-beside");
    let pid = target.pid().to_string();
    let data = agent.data_dir.to_str().unwrap();
    let mut process = profiler_tests::process::Launch::new(
        &profiler_tests::paths::agent().unwrap(),
        "record",
        &targets.folder,
    )
    .args([
        "record",
        "--pid",
        &pid,
        "--duration",
        "3s",
        "--format",
        "folded",
        "--output",
        "-",
    ])
    .env("PROFILER_DATA_DIR", data)
    .start()
    .unwrap();
    let files = format!("/proc/{}/fd", process.pid());
    let mut looked = 0;
    while process.is_running() {
        for entry in std::fs::read_dir(&files).into_iter().flatten().flatten() {
            let link = std::fs::read_link(entry.path()).unwrap_or_default();
            assert!(!link.starts_with(data), "{}", link.display());
            looked += 1;
        }
        // Without a pause this would take a CPU from the target.
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(looked > 10, "looked at {looked} descriptors");
    assert!(
        process.wait(EXIT).unwrap().success(),
        "{}",
        process.errors()
    );
    // A busy machine may give the target little of the three seconds.
    assert_measured!(Folded::parse(&process.output()).unwrap().total() > 20);
    assert_eq!(agent.api.get_json("/api/v1/tasks").unwrap()["total"], 0);
}

#[test]
fn wrong_usage_has_exit_code_2_and_a_clear_line() {
    let cases: [(&[&str], &str); 6] = [
        (&["record", "--output", "-", "--format", "folded"], "--pid"),
        (
            &[
                "record",
                "--all",
                "--frequency",
                "0",
                "--format",
                "folded",
                "--output",
                "-",
            ],
            "frequency",
        ),
        (
            &[
                "record",
                "--all",
                "--frequency",
                "5000",
                "--format",
                "folded",
                "--output",
                "-",
            ],
            "frequency",
        ),
        (
            &[
                "record",
                "--all",
                "--duration",
                "9000h",
                "--format",
                "folded",
                "--output",
                "-",
            ],
            "duration",
        ),
        (
            &["record", "--all", "--format", "docx", "--output", "-"],
            "docx",
        ),
        (&["fly"], "fly"),
    ];
    for (arguments, expected) in cases {
        let (status, _, errors) = run(arguments, QUICK).unwrap();
        assert_eq!(status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id().to_string();
    gone.wait().unwrap();
    let (status, _, errors) = run(
        &[
            "record", "--pid", &pid, "--format", "folded", "--output", "-",
        ],
        QUICK,
    )
    .unwrap();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains(&format!("no such process: {pid}")),
        "{errors}"
    );
}

#[test]
fn ps_doctor_and_openapi() {
    let (status, output, errors) = run(&["ps", "--json"], QUICK).unwrap();
    assert!(status.success(), "{errors}");
    let listed: Value = serde_json::from_str(&output).unwrap();
    let items = listed["items"].as_array().or(listed.as_array()).unwrap();
    assert!(
        items
            .iter()
            .any(|process| process["pid"] == std::process::id()),
        "{output}"
    );
    let (status, output, _) = run(&["ps"], QUICK).unwrap();
    assert!(
        status.success() && output.contains(&std::process::id().to_string()),
        "{output}"
    );

    let (status, output, errors) = run(&["doctor", "--json"], QUICK).unwrap();
    assert!(status.success(), "{errors}");
    let found: Value = serde_json::from_str(&output).unwrap();
    assert!(found.to_string().contains("on_cpu"), "{found}");
    let (status, output, _) = run(&["doctor"], QUICK).unwrap();
    assert!(status.success() && !output.is_empty());

    let (status, output, _) = run(&["openapi"], QUICK).unwrap();
    assert!(status.success());
    let document: Value = serde_json::from_str(&output).unwrap();
    assert!(document["paths"]["/api/v1/tasks"].is_object());
}

#[test]
fn configuration_flags_over_environment_over_file() {
    let targets = Targets::new();
    let config = targets.folder.join("agent.toml");
    std::fs::write(&config, "max_tasks = 3\ncpu_budget = 7\n").unwrap();
    let print = |arguments: &[&str], budget: Option<&str>| {
        let mut launch = profiler_tests::process::Launch::new(
            &profiler_tests::paths::agent().unwrap(),
            "print",
            &targets.folder,
        )
        .args([
            "serve",
            "--print-config",
            "--config",
            config.to_str().unwrap(),
        ])
        .args(arguments);
        if let Some(budget) = budget {
            launch = launch.env("PROFILER_CPU_BUDGET", budget);
        }
        launch.start().unwrap().finish(QUICK).unwrap()
    };
    let has = |text: &str, key: &str, value: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.is_some_and(|line| line.contains(value))
    };
    let file = print(&[], None);
    assert!(
        has(&file, "max_tasks", "3") && has(&file, "cpu_budget", "7"),
        "{file}"
    );
    let environment = print(&[], Some("8"));
    assert!(has(&environment, "cpu_budget", "8"), "{environment}");
    let flag = print(&["--cpu-budget", "9"], Some("8"));
    assert!(has(&flag, "cpu_budget", "9"), "{flag}");

    std::fs::write(&config, "max_taks = 3\n").unwrap();
    let (status, _, errors) = run(&["serve", "--config", config.to_str().unwrap()], QUICK).unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(errors.contains("max_taks"), "{errors}");
}

#[test]
fn a_server_without_a_token_says_so_and_serves() {
    let agent = Agent::start_with(ServeOptions::with_arguments(["--no-auth"])).unwrap();
    assert_eq!(agent.api.token, None);
    assert_eq!(agent.api.get_json("/api/v1/meta").unwrap()["auth"], "none");
    let id = agent
        .api
        .create_task(&on_cpu(serde_json::json!({ "all": true }), 1, 99))
        .unwrap();
    agent.api.wait_task(&id, &["finished"], QUICK).unwrap();
}

#[test]
fn the_token_is_not_printed_into_a_log_and_url_prints_it() {
    let targets = Targets::new();
    let file = targets.folder.join("read-only");
    let file = file.to_str().unwrap();
    let options = ServeOptions::with_arguments(["--read-only-token-file", file]);
    let agent = Agent::start_with(options).unwrap();
    let address = agent.api.address.to_string();
    let data = agent.data_dir.to_str().unwrap();
    let token = agent.api.token.clone().unwrap();
    let read_only = token_in(file.as_ref()).unwrap();
    let said = agent.output() + &agent.log();
    assert!(said.contains(&format!("the token is in {data}/token")));
    assert!(!said.contains(&token) && !said.contains(&read_only));
    let of_agent = ["url", "--listen", &address, "--data-dir", data];
    let (status, output, errors) = run(&of_agent, QUICK).unwrap();
    assert!(status.success(), "{errors}");
    assert_eq!(output, format!("http://{address}/#token={token}\n"));
    let api = Api::of_url(&output).unwrap();
    assert_eq!(api.get_json("/api/v1/meta").unwrap()["role"], "full");
    let looking = [
        "url",
        "--read-only",
        "--listen",
        &address,
        "--read-only-token-file",
        file,
    ];
    let (status, output, errors) = run(&looking, QUICK).unwrap();
    assert!(status.success(), "{errors}");
    assert_eq!(output, format!("http://{address}/#token={read_only}\n"));
    // Where there is no token to read, it says where it looked.
    let elsewhere = targets.folder.join("nothing");
    let elsewhere = ["url", "--data-dir", elsewhere.to_str().unwrap()];
    let (status, output, errors) = run(&elsewhere, QUICK).unwrap();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(errors.contains("nothing/token"), "{errors}");
    let (status, _, errors) = run(&["url", "--read-only"], QUICK).unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(errors.contains("--read-only-token-file FILE"), "{errors}");
}

#[test]
fn health_asks_the_agent_and_needs_no_token() {
    let mut agent = Agent::start().unwrap();
    let url = format!("http://{}", agent.api.address);
    for (more, said) in [(None, "ok\n"), (Some("--ready"), "ready\n")] {
        let mut arguments = vec!["health", "--url", &url];
        arguments.extend(more);
        let (status, output, errors) = run(&arguments, QUICK).unwrap();
        assert!(status.success(), "{errors}");
        assert_eq!(output, said);
    }
    agent.stop().unwrap();
    let (status, output, errors) = run(&["health", "--url", &url], QUICK).unwrap();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        errors.contains("nothing listens at") && errors.contains("is the agent running?"),
        "{errors}"
    );
}

#[test]
fn an_agent_without_privileges_is_alive_and_not_ready() {
    let wrapper = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];
    let options = ServeOptions {
        wrapper: wrapper.map(str::to_owned).into(),
        ..ServeOptions::default()
    };
    let agent = Agent::start_with(options).unwrap();
    let url = format!("http://{}", agent.api.address);
    let (status, _, errors) = run(&["health", "--url", &url], QUICK).unwrap();
    assert!(status.success(), "{errors}");
    let (status, output, errors) = run(&["health", "--ready", "--url", &url], QUICK).unwrap();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        errors.contains("no eBPF program can be loaded here") && !errors.contains('{'),
        "{errors}"
    );
}

#[test]
fn the_version_names_the_commit_and_is_the_apis() {
    let (status, output, errors) = run(&["--version"], QUICK).unwrap();
    assert!(status.success(), "{errors}");
    let (first, parts) = output.split_once('\n').unwrap();
    assert!(
        parts.starts_with("eBPF programs: embedded\nweb UI: embedded\n"),
        "{output}"
    );
    let agent = Agent::start().unwrap();
    let meta = agent.api.get_json("/api/v1/meta").unwrap();
    let version = meta["version"].as_str().unwrap();
    let revision = meta["git_revision"].as_str().unwrap();
    assert_eq!(revision.len(), 40, "built outside a repository: {revision}");
    assert_eq!(first, format!("profiler-agent {version} ({revision})"));
}

/// Counts the samples of two seconds.
mod alone {
    use super::*;

    #[test]
    fn record_writes_to_stdout_and_its_summary_to_stderr() {
        let targets = Targets::new();
        let target = targets.busy("shares-stdout");
        let pid = target.pid().to_string();
        let (status, output, errors) = run(
            &[
                "record",
                "--pid",
                &pid,
                "--duration",
                "2s",
                "--frequency",
                "499",
                "--format",
                "folded",
                "--output",
                "-",
            ],
            QUICK,
        )
        .unwrap();
        assert!(status.success(), "{errors}");
        let folded = Folded::parse(&output).unwrap();
        assert_measured!(folded.total() > 500, "{}", folded.summary());
        assert_built_shares(&folded, 6.0, "standard output");
        assert!(
            errors.contains(&folded.total().to_string()),
            "samples in the summary: {errors}"
        );
    }
}
