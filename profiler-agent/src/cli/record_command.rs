//! `record -- COMMAND`: the command is there before the recording begins and runs once it has.
//!
//! This program is started again as the command's process. It stops itself, so that the recorder can be attached to its pid, and
//! becomes the command when it is continued.

use std::{
    convert::Infallible,
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_parent_process_death_signal, waitpid,
};

use crate::{config::cli::HeldCommand, terminal};

/// What shells answer for a command that they cannot start.
const NOT_STARTED_CODE: u8 = 127;
const NOT_STARTED: i32 = NOT_STARTED_CODE as i32;
const LAST_MOMENT: Duration = Duration::from_secs(1);

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

    /// How the command ended, as a sentence. An error: it could not be started, and said why.
    pub(super) fn ending(&mut self) -> Result<String> {
        if self.is_waiting {
            return Ok("the command was not started".to_owned());
        }
        // Its last thread may be gone a little before it can be waited for.
        let deadline = Instant::now() + LAST_MOMENT;
        loop {
            let status = self.child.try_wait().context("wait for the command")?;
            match status {
                Some(status) if status.code() == Some(NOT_STARTED) => {
                    bail!("the command could not be started")
                }
                Some(status) => return Ok(format!("the command ended with {status}")),
                None if Instant::now() < deadline => thread::sleep(LAST_MOMENT / 10),
                None => {
                    return Ok(format!(
                        "the command goes on as process {}",
                        self.child.id()
                    ));
                }
            }
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

/// The process of the command: waits until it is continued, then becomes the command. Returns why it could not.
pub fn become_command(held: &HeldCommand) -> ExitCode {
    let Err(error) = wait_and_become(held);
    terminal::err_line(format_args!("error: {error:#}"));
    ExitCode::from(NOT_STARTED_CODE)
}

fn wait_and_become(held: &HeldCommand) -> Result<Infallible> {
    // Whoever would continue it may be killed meanwhile.
    set_parent_process_death_signal(Some(Signal::KILL)).context("end with the recorder")?;
    kill_process(getpid(), Signal::STOP).context("wait for the recording")?;
    set_parent_process_death_signal(None).context("outlive the recorder")?;
    let (program, arguments) = held.command.split_first().context("no command is given")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("start {program}"))
}
