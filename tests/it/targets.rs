//! Started targets and what tests check about them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use profiler_tests::{
    agent::Agent,
    assert_measured,
    cleanup::{Guard, scratch_directory},
    folded::Folded,
    mesh::{Mesh, MeshOptions},
    process::{Launch, Running},
    wait::{wait_for, wait_until},
    workload::{HOT_FUNCTIONS, SharesReport, Workload, process_cpu_ns},
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Deadlines for what takes a moment on an idle machine, and much longer beside other tests; longest in an emulator
/// that shares its processor, where loading the programs of connections alone takes half a minute.
pub(crate) const START: Duration = Duration::from_mins(3);
pub(crate) const EXIT: Duration = Duration::from_mins(1);
/// For CPU time or samples of targets that share the machine with others.
const ENOUGH: Duration = Duration::from_secs(90);

/// Fewest samples that shares are judged by.
const MIN_SAMPLES: u64 = 100;

/// A scratch folder for the targets of one test.
#[derive(Debug)]
pub(crate) struct Targets {
    pub(crate) folder: PathBuf,
    _guard: Guard,
}

impl Targets {
    pub(crate) fn new() -> Self {
        let (folder, guard) = scratch_directory("targets").unwrap();
        Self {
            folder,
            _guard: guard,
        }
    }

    pub(crate) fn launch(&self, program: &Path, label: &str) -> Launch {
        Launch::new(program, label, &self.folder)
    }

    /// A `shares` program under the name (and `comm`) `name`.
    pub(crate) fn shares(&self, workload: Workload, name: &str, arguments: &[&str]) -> Running {
        self.launch(&workload.build(name).unwrap(), name)
            .args(arguments)
            .start()
            .unwrap()
    }

    /// The same for a program that says when it is ready, and then waits for a signal.
    pub(crate) fn ready(&self, workload: Workload, name: &str, arguments: &[&str]) -> Running {
        let mut target = self.shares(workload, name, arguments);
        target
            .wait_for_line(START, |line| (line == "ready").then_some(()))
            .unwrap();
        target
    }

    /// nginx with a Unix socket, without callers. Returns its master and the socket.
    pub(crate) fn nginx(&self, workers: u32) -> (Running, PathBuf) {
        let folder = self.folder.display();
        let configuration = self.folder.join("nginx.conf");
        let socket = self.folder.join("nginx.sock");
        let text = format!(
            "daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
             events {{}}
             http {{
               access_log off;
               client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
               fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
               scgi_temp_path {folder}/scgi;
               server {{ listen unix:{}; return 200 'well'; }}
             }}",
            socket.display()
        );
        std::fs::write(&configuration, text).unwrap();
        let master = self
            .launch(Path::new("/usr/sbin/nginx"), "nginx")
            .args(["-c", configuration.to_str().unwrap()])
            .start()
            .unwrap();
        wait_until("nginx listens", START, || socket.exists()).unwrap();
        (master, socket)
    }

    /// redis with a Unix socket. Returns the socket as well.
    pub(crate) fn redis(&self) -> (Running, PathBuf) {
        let socket = self.folder.join("redis.sock");
        let server = self
            .launch(Path::new("/usr/bin/redis-server"), "redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .args([&socket])
            .current_dir(&self.folder)
            .start()
            .unwrap();
        wait_until("redis listens", START, || socket.exists()).unwrap();
        (server, socket)
    }

    /// The C program, until stopped.
    pub(crate) fn busy(&self, name: &str) -> Running {
        self.shares(Workload::SharesC, name, &[])
    }

    /// The static C program in a root of its own, as containers have it.
    pub(crate) fn contained(&self, program: Workload, name: &str, arguments: &[&str]) -> Running {
        let root = self.folder.join(format!("root-{name}"));
        std::fs::create_dir(&root).unwrap();
        let inner = program.build(name).unwrap();
        self.launch(&Workload::Contain.build("contain").unwrap(), name)
            .args([root.as_os_str(), inner.as_os_str()])
            .args(arguments)
            .start()
            .unwrap()
    }
}

/// A running mesh under load and the pids of its proxies, client's first.
pub(crate) fn busy_mesh(options: &MeshOptions) -> (Mesh, [u32; 2]) {
    let mut mesh = Mesh::up(options).unwrap();
    mesh.start_load().unwrap();
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    (mesh, envoys)
}

/// How most tests of the mesh have it.
pub(crate) fn mesh_with_mtls() -> MeshOptions {
    MeshOptions {
        workers: 2,
        mtls: true,
        ..MeshOptions::default()
    }
}

/// Ends the load and checks that the mesh has answered every request.
pub(crate) fn stop_load(mesh: &mut Mesh) {
    let load = mesh.stop_load().unwrap().unwrap();
    assert_eq!(load.errors, 0, "{load:?}");
}

/// Ends a `shares` program by SIGTERM and reads what it measured.
pub(crate) fn report_of(mut target: Running) -> SharesReport {
    target.interrupt(Signal::TERM).unwrap();
    last_report(&target)
}

/// What an ended `shares` program has printed.
pub(crate) fn last_report(target: &Running) -> SharesReport {
    let output = target.output();
    let line = output
        .lines()
        .last()
        .unwrap_or_else(|| panic!("no report: {}", target.errors()));
    SharesReport::parse(line).unwrap()
}

/// Checks the shares of the three hot functions against the program's own account. Where samples
/// are few (short tasks, a loaded machine) chance is allowed for with four standard deviations.
pub(crate) fn assert_shares(
    folded: &Folded,
    measured: &BTreeMap<String, f64>,
    points: f64,
    what: &str,
) {
    assert_measured!(
        folded.total() >= MIN_SAMPLES,
        "{what}: too few samples: {}",
        folded.summary()
    );
    for function in HOT_FUNCTIONS {
        assert_share(folded, function, measured[function], points, what);
    }
}

/// The same for one function, whose true share is known.
#[expect(
    clippy::cast_precision_loss,
    reason = "sample counts stay far below 2^52"
)]
pub(crate) fn assert_share(folded: &Folded, function: &str, truth: f64, points: f64, what: &str) {
    let seen = folded.share(function);
    let deviation = (truth * (100.0 - truth) / folded.total() as f64).sqrt();
    let allowed = points.max(4.0 * deviation);
    assert_measured!(
        (seen - truth).abs() <= allowed,
        "{what}: {function} has {seen:.2} % of the samples and {truth:.2} % of the CPU time \
         ({allowed:.2} points allowed); {}",
        folded.summary()
    );
}

/// The same for a program whose own account is not at hand: it is 60, 30 and 10 % by construction.
pub(crate) fn assert_built_shares(folded: &Folded, points: f64, what: &str) {
    let built = [60.0, 30.0, 10.0];
    let built = HOT_FUNCTIONS.map(str::to_owned).into_iter().zip(built);
    assert_shares(folded, &built.collect(), points, what);
}

/// Waits until a process has used this much more CPU time.
pub(crate) fn burn(target: &Running, cpu: Duration) {
    burn_all(&[target], cpu);
}

/// Waits until each of these has used this much more CPU time.
pub(crate) fn burn_all(targets: &[&Running], cpu: Duration) {
    let used = |target: &Running| Duration::from_nanos(process_cpu_ns(target.pid()).unwrap());
    let enough: Vec<Duration> = targets.iter().map(|target| used(target) + cpu).collect();
    wait_until("the targets use CPU time", ENOUGH, || {
        let mut all = targets.iter().zip(&enough);
        all.all(|(target, enough)| used(target) >= *enough)
    })
    .unwrap();
}

/// Checks that the samples of a thread fit the CPU time it used in a window: within 5 %, or within
/// four standard deviations where chance is larger. A thread that is always on a CPU is hit by
/// every tick, and chance has no part; one that had to share its CPU is hit by each tick with the
/// probability of its share.
#[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
pub(crate) fn assert_sample_count(
    samples: u64,
    cpu_ns: u64,
    window_ns: u64,
    frequency_hz: u64,
    what: &str,
) {
    let expected = cpu_ns as f64 / 1e9 * frequency_hz as f64;
    let ticks = window_ns as f64 / 1e9 * frequency_hz as f64;
    let share = (expected / ticks).min(1.0);
    let allowed = (expected * 0.05).max(4.0 * (ticks * share * (1.0 - share)).sqrt());
    assert_measured!(
        (samples as f64 - expected).abs() <= allowed,
        "{what}: {samples} samples where {expected:.0} were expected (within {allowed:.0})"
    );
}

pub(crate) fn on_cpu(target: Value, duration_s: u64, frequency_hz: u64) -> Value {
    json!({
        "kind": "on_cpu",
        "target": target,
        "duration_s": duration_s,
        "frequency_hz": frequency_hz,
    })
}

/// The same until it is stopped.
pub(crate) fn endless(target: Value, frequency_hz: u64) -> Value {
    let mut specification = on_cpu(target, 1, frequency_hz);
    specification["duration_s"] = Value::Null;
    specification
}

/// Creates a task and waits until it samples (its rate is known from then on).
pub(crate) fn start_task(agent: &Agent, specification: &Value) -> String {
    let id = agent.api.create_task(specification).unwrap();
    wait_until_sampling(agent, &id);
    id
}

pub(crate) fn wait_until_sampling(agent: &Agent, id: &str) {
    let waited = agent.api.wait_sampling(id, START);
    waited.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
}

/// Waits until a running task has this many samples, however little of the CPUs its target gets.
pub(crate) fn wait_samples(agent: &Agent, id: &str, least: u64) {
    let mut last = Value::Null;
    wait_until("there are enough samples", ENOUGH, || {
        last = agent.api.task(id).unwrap();
        last["samples"].as_u64() >= Some(least)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {last}\nagent log:\n{}", agent.log()));
}

/// Waits until a task has finished; fails with the agent's log.
pub(crate) fn finish_task(agent: &Agent, id: &str, seconds: u64) -> Value {
    let limit = Duration::from_secs(seconds) + EXIT;
    let task = agent.api.wait_task(id, &["finished"], limit);
    task.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()))
}

/// Stops a task and waits for its last results, however busy the machine is.
pub(crate) fn stop_task(agent: &Agent, id: &str) -> Value {
    agent.api.stop_task(id).unwrap();
    let task = agent.api.wait_task(id, &["cancelled"], EXIT);
    task.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()))
}

/// Follows the CPU time of processes while a task runs.
#[derive(Debug, Default)]
pub(crate) struct CpuHistory {
    readings: Vec<(u64, BTreeMap<u32, u64>)>,
}

impl CpuHistory {
    pub(crate) fn read(&mut self, pids: &[u32]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let times = pids
            .iter()
            .map(|pid| (*pid, process_cpu_ns(*pid).unwrap_or(0)))
            .collect();
        self.readings
            .push((u64::try_from(now.as_nanos()).unwrap(), times));
    }

    /// CPU time of a process within a span of time (Unix epoch, nanoseconds).
    pub(crate) fn between(&self, pid: u32, from_ns: u64, to_ns: u64) -> u64 {
        self.at(pid, to_ns) - self.at(pid, from_ns)
    }

    /// Interpolates between the readings around `time_ns`.
    fn at(&self, pid: u32, time_ns: u64) -> u64 {
        let after = self.readings.partition_point(|(time, _)| *time < time_ns);
        assert!(
            after > 0 && after < self.readings.len(),
            "no readings around {time_ns}"
        );
        let ((t0, low), (t1, high)) = (&self.readings[after - 1], &self.readings[after]);
        let (low, high) = (low[&pid], high[&pid]);
        low + (high - low) * (time_ns - t0) / (t1 - t0).max(1)
    }
}

/// Like [`finish_task`] for several tasks, reading CPU times all the while.
pub(crate) fn finish_watched(
    agent: &Agent,
    ids: &[&str],
    seconds: u64,
    pids: &[u32],
    history: &mut CpuHistory,
) -> Vec<Value> {
    let limit = Duration::from_secs(seconds) + EXIT;
    let ended = wait_for("all tasks end", limit, || {
        history.read(pids);
        std::thread::sleep(Duration::from_millis(20));
        let tasks: Vec<Value> = ids.iter().map(|id| agent.api.task(id).unwrap()).collect();
        let over = |task: &Value| task["ended_at_ns"].is_u64();
        tasks.iter().all(over).then_some(tasks)
    })
    .unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
    // The last bucket of a task may reach beyond its end.
    let margin = Instant::now() + Duration::from_millis(300);
    wait_until("the last bucket is over", EXIT, || Instant::now() >= margin).unwrap();
    history.read(pids);
    ended
}

/// A program of Python that never ends, all of it in functions of its own.
pub(crate) const BUSY_PYTHON: &str = "
def inner(n):
    return sum(i * i for i in range(n))
def outer():
    return [inner(200) for _ in range(50)]
while True:
    outer()
";
