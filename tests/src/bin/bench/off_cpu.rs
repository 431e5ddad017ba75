//! What measuring waits costs: a program that does nothing but switch, and the mesh.
//!
//! The program passes a byte to and fro between two of its threads through two pipes, both on one
//! CPU, so that every byte is a switch from one thread to the other and nothing hides its cost. The
//! agent and the peer have the other CPUs.

use std::{path::PathBuf, process::Child, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use profiler_tests::{
    agent::{Agent, FLOOR, ServeOptions},
    cgroup::{Cgroup, memory_hierarchy},
    cleanup::{Guard, scratch_directory},
    mesh::{Mesh, MeshOptions},
    process::{Launch, Running},
    waits::{CHAINS, WaitsReport, check_chains},
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Figure, LIMIT, TARGET, Target, cpu_seconds, figure, peak_rss_mb};

/// Of Debian's package of the same name.
const PEER: &str = "/usr/bin/bpftrace";

/// How long the peer may take until it is attached.
const PEER_LIMIT: Duration = Duration::from_secs(30);

/// What runs beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// A task for the program that counts every wait.
    Task,
    /// The same with programs that return at once.
    Floor,
    /// One that samples them.
    Sampled,
    /// A task for a process that sleeps.
    TaskForAnother,
    /// One for a container next door; both are as deep as Kubernetes has them.
    TaskForAnotherContainer,
    /// `bpftrace`, counting this program's switches by both stacks.
    Peer,
}

/// Settings by name, with the share of the throughput that is to be kept.
const ROWS: [(&str, Beside, Option<f64>); 7] = [
    ("control", Beside::Nothing, None),
    ("floor", Beside::Floor, None),
    ("every_wait", Beside::Task, Some(0.60)),
    ("sampled", Beside::Sampled, Some(0.80)),
    ("another_process", Beside::TaskForAnother, Some(0.90)),
    (
        "another_container",
        Beside::TaskForAnotherContainer,
        Some(0.95),
    ),
    ("bpftrace_kstack_ustack", Beside::Peer, None),
];

/// Requests per second of the mesh that are to be kept.
const MESH_KEPT: f64 = 0.97;

pub(crate) struct Options {
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) mesh_pairs: u32,
    pub(crate) mesh_seconds: f64,
}

pub(crate) fn figures(options: &Options) -> Result<Vec<Figure>> {
    ensure!(options.seconds > 0.1, "--seconds must be above 0.1");
    let bench = Bench::new(options.seconds)?;
    let mut figures = Vec::new();
    // In turn, so that a change of the machine's speed meets all rows.
    let mut pairs: Vec<Vec<(Speed, Speed)>> = ROWS.iter().map(|_| Vec::new()).collect();
    for index in 0..options.pairs {
        for ((name, beside, _), pairs) in ROWS.iter().zip(&mut pairs) {
            let (without, with) = bench.pair(*beside, index % 2 == 1)?;
            eprintln!(
                "pair {} of {}, {name}: {:.0} volleys/s alone, {:.0} beside",
                index + 1,
                options.pairs,
                without.per_second,
                with.per_second
            );
            pairs.push((without, with));
        }
    }
    figures.extend(parts(&pairs));
    for ((name, _, goal), pairs) in ROWS.into_iter().zip(pairs) {
        let column = |pick: fn(&(Speed, Speed)) -> f64| pairs.iter().map(pick).collect::<Vec<_>>();
        figures.push(figure(
            &format!("volleys_kept_{name}"),
            "ratio",
            column(|(without, with)| with.per_second / without.per_second),
            goal.map(Target::AtLeast),
        ));
        figures.push(figure(
            &format!("volleys_kept_per_cpu_second_{name}"),
            "ratio",
            column(|(without, with)| without.switch_ns / with.switch_ns),
            None,
        ));
        figures.push(figure(
            &format!("time_per_switch_{name}"),
            "ns of CPU time",
            column(|(_, with)| with.switch_ns),
            None,
        ));
    }
    figures.extend(mesh(options)?);
    figures.push(figure(
        "wait_stacks_exact",
        "call chains",
        vec![chains()?],
        Some(Target::AtLeast(exact(CHAINS))),
    ));
    Ok(figures)
}

/// What a switch costs in the rows that look at all of them: the kernel's calls of the programs, the programs, and the agent's
/// own time.
fn parts(pairs: &[Vec<(Speed, Speed)>]) -> Vec<Figure> {
    let pairs_of = |wanted| {
        let at = ROWS.iter().position(|(_, beside, _)| *beside == wanted);
        at.and_then(|at| pairs.get(at))
            .map_or(&[][..], Vec::as_slice)
    };
    let added = |(without, with): &(Speed, Speed)| with.switch_ns - without.switch_ns;
    let kernel: Vec<f64> = pairs_of(Beside::Floor).iter().map(added).collect();
    let mut figures = vec![figure(
        "time_per_switch_of_kernel_calls",
        "ns",
        kernel.clone(),
        None,
    )];
    for (name, beside) in [("every_wait", Beside::Task), ("sampled", Beside::Sampled)] {
        let pairs = pairs_of(beside);
        let programs = pairs
            .iter()
            .zip(&kernel)
            .map(|(pair, kernel)| added(pair) - kernel);
        let agent = pairs.iter().map(|(_, with)| with.agent_ns);
        for (part, runs) in [("programs", programs.collect()), ("agent", agent.collect())] {
            let name = format!("time_per_switch_{name}_of_{part}");
            figures.push(figure(&name, "ns", runs, None));
        }
    }
    figures
}

/// How fast the program was.
#[derive(Clone, Copy)]
struct Speed {
    /// Volleys.
    per_second: f64,
    /// CPU time of half a volley, which is not disturbed by what else the machine does.
    switch_ns: f64,
    /// CPU time of the agent beside it, for a switch.
    agent_ns: f64,
}

impl Speed {
    /// The agent has spent `agent_s` seconds meanwhile.
    fn of(report: &WaitsReport, agent_s: f64) -> Self {
        let volleys = exact(report.volleys.max(1));
        Self {
            per_second: volleys / (exact(report.lasted_ns) / 1e9),
            switch_ns: exact(report.spent_ns) / volleys / 2.0,
            agent_ns: agent_s * 1e9 / volleys / 2.0,
        }
    }
}

struct Bench {
    program: PathBuf,
    seconds: f64,
    folder: PathBuf,
    _folder_guard: Guard,
}

/// What is to be ended after a run.
enum Companion {
    None,
    Agent(Box<Agent>, String, Option<Sleeper>, Option<Cgroup>),
    Peer(Running),
}

/// A process that does nothing, killed when dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Result<Self> {
        let sleep = std::process::Command::new("sleep").arg("3600").spawn();
        Ok(Self(sleep.context("start sleep")?))
    }

    fn start_in(cgroup: &Cgroup) -> Result<Self> {
        let sleeper = Self::start()?;
        let procs = cgroup.path().join("cgroup.procs");
        std::fs::write(procs, sleeper.0.id().to_string()).context("move sleep to its cgroup")?;
        Ok(sleeper)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Bench {
    fn new(seconds: f64) -> Result<Self> {
        let (folder, guard) = scratch_directory("bench")?;
        Ok(Self {
            program: Workload::Waits.build(TARGET)?,
            seconds,
            folder,
            _folder_guard: guard,
        })
    }

    /// The program's speed without and with `beside`.
    fn pair(&self, beside: Beside, with_first: bool) -> Result<(Speed, Speed)> {
        if with_first {
            let with = self.run(beside)?;
            Ok((self.run(Beside::Nothing)?, with))
        } else {
            Ok((self.run(Beside::Nothing)?, self.run(beside)?))
        }
    }

    fn run(&self, beside: Beside) -> Result<Speed> {
        let milliseconds = format!("{:.0}", self.seconds * 1e3);
        let container = |name: &str| {
            Cgroup::create(
                &memory_hierarchy(),
                name,
                "kubepods/burstable/pod0123/container",
            )
        };
        let own = container("bench-switches")?;
        // Always the same CPU: the scheduler's choices are not what is measured.
        let mut program = Launch::new(std::path::Path::new("taskset"), TARGET, &self.folder)
            .cgroup(own.path())
            .args(["--cpu-list", "1"])
            .args([&self.program])
            .args(["volley", &milliseconds])
            .start()?;
        program.wait_for_line(LIMIT, |line| (line == "ready").then_some(()))?;
        let companion = match beside {
            Beside::Nothing => Companion::None,
            Beside::Task | Beside::Floor | Beside::Sampled => {
                let agent = if beside == Beside::Floor {
                    Agent::start_with(ServeOptions::with_arguments([FLOOR]))?
                } else {
                    Agent::start()?
                };
                let mode = if beside == Beside::Sampled {
                    "sampled"
                } else {
                    "every"
                };
                let id = start_task(&agent, &json!({ "pids": [program.pid()] }), mode)?;
                Companion::Agent(Box::new(agent), id, None, None)
            }
            Beside::TaskForAnother => {
                let agent = Agent::start()?;
                let sleeper = Sleeper::start()?;
                let id = start_task(&agent, &json!({ "pids": [sleeper.0.id()] }), "every")?;
                Companion::Agent(Box::new(agent), id, Some(sleeper), None)
            }
            Beside::TaskForAnotherContainer => {
                let agent = Agent::start()?;
                let other = container("bench-next-door")?;
                let sleeper = Sleeper::start_in(&other)?;
                let id = start_task(&agent, &json!({ "cgroup": other.inside() }), "every")?;
                Companion::Agent(Box::new(agent), id, Some(sleeper), Some(other))
            }
            Beside::Peer => Companion::Peer(self.peer()?),
        };
        let before = companion.spent()?;
        program.signal(Signal::USR1)?;
        let limit = Duration::from_secs_f64(self.seconds) + LIMIT;
        let report = program.wait_for_line(limit, |line| WaitsReport::parse(line).ok())?;
        let spent = companion.spent()? - before;
        companion.end(beside, &report)?;
        Ok(Speed::of(&report, spent))
    }

    /// Counts the program's switches by kernel and user stack.
    fn peer(&self) -> Result<Running> {
        ensure!(
            std::path::Path::new(PEER).exists(),
            "no {PEER}: run `apt-get install bpftrace`"
        );
        let script = format!(
            "BEGIN {{ printf(\"attached\\n\"); }} tracepoint:sched:sched_switch \
             /comm == \"{TARGET}\"/ {{ @[kstack, ustack] = count(); }}"
        );
        // It looks for tracepoints in debugfs, which not every machine has mounted; a mount
        // namespace of its own leaves this one's mounts alone.
        let in_debugfs =
            format!("mount -t debugfs none /sys/kernel/debug; exec {PEER} -B none \"$@\"");
        let mut peer = Launch::new(std::path::Path::new("unshare"), "peer", &self.folder)
            .args(["--mount", "sh", "-c", &in_debugfs, "sh", "-e", &script])
            .start()?;
        peer.wait_for_line(PEER_LIMIT, |line| (line == "attached").then_some(()))?;
        Ok(peer)
    }
}

impl Companion {
    /// CPU time of the agent, in seconds.
    fn spent(&self) -> Result<f64> {
        match self {
            Self::Agent(agent, ..) => cpu_seconds(agent.pid()),
            Self::None | Self::Peer(_) => Ok(0.0),
        }
    }

    /// Ends what ran beside the program, and checks that it did what it was measured for.
    fn end(self, beside: Beside, report: &WaitsReport) -> Result<()> {
        match self {
            Self::None => {}
            Self::Peer(mut peer) => {
                // It cannot name all user frames: the C library has no frame pointers.
                peer.interrupt(Signal::INT)?;
                let counted = peer.output().contains("pipe_read");
                ensure!(
                    counted,
                    "the peer saw no stack: {} {}",
                    peer.output(),
                    peer.errors()
                );
            }
            Self::Agent(agent, id, _sleeper, _cgroup) => {
                agent.api.stop_task(&id)?;
                let task = agent.api.wait_task(&id, &["cancelled"], LIMIT)?;
                let samples = task["samples"].as_u64().unwrap_or(0);
                if matches!(
                    beside,
                    Beside::Floor | Beside::TaskForAnother | Beside::TaskForAnotherContainer
                ) {
                    ensure!(samples < 100, "the agent saw {samples} switches: {task}");
                } else {
                    ensure!(
                        samples >= report.volleys * 2,
                        "the agent saw {samples} of {} switches: {task}",
                        report.volleys * 2
                    );
                }
                eprintln!(
                    "  agent: {:.2} s of CPU, {:.0} MB",
                    cpu_seconds(agent.pid())?,
                    peak_rss_mb(agent.pid())?
                );
            }
        }
        Ok(())
    }
}

/// Starts an endless task for all waits of a target.
fn start_task(agent: &Agent, target: &Value, mode: &str) -> Result<String> {
    let specification = json!({
        "kind": "off_cpu",
        "target": target,
        "duration_s": null,
        "off_cpu_mode": mode,
    });
    let id = agent.api.create_task(&specification)?;
    agent.api.wait_sampling(&id, LIMIT)?;
    Ok(id)
}

/// What a task for both Envoys costs the mesh: requests per second when requests are sent as fast as
/// answers come, and the Envoys' CPU time per request, which a busy machine disturbs less.
fn mesh(options: &Options) -> Result<Vec<Figure>> {
    let mesh = Mesh::up(&MeshOptions {
        workers: 2,
        mtls: true,
        ..MeshOptions::default()
    })?;
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let duration = Duration::from_secs_f64(options.mesh_seconds);
    let run = |profiled: bool| -> Result<(f64, f64)> {
        let agent = Agent::start()?;
        let task = profiled
            .then(|| start_task(&agent, &json!({ "pids": envoys }), "every"))
            .transpose()?;
        let cpu = || -> Result<f64> { Ok(cpu_seconds(envoys[0])? + cpu_seconds(envoys[1])?) };
        let before = cpu()?;
        let load = mesh.run_load(duration)?;
        ensure!(load.errors == 0, "requests failed: {load:?}");
        let spent = cpu()? - before;
        if let Some(id) = task {
            agent.api.stop_task(&id)?;
            let task = agent.api.wait_task(&id, &["cancelled"], LIMIT)?;
            ensure!(task["samples"].as_u64() > Some(1000), "no waits: {task}");
        }
        Ok((load.rps, spent * 1e6 / exact(load.requests)))
    };
    // The first load finds cold caches and connections.
    run(false)?;
    let (mut control_rps, mut kept_rps) = (Vec::new(), Vec::new());
    let (mut control_cpu, mut kept_cpu) = (Vec::new(), Vec::new());
    for pair in 0..options.mesh_pairs {
        let (first, with, second) = if pair % 2 == 1 {
            let with = run(true)?;
            (run(false)?, with, run(false)?)
        } else {
            let first = run(false)?;
            (first, run(true)?, run(false)?)
        };
        eprintln!(
            "mesh {} of {}: {:.0} requests/s, {:.0} with a task, {:.0} without again",
            pair + 1,
            options.mesh_pairs,
            first.0,
            with.0,
            second.0
        );
        control_rps.push(second.0 / first.0);
        control_cpu.push(first.1 / second.1);
        kept_rps.push(with.0 * 2.0 / (first.0 + second.0));
        kept_cpu.push((first.1 + second.1) / (2.0 * with.1));
    }
    let goal = Some(Target::AtLeast(MESH_KEPT));
    Ok(vec![
        figure("mesh_requests_kept_control", "ratio", control_rps, None),
        figure("mesh_requests_kept", "ratio", kept_rps, goal),
        figure(
            "mesh_requests_per_envoy_cpu_kept_control",
            "ratio",
            control_cpu,
            None,
        ),
        figure("mesh_requests_per_envoy_cpu_kept", "ratio", kept_cpu, goal),
    ])
}

/// The number of call chains whose waits were counted exactly; fails unless it is all of them.
fn chains() -> Result<f64> {
    let (folder, _guard) = scratch_directory("bench")?;
    let agent = Agent::start()?;
    let program = Workload::Waits.build("chains")?;
    let mut program = Launch::new(&program, "chains", &folder)
        .args(["chains"])
        .start()?;
    program.wait_for_line(LIMIT, |line| (line == "ready").then_some(()))?;
    let id = start_task(&agent, &json!({ "pids": [program.pid()] }), "every")?;
    program.signal(Signal::USR1)?;
    let report = program.wait_for_line(LIMIT, |line| WaitsReport::parse(line).ok())?;
    agent.api.stop_task(&id)?;
    let task: Value = agent.api.wait_task(&id, &["cancelled"], LIMIT)?;
    let counts = agent.api.folded(&id, "&value=count")?;
    if let Err(error) = check_chains(&counts, report.voluntary) {
        bail!("{error}: {task}");
    }
    Ok(exact(CHAINS))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a bench stay below 2^52"
)]
fn exact(count: u64) -> f64 {
    count as f64
}
