//! What sampling costs a program that does nothing but compute.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail, ensure};
use profiler_tests::{
    agent::{Agent, FLOOR, ServeOptions},
    cleanup::scratch_directory,
    process::Launch,
    soak::cpu_seconds,
    wait::wait_for,
    workload::{HOT_FUNCTIONS, SharesReport, Workload},
};
use serde_json::{Value, json};

use super::{Figure, LIMIT, TARGET, Target, figure, load::Comparison, peak_rss_mb, unwind};

/// Stack depth of the measured program.
pub(crate) const DEPTH: &str = "30";
/// Longer than the agent's statistics of its programs are old.
const STATISTICS: Duration = Duration::from_millis(1500);

pub(crate) fn figures(pairs: u32, seconds: f64) -> Result<Vec<Figure>> {
    let bench = Bench::new(seconds)?;
    let comparison = Comparison::from_environment()?;
    let mut figures = Vec::new();
    let mut lost: Vec<Vec<f64>> = Vec::new();
    for (name, beside, kept) in [
        ("control", Beside::Nothing, None),
        ("99hz", Beside::Samples(99), Some(0.997)),
        ("999hz", Beside::Samples(999), Some(0.98)),
        ("999hz_floor", Beside::Floor(999), None),
    ] {
        // The earlier build may not know of floors.
        if comparison.is_with_baseline() && matches!(beside, Beside::Floor(_)) {
            continue;
        }
        eprintln!("{name}: {pairs} pairs of {seconds} s");
        let target = kept.and_then(|kept| comparison.target(Some(kept)));
        let measured = bench.pairs(&comparison, pairs, beside)?;
        let column = |pick: fn(&Pair) -> f64| measured.iter().map(pick).collect::<Vec<_>>();
        let per_cpu = column(|pair| pair.with.per_cpu_second / pair.without.per_cpu_second);
        let per_wall = column(|pair| pair.with.per_wall_second / pair.without.per_wall_second);
        lost.push(per_cpu.iter().map(|kept| (1.0 - kept) * 100.0).collect());
        figures.push(figure(
            &format!("throughput_kept_per_cpu_second_{name}"),
            "ratio",
            per_cpu,
            target,
        ));
        figures.push(figure(
            &format!("throughput_kept_per_wall_second_{name}"),
            "ratio",
            per_wall,
            target,
        ));
        if let Beside::Samples(hz) = beside {
            let goal = |limit| (hz == 99).then_some(Target::Below(limit));
            let cpu = column(|pair| pair.with.agent_cpu_percent);
            let rss = column(|pair| pair.with.agent_peak_mb);
            let total = column(|pair| pair.with.agent_cpu_seconds);
            figures.push(figure(
                &format!("agent_cpu_{name}"),
                "percent of a core",
                cpu,
                goal(0.5),
            ));
            figures.push(figure(
                &format!("agent_peak_rss_{name}"),
                "MB",
                rss,
                goal(60.0),
            ));
            figures.push(figure(
                &format!("agent_cpu_with_start_{name}"),
                "s",
                total,
                None,
            ));
        }
    }
    // The agent's own part is `agent_cpu_999hz`.
    if let [_control, _99hz, whole, floor] = lost.as_slice() {
        let programs = whole.iter().zip(floor).map(|(whole, floor)| whole - floor);
        for (part, runs) in [
            ("kernel_calls", floor.clone()),
            ("programs", programs.collect()),
        ] {
            let name = format!("cpu_of_the_program_999hz_of_{part}");
            figures.push(figure(&name, "percent", runs, None));
        }
    }
    eprintln!("start-up and cost of a sample");
    let started = (0..pairs.min(10))
        .map(|_| bench.start_up_ms())
        .collect::<Result<_>>()?;
    figures.push(figure(
        "startup_to_first_sample",
        "ms",
        started,
        Some(Target::Below(500.0)),
    ));
    let unwanted_ns = unwind::unwanted_tick_ns(3)?;
    let samples = (0..5)
        .map(|_| bench.sample_ns("tables", unwanted_ns))
        .collect::<Result<_>>()?;
    figures.push(figure("kernel_time_per_sample_999hz", "ns", samples, None));
    Ok(figures)
}

/// One run of the measured program.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    per_cpu_second: f64,
    pub(crate) per_wall_second: f64,
    agent_cpu_percent: f64,
    agent_cpu_seconds: f64,
    agent_peak_mb: f64,
}

pub(crate) struct Pair {
    pub(crate) without: Run,
    pub(crate) with: Run,
}

/// What runs beside the measured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// It is sampled so many times a second.
    Samples(u32),
    /// The same with a program that returns at once.
    Floor(u32),
}

pub(crate) struct Bench {
    program: PathBuf,
    seconds: f64,
}

impl Bench {
    pub(crate) fn new(seconds: f64) -> Result<Self> {
        ensure!(seconds > 0.1, "--seconds must be above 0.1");
        Ok(Self {
            program: Workload::SharesC.build(TARGET)?,
            seconds,
        })
    }

    /// Pairs in the order without, with, with, without, so that drift cancels out.
    pub(crate) fn pairs(
        &self,
        comparison: &Comparison,
        count: u32,
        beside: Beside,
    ) -> Result<Vec<Pair>> {
        let run = |beside, agent: &Path| self.run(beside, agent);
        (0..count)
            .map(|index| {
                let (without, with) = comparison.pair(index, beside, Beside::Nothing, &run)?;
                Ok(Pair { without, with })
            })
            .collect()
    }

    /// Runs the program once, beside a build of the agent or alone.
    fn run(&self, beside: Beside, agent: &Path) -> Result<Run> {
        let (hz, arguments) = match beside {
            Beside::Nothing => return Ok(throughput(&self.measure()?)),
            Beside::Samples(hz) => (hz, Vec::new()),
            Beside::Floor(hz) => (hz, vec![FLOOR.to_owned()]),
        };
        let agent = Agent::start_with(ServeOptions {
            program: Some(agent.to_owned()),
            arguments,
            ..ServeOptions::default()
        })?;
        let id = start_task(&agent, hz)?;
        let before = cpu_seconds(agent.pid())?;
        let began = Instant::now();
        let report = self.measure()?;
        let spent = cpu_seconds(agent.pid())? - before;
        let elapsed = began.elapsed().as_secs_f64();
        let run = Run {
            agent_cpu_percent: spent / elapsed * 100.0,
            agent_cpu_seconds: cpu_seconds(agent.pid())?,
            agent_peak_mb: peak_rss_mb(agent.pid())?,
            ..throughput(&report)
        };
        let task = agent.api.stop_task(&id)?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts and nanoseconds stay below 2^52"
        )]
        let (samples, least) = (
            task["samples"].as_u64().unwrap_or(0) as f64,
            report.cpu_ns as f64 / 1e9 * f64::from(hz) * 0.8,
        );
        ensure!(
            samples >= least || matches!(beside, Beside::Floor(_)),
            "the agent saw {samples} samples, not {least}: {task}"
        );
        Ok(run)
    }

    fn measure(&self) -> Result<SharesReport> {
        let (folder, _guard) = scratch_directory("bench")?;
        let seconds = self.seconds.to_string();
        // Always the same CPU: the scheduler's choices are not what is measured.
        let program = Launch::new(Path::new("taskset"), TARGET, &folder)
            .args(["--cpu-list", "1"])
            .args([&self.program])
            .args(["--depth", DEPTH, "--seconds", &seconds])
            .start()?;
        SharesReport::parse(&program.finish(Duration::from_secs_f64(self.seconds) + LIMIT)?)
    }

    /// Milliseconds from starting the agent's program to its first sample of a busy process.
    fn start_up_ms(&self) -> Result<f64> {
        let (folder, _guard) = scratch_directory("bench")?;
        let busy = Launch::new(&self.program, TARGET, &folder).start()?;
        let began = SystemTime::now();
        let agent = Agent::start()?;
        let target = json!({ "pids": [busy.pid()] });
        let specification =
            json!({ "kind": "on_cpu", "target": target, "duration_s": 2, "frequency_hz": 999 });
        let id = agent.api.create_task(&specification)?;
        let task = agent.api.wait_task(&id, &["finished"], LIMIT)?;
        let path = format!("/api/v1/tasks/{id}/timeline?bucket_ms=100");
        let timeline = agent.api.get_json(&path)?;
        let bucket_ms = timeline["bucket_ms"].as_f64().context("no bucket length")?;
        let counts = timeline["counts"].as_array().context("no counts")?;
        let first = counts.iter().position(|count| count.as_u64() > Some(0));
        let first = first.context("no sample at all")?;
        let started_ns = task["started_at_ns"].as_u64().context("no start time")?;
        let began_ns = u64::try_from(began.duration_since(UNIX_EPOCH)?.as_nanos())?;
        let to_start = Duration::from_nanos(started_ns.saturating_sub(began_ns));
        // A sample lies somewhere in its bucket; the first bucket begins with sampling.
        let waited = if first == 0 {
            1.0
        } else {
            f64::from(u32::try_from(first)?) * bucket_ms
        };
        Ok(to_start.as_secs_f64() * 1e3 + waited)
    }

    /// Kernel nanoseconds of one run of the sampling program for a sample of the target, with
    /// `method` for its user stack. Ticks of others are taken off.
    pub(crate) fn sample_ns(&self, method: &str, unwanted_ns: f64) -> Result<f64> {
        let unwind = format!("--unwind={method}");
        let options = ServeOptions::with_arguments(["--bpf-stats", &unwind]);
        let agent = Agent::start_with(options)?;
        let id = start_task(&agent, 999)?;
        self.measure()?;
        // The statistics are read once a second.
        std::thread::sleep(STATISTICS);
        let own = agent.api.get_json("/api/v1/self")?;
        let samples = agent.api.stop_task(&id)?["samples"].as_f64().unwrap_or(0.0);
        let programs = own["bpf"]["programs"]
            .as_array()
            .context("no BPF statistics")?;
        let number = |program: &Value, name: &str| program[name].as_f64().unwrap_or(0.0);
        let busiest = programs
            .iter()
            .max_by(|a, b| number(a, "run_time_ns").total_cmp(&number(b, "run_time_ns")));
        let busiest = busiest.context("no BPF program")?;
        let (time, runs) = (number(busiest, "run_time_ns"), number(busiest, "run_count"));
        if samples == 0.0 || time == 0.0 {
            bail!("no samples or no statistics: {own}");
        }
        Ok((time - (runs - samples).max(0.0) * unwanted_ns) / samples)
    }
}

/// Starts an endless task for [`TARGET`], which need not run yet.
fn start_task(agent: &Agent, hz: u32) -> Result<String> {
    let target = json!({ "comm": TARGET });
    let specification =
        json!({ "kind": "on_cpu", "target": target, "duration_s": null, "frequency_hz": hz });
    let id = agent.api.create_task(&specification)?;
    // Earlier builds gave a task its start before it sampled; its rate is known from then on in all of them.
    wait_for("the task samples", LIMIT, || {
        let task = agent.api.task(&id).ok()?;
        task["effective_frequency_hz"].as_u64()
    })?;
    Ok(id)
}

/// Units of work per second, each function weighed with its share, so that a run that ends within a
/// cycle counts the same as any other.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds stay below 2^52"
)]
fn throughput(report: &SharesReport) -> Run {
    let rate =
        |function: &str| report.units[function] as f64 / (report.functions[function] as f64 / 1e9);
    let [sixty, thirty, ten] = HOT_FUNCTIONS.map(rate);
    let per_cpu_second = sixty * 0.6 + thirty * 0.3 + ten * 0.1;
    Run {
        per_cpu_second,
        per_wall_second: per_cpu_second * report.cpu_ns as f64 / report.wall_ns as f64,
        ..Run::default()
    }
}
