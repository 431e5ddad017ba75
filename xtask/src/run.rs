//! `cargo xtask run`: the agent on this machine.

use std::{os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context as _, Result};

use crate::{build, compile::Output, workspace::Workspace};

/// Replaces this process by the agent, so that signals and the exit status are the agent's own.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    build::run(workspace, Output::Short)?;
    let agent = workspace.agent();
    let error = Command::new(&agent).arg("serve").args(arguments).exec();
    Err(error).with_context(|| format!("start {}", agent.display()))
}
