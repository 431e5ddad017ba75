//! What watching event loops costs a call of epoll: a program that does nothing but call it.
//!
//! The same task runs beside the program with and without `event_loop`, sampling once a second, so
//! that the difference of the program's CPU time for a call is what the programs take.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent::{Agent, FLOOR, ServeOptions},
    cleanup::{Guard, scratch_directory},
    process::Launch,
    workload::Workload,
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;

use super::{Figure, LIMIT, TARGET, Target, figure};

/// What a call may take longer when its thread is watched.
const MOST_NS: f64 = 300.0;

/// What the task beside the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// It samples the program and watches no event loops.
    Plain,
    /// It watches those of the program.
    Watching,
    /// The same, with programs that return at once.
    Floor,
    /// It watches those of another process.
    WatchingAnother,
}

/// What the program says.
#[derive(Debug, Deserialize)]
struct Report {
    calls: u64,
    cpu_ns: u64,
}

pub(crate) fn figures(pairs: u32, seconds: f64) -> Result<Vec<Figure>> {
    ensure!(seconds > 0.1, "--seconds must be above 0.1");
    let bench = Bench::new(seconds)?;
    let rows = [
        ("control", "ping", Task::Plain, None),
        (
            "watched",
            "ping",
            Task::Watching,
            Some(Target::Below(MOST_NS)),
        ),
        ("watched_floor", "ping", Task::Floor, None),
        (
            "another_process_watched",
            "ping",
            Task::WatchingAnother,
            None,
        ),
        ("another_call", "other", Task::WatchingAnother, None),
    ];
    // In turn, so that a change of the machine's speed meets all rows.
    let mut added: Vec<Vec<f64>> = rows.iter().map(|_| Vec::new()).collect();
    let mut alone = Vec::new();
    for index in 0..pairs {
        for ((name, mode, task, _), added) in rows.iter().zip(&mut added) {
            let (without, with) = if index % 2 == 0 {
                let without = bench.call_ns(mode, Task::Plain)?;
                (without, bench.call_ns(mode, *task)?)
            } else {
                let with = bench.call_ns(mode, *task)?;
                (bench.call_ns(mode, Task::Plain)?, with)
            };
            eprintln!(
                "pair {} of {pairs}, {name}: {without:.0} ns without, {with:.0} ns with",
                index + 1
            );
            if *mode == "ping" {
                alone.push(without);
            }
            added.push(with - without);
        }
    }
    let mut figures = vec![figure("time_per_call", "ns of CPU time", alone, None)];
    for ((name, _, _, goal), added) in rows.into_iter().zip(added) {
        let name = format!("added_per_call_{name}");
        figures.push(figure(&name, "ns of CPU time", added, goal));
    }
    Ok(figures)
}

struct Bench {
    program: PathBuf,
    milliseconds: String,
    agent: Agent,
    /// Its programs return at once.
    floor: Agent,
    folder: PathBuf,
    _guard: Guard,
}

impl Bench {
    fn new(seconds: f64) -> Result<Self> {
        let (folder, guard) = scratch_directory("bench-event-loop")?;
        Ok(Self {
            program: Workload::EventLoop.build(TARGET)?,
            milliseconds: format!("{:.0}", seconds * 1000.0),
            agent: Agent::start()?,
            floor: Agent::start_with(ServeOptions::with_arguments([FLOOR]))?,
            folder,
            _guard: guard,
        })
    }

    /// CPU time of a call of epoll (`ping`) or of `getppid` (`other`) beside such a task.
    fn call_ns(&self, mode: &str, task: Task) -> Result<f64> {
        let mut program = Launch::new(&self.program, TARGET, &self.folder)
            .args([mode, &self.milliseconds])
            .start()?;
        program.wait_for_line(LIMIT, |line| (line == "ready").then_some(()))?;
        let pid = if task == Task::WatchingAnother {
            std::process::id()
        } else {
            program.pid()
        };
        let agent = if task == Task::Floor {
            &self.floor
        } else {
            &self.agent
        };
        let rules = (task != Task::Plain).then(|| json!({ "threshold_ms": 1000 }));
        let id = agent.api.create_task(&json!({
            "kind": "on_cpu",
            "target": { "pids": [pid] },
            "frequency_hz": 1,
            "duration_s": null,
            "event_loop": rules,
        }))?;
        agent.api.wait_sampling(&id, LIMIT)?;
        program.signal(Signal::USR1)?;
        let report: Report = program
            .wait_for_line(LIMIT, |line| serde_json::from_str(line).ok())
            .context("the program has not reported")?;
        agent.api.stop_task(&id)?;
        program.interrupt(Signal::KILL)?;
        ensure!(report.calls > 0, "the program made no calls");
        #[expect(clippy::cast_precision_loss, reason = "both stay far below 2^52")]
        Ok(report.cpu_ns as f64 / report.calls as f64)
    }
}
