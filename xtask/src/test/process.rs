//! One job as a process of its own: its output in a file, its result in another, its end at the latest after a limit.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::workspace::Workspace;

/// Where the child leaves its result.
const RESULT: &str = "PROFILER_TEST_RESULT";
/// For a job that is ended: time to remove what it made.
const GRACE: Duration = Duration::from_secs(15);

/// How a job shares processors with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Priority {
    #[default]
    Normal,
    /// Behind those of normal priority, for whose results others wait.
    Low,
    /// Where everything else leaves a processor idle (`SCHED_IDLE`): a test that wakes up beside it does not wait for it,
    /// as it would for what is only nice.
    Spare,
}

/// What is to be started.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) job: String,
    /// The steps of this run, for a job that prepares them.
    pub(super) steps: Vec<String>,
    /// One test of the step, by its whole name.
    pub(super) only: Option<String>,
    pub(super) priority: Priority,
    /// Output goes to the terminal as it comes.
    pub(super) shown: bool,
}

/// What a job says at its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) error: Option<String>,
    /// CPU time of the job and of what it started and waited for.
    pub(super) cpu_s: f64,
}

/// A started job.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    began: Instant,
    limit: Duration,
    /// When it was asked to end.
    ended_at: Option<Instant>,
    result: PathBuf,
    log: PathBuf,
    /// The log again, to be shown from where it was last read.
    shown: Option<File>,
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
    /// All that it printed.
    pub(super) output: String,
}

/// Where the output of jobs is kept.
fn logs(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-logs")
}

impl Process {
    pub(super) fn start(workspace: &Workspace, order: &Order, limit: Duration) -> Result<Self> {
        let folder = logs(workspace);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let log = folder.join(format!("{}.log", order.job));
        let result = folder.join(format!("{}.json", order.job));
        if result.exists() {
            fs::remove_file(&result).with_context(|| format!("remove {}", result.display()))?;
        }
        let own = std::env::current_exe().context("find this program")?;
        let before: &[&str] = match order.priority {
            Priority::Normal => &["nice", "-n", "0"],
            Priority::Low => &["nice", "-n", "15"],
            Priority::Spare => &["chrt", "--idle", "0"],
        };
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(own);
        command
            .args(["test", "--job", &order.job])
            .args(&order.steps)
            .env(RESULT, &result)
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(test) = &order.only {
            command.env(super::binaries::ONLY, test);
        }
        // Not a pipe: a daemon that a test leaves would hold it open.
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let other = file
            .try_clone()
            .with_context(|| format!("share {}", log.display()))?;
        let child = command
            .stdout(file)
            .stderr(other)
            .spawn()
            .with_context(|| format!("start the job {}", order.job))?;
        let shown = order
            .shown
            .then(|| File::open(&log).with_context(|| format!("open {}", log.display())))
            .transpose()?;
        Ok(Self {
            child,
            began: Instant::now(),
            limit,
            ended_at: None,
            result,
            log,
            shown,
        })
    }

    /// Its result, once it has ended. It is ended when its time is over.
    pub(super) fn poll(&mut self) -> Result<Option<Ended>> {
        if let Some(log) = &mut self.shown {
            let mut news = Vec::new();
            log.read_to_end(&mut news).context("read a job's log")?;
            std::io::stdout()
                .write_all(&news)
                .context("write to standard output")?;
        }
        let status = self.child.try_wait().context("wait for a job")?;
        match self.ended_at {
            None if status.is_none() && self.began.elapsed() > self.limit => self.end(),
            Some(at) if at.elapsed() > GRACE => self.signal(Signal::KILL),
            _ => {}
        }
        let Some(status) = status else {
            return Ok(None);
        };
        if self.ended_at.is_some() && self.group_is_there() {
            // A test removes its namespaces.
            return Ok(None);
        }
        // Nothing of it may run on beside what comes next.
        self.signal(Signal::KILL);
        let output = fs::read(&self.log).unwrap_or_default();
        let mut outcome = fs::read(&self.result)
            .ok()
            .and_then(|text| serde_json::from_slice::<Outcome>(&text).ok())
            .unwrap_or_else(|| Outcome {
                error: Some(format!("ended with {status} and without a result")),
                ..Outcome::default()
            });
        if self.ended_at.is_some() {
            let limit = self.limit.as_secs();
            outcome.error = Some(format!("hung: ended after {limit} s"));
        }
        if outcome.error.is_some() && outcome.tally.failed == 0 {
            outcome.tally.failed = 1;
        }
        Ok(Some(Ended {
            outcome,
            took: self.began.elapsed(),
            output: String::from_utf8_lossy(&output).into_owned(),
        }))
    }

    /// Asks it to end.
    pub(super) fn end(&mut self) {
        self.ended_at = Some(Instant::now());
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        // It may be gone already, which is what is wanted.
        kill_process_group(Pid::from_child(&self.child), signal).ok();
    }

    fn group_is_there(&self) -> bool {
        test_kill_process_group(Pid::from_child(&self.child)).is_ok()
    }
}

/// CPU time of this process and of its children that have ended, in seconds.
pub(super) fn cpu_seconds() -> f64 {
    /// Clock ticks in a second, the same on every Linux.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = after_name.split_whitespace().skip(11).take(4);
    times
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}

/// In the child: leaves its result for the parent.
pub(super) fn leave(outcome: &Outcome) -> Result<()> {
    let path = std::env::var_os(RESULT).map(PathBuf::from);
    let path = path.context("a job is started by `cargo xtask test` only")?;
    let text = serde_json::to_vec(outcome).context("encode the result")?;
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}
