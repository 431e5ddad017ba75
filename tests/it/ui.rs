//! The page of an agent in a real browser: created by clicking, watched to its end, zoomed and searched; and every
//! page inspected, on a mesh and on recorded data.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions, address, launch, run, token_in},
    cleanup::scratch_directory,
    paths,
    process::{Launch, Running},
};
use serde_json::{Value, json};

use crate::targets::{Targets, busy_mesh, finish_task, mesh_with_mtls, start_task, stop_load};

/// A script of many pages beside compilers and emulators.
const BROWSER: Duration = Duration::from_mins(30);
const START: Duration = Duration::from_secs(20);
/// The user `nobody`.
const NOBODY: &str = "65534";

/// Runs a script of web/e2e to its end; it fails with what the script printed.
pub(crate) fn browse(script: &str, label: &str, folder: &Path, variables: &[(&str, &str)]) {
    if let Err(said) = run_script(script, label, folder, variables) {
        panic!("{said}");
    }
}

/// The same; when it fails, what the script printed, without the checks that held.
pub(crate) fn run_script(
    script: &str,
    label: &str,
    folder: &Path,
    variables: &[(&str, &str)],
) -> Result<(), String> {
    let web = paths::workspace().join("web");
    let path = web.join("e2e").join(script);
    assert!(path.is_file(), "no {}", path.display());
    assert!(
        web.join("node_modules").is_dir(),
        "the page's tools are missing: run `cargo xtask setup`"
    );
    let mut launch = Launch::new(Path::new("node"), label, folder)
        .args([path.as_os_str()])
        .current_dir(&web);
    for (name, value) in variables {
        launch = launch.env(name, value);
    }
    let mut browser = launch.start().unwrap();
    let ended = browser.wait(BROWSER);
    let good = ended.is_ok_and(|status| status.success());
    if good {
        return Ok(());
    }
    // Hundreds hold, and a record keeps the beginning and the end of a long message.
    let output = browser.output();
    let (held, rest): (Vec<_>, Vec<_>) = output.lines().partition(|line| line.starts_with("ok "));
    let last = held.last().copied().unwrap_or("nothing");
    Err(format!(
        "{script}: {} checks held, the last: {last}\n{}\n{}",
        held.len(),
        browser.errors(),
        rest.join("\n")
    ))
}

fn url(agent: &Agent) -> String {
    format!(
        "http://{}/#token={}",
        agent.api.address,
        agent.api.token.as_deref().unwrap()
    )
}

#[test]
fn the_page_works_in_a_browser() {
    let options = ServeOptions::with_arguments(["--network", "always"]);
    let agent = Agent::start_with(options).unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-page");
    let variables = [
        ("AGENT_URL", url(&agent)),
        ("TARGET_PID", target.pid().to_string()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    browse("real.mjs", "browser", &targets.folder, &variables);
}

#[test]
fn every_page_of_a_mesh_is_accessible_and_reached_by_keyboard() {
    let options = ServeOptions::with_arguments(["--network", "always"]);
    let agent = Agent::start_with(options).unwrap();
    let (mut mesh, envoys) = busy_mesh(&mesh_with_mtls());
    let target = json!({ "pids": envoys });
    let tasks = [
        json!({ "kind": "on_cpu", "target": target, "duration_s": 3, "frequency_hz": 199 }),
        json!({ "kind": "off_cpu", "target": target, "duration_s": 3, "wakers": true }),
        json!({ "kind": "wall", "target": target, "duration_s": 3 }),
    ];
    for task in tasks {
        let id = start_task(&agent, &task);
        finish_task(&agent, &id, 3);
    }
    let network = json!({ "kind": "network", "target": target, "duration_s": 3, "timed": true });
    let id = agent.api.create_task(&network).unwrap();
    finish_task(&agent, &id, 3);
    // What was measured is looked at in peace; all themes are for the stand-in.
    stop_load(&mut mesh);
    let (folder, _guard) = scratch_directory("mesh-pages").unwrap();
    let variables = [
        ("AGENT_URL", url(&agent)),
        ("LABEL", "mesh".to_owned()),
        ("THEMES", "light".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    browse("pages.mjs", "browser", &folder, &variables);
}

/// `serve --demo-data` as an ordinary user.
struct DemoAgent {
    process: Running,
    url: String,
    folder: PathBuf,
    /// Removed when dropped.
    _program: tempfile::TempDir,
    _guard: profiler_tests::cleanup::Guard,
}

impl DemoAgent {
    fn start() -> Self {
        let (folder, guard) = scratch_directory("demo-data").unwrap();
        // A checkout may lie where others cannot read.
        let program = tempfile::tempdir().unwrap();
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        open(program.path()).unwrap();
        let copy = program.path().join("profiler-agent");
        fs::copy(paths::agent().unwrap(), &copy).unwrap();
        open(&copy).unwrap();
        let mut process = Launch::new(Path::new("setpriv"), "serve", &folder)
            .args([
                format!("--reuid={NOBODY}"),
                format!("--regid={NOBODY}"),
                "--clear-groups".to_owned(),
                "--no-new-privs".to_owned(),
                copy.display().to_string(),
                "serve".to_owned(),
                "--demo-data".to_owned(),
                "--listen=127.0.0.1:0".to_owned(),
            ])
            .current_dir(Path::new("/"))
            .start()
            .unwrap();
        let ready = process.wait_for_line(START, |line| address(&format!("{line}\n")));
        let (address, file) =
            ready.unwrap_or_else(|error| panic!("{error:#}: {}", process.errors()));
        let token = token_in(&file.unwrap()).unwrap();
        let url = format!("http://{address}/#token={token}");
        Self {
            process,
            url,
            folder,
            _program: program,
            _guard: guard,
        }
    }

    fn api(&self) -> profiler_tests::api::Api {
        profiler_tests::api::Api::of_url(&self.url).unwrap()
    }
}

#[test]
fn recorded_data_is_shown_without_privileges_on_every_page() {
    let agent = DemoAgent::start();
    let status = fs::read_to_string(format!("/proc/{}/status", agent.process.pid())).unwrap();
    assert!(
        status.contains(&format!("Uid:\t{NOBODY}\t{NOBODY}")),
        "{status}"
    );
    let api = agent.api();
    let meta = api.get_json("/api/v1/meta").unwrap();
    assert_eq!(meta["demo_data"], true);
    let tasks = api.get_json("/api/v1/tasks").unwrap();
    let tasks = tasks["items"].as_array().unwrap().clone();
    for kind in ["on_cpu", "off_cpu", "wall"] {
        let task = tasks.iter().find(|task| task["kind"] == kind).unwrap();
        let id = task["id"].as_str().unwrap();
        let folded = api.folded(id, "").unwrap();
        assert!(folded.total() > 100, "{kind}: {}", folded.summary());
    }
    let edges = api.get_json("/api/v1/network/edges").unwrap();
    assert!(edges["edges"].as_array().unwrap().len() > 3, "{edges}");
    let refused = api
        .send(
            "POST",
            "/api/v1/tasks",
            Some(r#"{"kind":"on_cpu","target":{"all":true}}"#),
        )
        .unwrap();
    let problem = refused.json().unwrap();
    assert_eq!(refused.status, 409, "{problem}");
    assert_eq!(problem["code"], "tasks_refused");
    assert_eq!(
        problem["detail"],
        "this agent shows demo data and records nothing"
    );
    browse(
        "pages.mjs",
        "browser",
        &agent.folder,
        &[
            ("AGENT_URL", agent.url.as_str()),
            ("LABEL", "demo"),
            ("THEMES", "dark"),
        ],
    );
    let mut agent = agent;
    assert!(agent.process.stop().unwrap().success());
}

#[test]
fn a_profile_goes_out_and_comes_back_by_the_command_line() {
    let agent = DemoAgent::start();
    let api = agent.api();
    let tasks = api.get_json("/api/v1/tasks").unwrap();
    let of_kind = |kind: &str| -> Value {
        let items = tasks["items"].as_array().unwrap();
        items
            .iter()
            .find(|task| task["kind"] == kind)
            .unwrap()
            .clone()
    };
    let origin = agent.url.split("/#").next().unwrap().to_owned();
    let token = agent.folder.join("token");
    fs::write(&token, api.token.as_deref().unwrap()).unwrap();
    for kind in ["on_cpu", "off_cpu"] {
        let task = of_kind(kind);
        let id = task["id"].as_str().unwrap();
        let file = agent.folder.join(format!("{kind}.pb.gz"));
        fs::write(&file, api.profile(id, "pprof", "").unwrap().body).unwrap();
        let (status, output, errors) = run(
            &[
                "import",
                file.to_str().unwrap(),
                "--url",
                &origin,
                "--token-file",
                token.to_str().unwrap(),
                "--json",
            ],
            START,
        )
        .unwrap();
        assert!(status.success(), "{errors}");
        let imported: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(imported["kind"], "imported");
        assert_eq!(imported["samples"], task["samples"]);
        let again = imported["id"].as_str().unwrap();
        for value in ["&value=count", "&value=duration"] {
            let before = api.profile(id, "folded", value).unwrap().text();
            let after = api.profile(again, "folded", value).unwrap().text();
            assert!(
                before == after,
                "{kind}{value} differs after its round trip"
            );
        }
    }
    // What is not a profile is refused with the reason, and the exit code says so.
    let letter = agent.folder.join("letter.txt");
    fs::write(&letter, "hello\n").unwrap();
    let mut import = launch(
        &[
            "import",
            letter.to_str().unwrap(),
            "--url",
            &origin,
            "--token-file",
            token.to_str().unwrap(),
        ],
        "import",
        &agent.folder,
    )
    .unwrap();
    let status = import.wait(START).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(
        import.errors().contains("no count follows the stack"),
        "{}",
        import.errors()
    );
}
