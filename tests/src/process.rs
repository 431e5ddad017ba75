//! Child processes that cannot outlive the run.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    process::{Pid, Signal},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    cleanup::{Guard, Resource, guard},
    netns::Netns,
    wait::{wait_for, wait_until},
};

/// For a process to end when it is asked to, on a busy machine; how fast it ends is judged by tests of that.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// For the kernel to remove a process group that was killed.
const GONE_LIMIT: Duration = Duration::from_secs(5);
/// What the agent is labelled with.
const AGENT_LABELS: [&str; 2] = ["serve", "agent"];
/// Last lines of what a process wrote that are shown where a test fails.
const SHOWN_LINES: usize = 12;

/// How to start a child. Its output goes to files, so that no pipe can fill up.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    label: String,
    logs: PathBuf,
    netns: Option<PathBuf>,
    user: Option<u32>,
    cgroups: Vec<PathBuf>,
}

impl Launch {
    /// `label` names the output files `label.out` and `label.err` in the folder `logs`.
    pub fn new(program: &Path, label: &str, logs: &Path) -> Self {
        Self {
            command: Command::new(program),
            label: label.to_owned(),
            logs: logs.to_path_buf(),
            netns: None,
            user: None,
            cgroups: Vec::new(),
        }
    }

    #[must_use]
    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs the child in a network namespace.
    #[must_use]
    pub fn netns(mut self, netns: &Netns) -> Self {
        self.netns = Some(netns.path());
        self
    }

    /// Runs the child under this uid and gid.
    #[must_use]
    pub fn user(mut self, uid: u32) -> Self {
        self.user = Some(uid);
        self
    }

    /// Puts the child into a cgroup before it runs.
    #[must_use]
    pub fn cgroup(mut self, path: &Path) -> Self {
        self.cgroups.push(path.join("cgroup.procs"));
        self
    }

    /// Starts the child. It gets a process group of its own and SIGKILL when the calling thread
    /// ends, so a child that is to live longer must be started by a thread that does.
    pub fn start(mut self) -> Result<Running> {
        let out = self.logs.join(format!("{}.out", self.label));
        let err = self.logs.join(format!("{}.err", self.label));
        let create =
            |path: &Path| File::create(path).with_context(|| format!("create {}", path.display()));
        self.command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&err)?);
        self.command.process_group(0);
        let netns: Option<OwnedFd> = match &self.netns {
            Some(path) => Some(
                File::open(path)
                    .with_context(|| format!("open {}", path.display()))?
                    .into(),
            ),
            None => None,
        };
        let cgroups: Vec<File> = self
            .cgroups
            .iter()
            .map(|path| {
                let options = OpenOptions::new().write(true).open(path);
                options.with_context(|| format!("open {}", path.display()))
            })
            .collect::<Result<_>>()?;
        let user = self.user;
        let prepare = move || {
            for mut cgroup in &cgroups {
                cgroup.write_all(b"0")?;
            }
            if let Some(netns) = &netns {
                move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
            }
            if let Some(user) = user {
                drop_to(user)?;
            }
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        };
        // SAFETY: the closure only makes system calls on descriptors it owns; it neither allocates
        // nor takes locks, so it is sound between fork and exec.
        unsafe { self.command.pre_exec(prepare) };
        let child = self
            .command
            .spawn()
            .with_context(|| format!("start {}", self.label))?;
        let group = i32::try_from(child.id()).context("pid does not fit")?;
        let guard = guard(Resource::ProcessGroup(group));
        Ok(Running {
            child,
            label: self.label,
            out,
            err,
            guard: Some(guard),
        })
    }
}

/// Gives up root for `user`, with no supplementary groups.
fn drop_to(user: u32) -> std::io::Result<()> {
    let uid = rustix::process::Uid::from_raw(user);
    let gid = rustix::process::Gid::from_raw(user);
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_gid(gid)?;
    rustix::thread::set_thread_uid(uid)?;
    Ok(())
}

/// A started child, killed with its process group when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    label: String,
    out: PathBuf,
    err: PathBuf,
    /// `None`: nothing is left of its group, whose number may be given to another.
    guard: Option<Guard>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it has written to standard output so far.
    pub fn output(&self) -> String {
        read_lossy(&self.out)
    }

    /// What it has written to standard error so far.
    pub fn errors(&self) -> String {
        read_lossy(&self.err)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.status(), Ok(None))
    }

    /// A test fails: what the agent logged, or a peer that has died, tells why more often than the assertion.
    fn show_end(&mut self) {
        let status = self.status().ok().flatten();
        let has_died = status.is_some_and(|status| !status.success());
        if !has_died && !AGENT_LABELS.contains(&self.label.as_str()) {
            return;
        }
        let state = status.map_or_else(|| "runs".to_owned(), |status| status.to_string());
        let errors = self.errors();
        let lines: Vec<&str> = errors.lines().collect();
        eprintln!("== the end of what {} logged ({state}):", self.label);
        for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
            eprintln!("{line}");
        }
    }

    /// How it ended, if it has.
    fn status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        let group = Pid::from_child(&self.child);
        if status.is_some()
            && rustix::process::test_kill_process_group(group).is_err()
            && let Some(guard) = self.guard.take()
        {
            guard.disarm();
        }
        Ok(status)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .with_context(|| format!("send a signal to {}", self.label))
    }

    /// Waits until it exits by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("{} exits", self.label);
        wait_for(&what, limit, || self.status().ok().flatten())
            .with_context(|| format!("its errors: {}", self.errors()))
    }

    /// Waits until it exits with code 0 and returns its standard output.
    pub fn finish(mut self, limit: Duration) -> Result<String> {
        let status = self.wait(limit)?;
        if !status.success() {
            bail!("{} ended with {status}: {}", self.label, self.errors());
        }
        Ok(self.output())
    }

    /// Waits for a complete line of standard output that `pick` accepts.
    pub fn wait_for_line<T>(
        &mut self,
        limit: Duration,
        pick: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let what = format!("line from {}", self.label);
        let out = self.out.clone();
        let mut ended = false;
        let found = wait_for(&what, limit, || {
            let over = ended;
            ended = !self.is_running();
            let text = read_lossy(&out);
            let line = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'));
            line.map(str::trim_end)
                .find_map(&pick)
                .map(Some)
                .or(over.then_some(None))
        })
        .with_context(|| format!("its errors: {}", self.errors()))?;
        found.with_context(|| format!("{} ended early: {}", self.label, self.errors()))
    }

    /// SIGTERM, then SIGKILL if that does not end it.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.interrupt(Signal::TERM)
    }

    /// Sends `signal` and waits for the exit; SIGKILL if that does not end it in time.
    pub fn interrupt(&mut self, signal: Signal) -> Result<ExitStatus> {
        self.interrupt_within(signal, STOP_LIMIT)
    }

    /// The same with another limit.
    pub fn interrupt_within(&mut self, signal: Signal, limit: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.status().context("reap child")? {
            return Ok(status);
        }
        self.signal(signal)?;
        if let Ok(status) = self.wait(limit) {
            return Ok(status);
        }
        self.child
            .kill()
            .with_context(|| format!("kill {}", self.label))?;
        self.child
            .wait()
            .with_context(|| format!("reap {}", self.label))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_end();
        }
        if self.guard.is_none() {
            return;
        }
        let group = Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, Signal::KILL).ok();
        drop(self.child.wait());
        // Members that were not our children are reaped by init a moment later.
        drop(wait_until("process group is gone", GONE_LIMIT, || {
            rustix::process::test_kill_process_group(group).is_err()
        }));
    }
}

fn read_lossy(path: &Path) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
