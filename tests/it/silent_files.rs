//! Programs on a file system whose server does not answer: tasks end in time and keep the samples of others, nothing stays in
//! the kernel, and the agent ends when it is asked to.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    api::Answer,
    assert_measured,
    cleanup::start_ticks,
    process::Running,
    silent_server::{Silence, SilentServer},
    wait::wait_until,
    workload::{HOT_FUNCTIONS, Workload},
};
use serde_json::{Value, json};

use crate::targets::{START, Targets, burn_all, finish_task, on_cpu};

/// Tasks that run one after the other.
const TASKS: usize = 8;
/// A task of a second, its last names, and a thread that is waited for twice, on a busy machine.
const IN_TIME: Duration = Duration::from_secs(20);
/// For an answer about a process.
const ANSWERED: Duration = Duration::from_secs(10);
/// What the agent promises for its end after a signal.
const STOPPED: Duration = Duration::from_secs(5);
/// For what another process does before it is seen to have ended.
const SEEN: Duration = Duration::from_millis(500);
/// For threads of a task to end.
const ENDED: Duration = Duration::from_secs(20);

/// A program on the server, one beside it, and an agent.
struct Scene {
    _targets: Targets,
    server: SilentServer,
    far: Running,
    near: Running,
}

impl Scene {
    /// The program runs, and everything that it needs is in memory.
    fn new(name: &str) -> Self {
        let targets = Targets::new();
        let program = Workload::SharesStatic.build(name).unwrap();
        let server = SilentServer::start(&program, name).unwrap();
        let far = targets.launch(server.program(), name).start().unwrap();
        let near = targets.busy(&format!("{name}-n"));
        burn_all(&[&far, &near], Duration::from_millis(300));
        Self {
            _targets: targets,
            server,
            far,
            near,
        }
    }

    /// The program beside it has samples with names, and the one on the server has some.
    fn check_samples(&self, agent: &Agent, id: &str) {
        let of = |target: &Running| {
            let filter = format!("&pid={}", target.pid());
            agent.api.folded(id, &filter).unwrap()
        };
        let near = of(&self.near);
        let named = near.count(|stack| HOT_FUNCTIONS.iter().any(|name| stack.has(name)));
        assert_measured!(named > 10, "{}", near.summary());
        assert_measured!(named * 10 >= near.total() * 8, "{}", near.summary());
        assert_measured!(of(&self.far).total() > 10, "{}", of(&self.far).summary());
    }

    /// What the agent reports about the names of the program on the server.
    fn symbols(&self, agent: &Agent) -> Answer {
        let begun = Instant::now();
        let path = format!("/api/v1/processes/{}/symbols", identity(self.far.pid()));
        let answer = agent.api.get(&path).unwrap();
        assert_measured!(begun.elapsed() < ANSWERED, "{:?}", begun.elapsed());
        answer
    }
}

/// Profiles the whole node for a second. The task.
fn profile(agent: &Agent) -> (String, Value) {
    let begun = Instant::now();
    let everything = on_cpu(json!({ "all": true }), 1, 199);
    let id = agent.api.create_task(&everything).unwrap();
    let task = finish_task(agent, &id, 1);
    assert_measured!(begun.elapsed() < IN_TIME, "{:?}: {task}", begun.elapsed());
    (id, task)
}

/// How the API names a process.
fn identity(pid: u32) -> String {
    format!("{pid}-{}", start_ticks(pid).unwrap())
}

fn notes(task: &Value) -> String {
    task["notes"].to_string()
}

/// Threads of tasks, by the beginning of their names.
fn threads(agent: &Agent) -> BTreeMap<&'static str, usize> {
    const NAMES: [&str; 4] = ["unwind-", "samples-", "symbolizer", "file-worker"];
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let names: Vec<String> = tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .collect();
    let count = |wanted: &str| names.iter().filter(|name| name.starts_with(wanted)).count();
    NAMES.map(|name| (name, count(name))).into()
}

/// Programs and maps of which the agent has a descriptor.
fn kernel_objects(agent: &Agent) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fdinfo", agent.pid())).unwrap();
    let texts = descriptors.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let is_object = |text: &String| {
        text.lines()
            .any(|line| line.starts_with("prog_id:") || line.starts_with("map_id:"))
    };
    texts.filter(is_object).count()
}

fn stop(agent: &mut Agent) {
    let begun = Instant::now();
    let status = agent.stop_within(START).unwrap();
    let lasted = begun.elapsed();
    assert!(status.success(), "{status}: {}", agent.log());
    assert_measured!(lasted < STOPPED + SEEN, "{lasted:?}");
}

/// The server has read what it does not answer: a thread that asked it could not be ended.
#[test]
fn files_that_others_serve_are_left_alone() {
    // Dropped last: what waits for the server cannot end before that.
    let mut agent;
    let scene = Scene::new("silent-skip");
    agent = Agent::start().unwrap();
    let (objects, before) = (kernel_objects(&agent), threads(&agent));
    scene.server.fall_silent(Silence::Unanswered).unwrap();
    for _ in 0..TASKS {
        let (id, task) = profile(&agent);
        let notes = notes(&task);
        assert!(
            notes.contains("left unread") && notes.contains("--remote-files read"),
            "{task}"
        );
        scene.check_samples(&agent, &id);
    }
    let answer = scene.symbols(&agent);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer.text().contains("--remote-files read"),
        "{}",
        answer.text()
    );
    wait_until("what the tasks had is gone", ENDED, || {
        let now = threads(&agent);
        kernel_objects(&agent) <= objects
            && now["unwind-"] <= before["unwind-"]
            && now["samples-"] == 0
    })
    .unwrap_or_else(|error| {
        panic!(
            "{error:#}: {} of {objects} objects, {:?} {before:?}",
            kernel_objects(&agent),
            threads(&agent)
        )
    });
    stop(&mut agent);
}

/// Asked for, they are opened: what does not answer costs a second and a thread, once.
#[test]
fn a_server_that_is_asked_and_silent_costs_its_own_names() {
    let mut agent;
    let scene = Scene::new("silent-read");
    let options = ServeOptions::with_arguments(["--remote-files=read"]);
    agent = Agent::start_with(options).unwrap();
    // Before it is asked for the first time.
    scene.server.fall_silent(Silence::Unread).unwrap();
    let objects = kernel_objects(&agent);
    for _ in 0..2 {
        let (id, task) = profile(&agent);
        assert!(
            notes(&task).contains("did not answer"),
            "{task}\n{}",
            agent.log()
        );
        scene.check_samples(&agent, &id);
    }
    let answer = scene.symbols(&agent);
    assert!(answer.text().contains("not answer"), "{}", answer.text());
    wait_until("what the tasks had is gone", ENDED, || {
        let now = threads(&agent);
        kernel_objects(&agent) <= objects && now["unwind-"] == 0 && now["samples-"] == 0
    })
    .unwrap_or_else(|error| panic!("{error:#}: {:?}", threads(&agent)));
    assert!(threads(&agent)["file-worker"] < 16, "{:?}", threads(&agent));
    stop(&mut agent);
}

/// It has answered when the file was opened, and falls silent while it is read.
#[test]
fn a_server_that_falls_silent_while_its_file_is_read_costs_no_sample_of_others() {
    let agent;
    let scene = Scene::new("silent-later");
    let options = ServeOptions::with_arguments(["--remote-files=read"]);
    agent = Agent::start_with(options).unwrap();
    let objects = kernel_objects(&agent);
    scene.server.fall_silent_after_reads(2);
    let (id, task) = profile(&agent);
    assert!(scene.server.is_silent(), "it was not asked: {task}");
    let near = agent
        .api
        .folded(&id, &format!("&pid={}", scene.near.pid()))
        .unwrap();
    assert_measured!(
        near.total() > 10,
        "{}\n{task}\n{}",
        near.summary(),
        agent.log()
    );
    let (id, task) = profile(&agent);
    let near = agent
        .api
        .folded(&id, &format!("&pid={}", scene.near.pid()))
        .unwrap();
    let named = near.count(|stack| HOT_FUNCTIONS.iter().any(|name| stack.has(name)));
    assert_measured!(named > 10, "{}\n{task}\n{}", near.summary(), agent.log());
    wait_until("what the tasks had is gone", ENDED, || {
        kernel_objects(&agent) <= objects
    })
    .unwrap_or_else(|error| panic!("{error:#}: {} of {objects}", kernel_objects(&agent)));
}
