//! `record -- COMMAND`: the command is there before the recording begins and runs once it has.
//!
//! This program is started again as the command's process. It stops itself, so that the recorder can be attached to its pid, and
//! becomes the command when it is continued.

use std::{
    convert::Infallible,
    os::unix::process::CommandExt as _,
    process::{Child, Command},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::config::cli::HeldCommand;

/// A process that waits to become a command; killed when dropped before that.
pub(super) struct Held {
    child: Child,
    is_waiting: bool,
}

impl Held {
    pub(super) fn start(command: &[String]) -> Result<Self> {
        let own = std::env::current_exe().context("find this program")?;
        let child = Command::new(own)
            .args([HeldCommand::NAME, "--"])
            .args(command)
            .spawn()
            .context("start a process for the command")?;
        let mut held = Self {
            child,
            is_waiting: true,
        };
        let stopped = waitpid(Some(held.process()?), WaitOptions::UNTRACED);
        let stopped = stopped.context("wait for the process of the command")?;
        if !stopped.is_some_and(|(_, status)| status.stopped()) {
            held.is_waiting = false;
            bail!("the process for the command ended before the command began");
        }
        Ok(held)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn process(&self) -> Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.context("the process of the command has no pid")
    }

    /// The command begins.
    pub(super) fn go(&mut self) -> Result<()> {
        kill_process(self.process()?, Signal::CONT).context("let the command begin")?;
        self.is_waiting = false;
        Ok(())
    }

    /// How the command ended, as a sentence.
    pub(super) fn ending(&mut self) -> String {
        match self.child.try_wait() {
            Ok(Some(status)) => format!("the command ended with {status}"),
            Ok(None) => format!("the command goes on as process {}", self.child.id()),
            Err(error) => format!("how the command ended is not known: {error}"),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_waiting {
            // It is gone already.
            let _gone = self.child.kill();
            let _status = self.child.wait();
        }
    }
}

/// The process of the command: waits until it is continued, then becomes the command.
pub fn become_command(held: &HeldCommand) -> Result<Infallible> {
    kill_process(getpid(), Signal::STOP).context("wait for the recording")?;
    let (program, arguments) = held.command.split_first().context("no command is given")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("start {program}"))
}
