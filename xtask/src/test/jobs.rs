//! Runs jobs as the schedule allows: what prepares, the steps, and second runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{
    broken,
    needs::Need,
    preparations::{PREPARATIONS, Preparation, packages},
    process::{self, Ended, Order, Outcome, Priority, Process},
    report::{Report, Row},
    schedule::{Entry, Lane, Room, Schedule, State},
    speed,
    steps::Step,
    tally::Tally,
    times::Times,
};
use crate::{exec, workspace::Workspace};

const POLL: Duration = Duration::from_millis(50);
/// More failed measurements than this are not the machine's doing.
const SECOND_RUNS: usize = 8;
/// Lines of the kernel's log that are shown with a failed step.
const KERNEL_LINES: usize = 3;

/// One run of the command.
pub(super) struct Run<'a> {
    workspace: &'a Workspace,
    began: Instant,
    times: Times,
    report: Report,
    judges_budgets: bool,
    /// Set by Ctrl-C.
    interrupted: Arc<AtomicBool>,
}

/// What the schedule starts.
#[derive(Debug)]
struct Job {
    name: &'static str,
    lane: Lane,
    budget: u32,
    priority: Priority,
    lock: Option<&'static str>,
    after: Vec<&'static str>,
    is_step: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, interrupted.clone()).context("catch signals")?;
        }
        Ok(Self {
            workspace,
            began: Instant::now(),
            times: Times::read(workspace),
            report: Report::default(),
            judges_budgets: true,
            interrupted,
        })
    }

    /// What the steps need, and the steps.
    pub(super) fn all(&mut self, steps: &[&'static Step]) -> Result<()> {
        let mut jobs = preparations(steps);
        if broken::are_allowed() {
            // The run that starts this one has made everything else.
            jobs.retain(|job| job.name == PACKAGES);
        }
        jobs.extend(steps.iter().map(|step| Job::of_step(step)));
        self.execute(steps, &jobs)
    }

    /// What the steps need; an error where it cannot be had.
    pub(super) fn prepare(&mut self, steps: &[&'static Step]) -> Result<()> {
        self.execute(steps, &preparations(steps))?;
        ensure!(self.report.total().failed == 0, "{}", self.report);
        Ok(())
    }

    /// The steps once more, when what they need is there; how they ended. Budgets are not judged.
    pub(super) fn round(&mut self, steps: &[&'static Step]) -> Result<Vec<Row>> {
        self.judges_budgets = false;
        self.report = Report::default();
        let jobs: Vec<Job> = steps.iter().map(|step| Job::of_step(step)).collect();
        self.execute(steps, &jobs)?;
        Ok(std::mem::take(&mut self.report).rows)
    }

    /// One test of a step, or all of it, alone.
    fn alone(&mut self, step: &Step, test: Option<&str>) -> Result<Ended> {
        let order = Order {
            job: step.name.to_owned(),
            only: test.map(str::to_owned),
            shown: true,
            ..Order::default()
        };
        let limit = limit(Lane::Alone, step.budget);
        let mut process = Process::start(self.workspace, &order, limit)?;
        loop {
            if let Some(ended) = process.poll()? {
                return Ok(ended);
            }
            self.end_if_interrupted([&mut process])?;
            thread::sleep(POLL);
        }
    }

    /// Tests whose measurement failed, and steps over their budget, are run once more, alone.
    pub(super) fn second_runs(&mut self, steps: &[&'static Step]) -> Result<()> {
        let wanted = self.report.measured_failures();
        if wanted.len() > SECOND_RUNS {
            println!(
                "{} measurements failed: too many for second runs",
                wanted.len()
            );
            return Ok(());
        }
        for (name, test) in wanted {
            let Some(step) = steps.iter().find(|step| step.name == name) else {
                continue;
            };
            let test = test.as_deref();
            let what = test.unwrap_or(name);
            self.say(&format!("second run of {what}"));
            let ended = self.alone(step, test)?;
            let mut row = Row::new(name, step.lane, step.budget, true, ended);
            if test.is_none() {
                row.judge_budget(speed::slowness);
            }
            let passed = row.error.is_none() && row.tally.failed == 0;
            let verdict = if passed { "passed" } else { "failed again" };
            self.say(&format!("{what}: failed, then {verdict}"));
            self.report.second(name, test, passed);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Report> {
        if !broken::are_allowed() {
            self.times.write(self.workspace)?;
        }
        self.report.took = self.began.elapsed();
        Ok(self.report)
    }

    fn say(&self, what: &str) {
        println!(
            "[{:>6}] {what}",
            format!("{} s", self.began.elapsed().as_secs())
        );
    }

    fn execute(&mut self, steps: &[&'static Step], jobs: &[Job]) -> Result<()> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut schedule = Schedule {
            entries: jobs.iter().map(|job| job.entry(jobs)).collect(),
            room: Room {
                // One more than there are processors: some link, with one thread, and some wait.
                compute: processors + 1,
                beside: processors + 1,
            },
        };
        let names: Vec<String> = steps.iter().map(|step| step.name.to_owned()).collect();
        let mut running: Vec<(usize, Process)> = Vec::new();
        while !schedule.is_over() {
            while let Some(index) = schedule.next() {
                let job = &jobs[index];
                let order = Order {
                    job: job.name.to_owned(),
                    steps: names.clone(),
                    only: None,
                    priority: job.priority,
                    shown: job.lane == Lane::Alone,
                };
                self.say(&format!("{} begins", job.name));
                let process = Process::start(self.workspace, &order, limit(job.lane, job.budget))?;
                schedule.entries[index].state = State::Running;
                running.push((index, process));
            }
            let mut still = Vec::new();
            let mut failed = None;
            for (index, mut process) in running {
                match process.poll()? {
                    None => still.push((index, process)),
                    Some(ended) => {
                        let job = &jobs[index];
                        let passed = self.ended(job, ended);
                        schedule.entries[index].state =
                            if passed { State::Passed } else { State::Failed };
                        if !passed && !job.is_step {
                            failed = Some(job.name);
                        }
                    }
                }
            }
            running = still;
            if let Some(name) = failed {
                // Nothing that follows could be believed.
                end(running.iter_mut().map(|(_, process)| process))?;
                self.say(&format!("{name} failed: nothing else is begun"));
                return Ok(());
            }
            self.end_if_interrupted(running.iter_mut().map(|(_, process)| process))?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Notes how a job has ended; whether it was well.
    fn ended(&mut self, job: &Job, ended: Ended) -> bool {
        let mut row = Row::new(job.name, job.lane, job.budget, job.is_step, ended);
        if self.judges_budgets {
            row.judge_budget(speed::slowness);
        }
        if job.is_step && job.lane != Lane::Alone {
            println!("---- {} ----\n{}", job.name, row.output.trim_end());
        }
        self.say(&row.line());
        if row.error.is_none() {
            self.times.note(job.name, row.took);
        }
        let passed = row.error.is_none();
        self.report.add(row);
        passed
    }

    fn end_if_interrupted<'p>(
        &self,
        running: impl IntoIterator<Item = &'p mut Process>,
    ) -> Result<()> {
        if !self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        end(running)?;
        bail!("interrupted")
    }
}

/// Ends jobs, and waits until they are gone.
fn end<'p>(running: impl IntoIterator<Item = &'p mut Process>) -> Result<()> {
    let mut running: Vec<&mut Process> = running.into_iter().collect();
    for process in &mut running {
        process.end();
    }
    for process in running {
        while process.poll()?.is_none() {
            thread::sleep(POLL);
        }
    }
    Ok(())
}

/// When a job is ended: at a multiple of its budget, larger where others take its time or the machine is slow.
fn limit(lane: Lane, budget: u32) -> Duration {
    let times = match lane {
        Lane::Alone => 3,
        Lane::Beside => 5,
        Lane::Compute | Lane::Spare => 10,
        // How fast a registry answers shows nothing about the project.
        Lane::Fetch => 20,
    };
    Duration::from_secs(u64::from(budget * times)).mul_f64(*speed::AT_FIRST)
}

impl Job {
    fn of_step(step: &Step) -> Self {
        let is_needed = |preparation: &&Preparation| {
            let mut needs = preparation.needs.iter();
            needs.any(|need| step.needs.contains(need))
        };
        let mut after: Vec<&'static str> = PREPARATIONS
            .iter()
            .filter(is_needed)
            .map(|preparation| preparation.name)
            .collect();
        if step
            .needs
            .iter()
            .any(|need| matches!(need, Need::Packages(_)))
        {
            after.push(PACKAGES);
        }
        Self {
            name: step.name,
            lane: step.lane,
            budget: step.budget,
            priority: match step.lane {
                Lane::Spare => Priority::Spare,
                Lane::Compute => Priority::Low,
                Lane::Fetch | Lane::Beside | Lane::Alone => Priority::Normal,
            },
            lock: step.lock,
            after,
            is_step: true,
        }
    }

    fn of_preparation(preparation: &Preparation) -> Self {
        Self {
            name: preparation.name,
            lane: preparation.lane,
            budget: preparation.budget,
            priority: if is_first(preparation) {
                Priority::Normal
            } else {
                Priority::Low
            },
            lock: None,
            after: preparation.after.to_vec(),
            is_step: false,
        }
    }

    /// It waits for jobs of this run only; others are done already, or not needed.
    fn entry(&self, jobs: &[Self]) -> Entry {
        let place = |name: &&'static str| jobs.iter().position(|job| job.name == *name);
        Entry {
            lane: self.lane,
            is_preparation: !self.is_step,
            after: self.after.iter().filter_map(place).collect(),
            lock: self.lock,
            state: State::Waiting,
        }
    }
}

/// Whether the longest chain waits for it: for the program that is shipped, which the kernels run.
fn is_first(preparation: &Preparation) -> bool {
    let mut of_agent = PREPARATIONS.iter().filter(|other| other.name == AGENT);
    preparation.name == AGENT || of_agent.any(|agent| agent.after.contains(&preparation.name))
}

/// The preparation that builds the program that is shipped.
const AGENT: &str = "agent";
/// The preparation that installs Debian's packages.
const PACKAGES: &str = "packages";

fn preparations(steps: &[&'static Step]) -> Vec<Job> {
    let is_wanted = |preparation: &&Preparation| {
        if preparation.name == PACKAGES {
            return !packages(steps).is_empty();
        }
        let mut needs = preparation.needs.iter();
        preparation.needs.is_empty()
            || needs.any(|need| steps.iter().any(|step| step.needs.contains(need)))
    };
    let all = PREPARATIONS.iter().filter(is_wanted);
    all.map(Job::of_preparation).collect()
}

/// In the process of a job: does its work, and leaves its result. `steps` are those of the whole run.
pub(super) fn run_one(workspace: &Workspace, name: &str, steps: &[&'static Step]) -> Result<()> {
    // It must not go on when the command that waits for it is gone.
    set_parent_process_death_signal(Some(Signal::TERM)).context("ask to end with the command")?;
    let mut tally = Tally::default();
    let preparation = PREPARATIONS.iter().find(|job| job.name == name);
    let result = if let Some(preparation) = preparation {
        (preparation.run)(workspace, steps)
    } else {
        let step = super::select(&[name.to_owned()])?[0];
        (step.run)(workspace, &mut tally)
    };
    let error = result.err().map(|error| format!("{error:#}"));
    if let Some(error) = &error {
        println!("error: {error}");
        for line in kernel_messages() {
            println!("kernel: {line}");
        }
    }
    process::leave(&Outcome {
        tally,
        error,
        cpu_s: process::cpu_seconds(),
    })
}

/// The newest lines of the kernel's log; none where it may not be read.
fn kernel_messages() -> Vec<String> {
    let log = exec::output(&mut std::process::Command::new("dmesg")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let newest = lines.len().saturating_sub(KERNEL_LINES);
    lines[newest..]
        .iter()
        .map(|&line| line.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::steps::STEPS;

    fn named(name: &str) -> &'static Step {
        STEPS.iter().find(|step| step.name == name).unwrap()
    }

    #[test]
    fn a_step_brings_what_it_needs_and_no_more() {
        let jobs = preparations(&[named("manifests")]);
        let names: Vec<&str> = jobs.iter().map(|job| job.name).collect();
        assert_eq!(names, ["crates", "validators", "go-programs"]);
        let jobs = preparations(&[named("on-cpu")]);
        let names: Vec<&str> = jobs.iter().map(|job| job.name).collect();
        assert!(names.contains(&"agent") && names.contains(&"integration-tests"));
        assert!(!names.contains(&"kernel-images"));
    }

    #[test]
    fn a_step_waits_for_what_it_needs() {
        let job = Job::of_step(named("kernels"));
        for name in ["agent", "integration-tests", "kernel-images", "packages"] {
            assert!(job.after.contains(&name), "{name}: {:?}", job.after);
        }
    }

    #[test]
    fn every_job_is_known_by_one_name_and_waits_for_known_ones() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.extend(PREPARATIONS.iter().map(|job| job.name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for preparation in PREPARATIONS {
            for after in preparation.after {
                assert!(names.contains(after), "{after}");
            }
        }
    }
}
