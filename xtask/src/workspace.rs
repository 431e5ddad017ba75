//! Where things are: the checkout, cargo's output, and the tools that only this project uses.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::dist;

/// Absolute paths of one checkout.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The folder of the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Cargo's output: `CARGO_TARGET_DIR`, or `target` in the checkout.
    pub(crate) target: PathBuf,
    /// Downloaded and built tools. Always in the checkout, because build scripts look there.
    pub(crate) tools: PathBuf,
}

impl Workspace {
    pub(crate) fn locate() -> Result<Self> {
        // cargo sets it at run time too, so a binary shared between checkouts finds the right one.
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("xtask's manifest folder has no parent")?
            .canonicalize()
            .context("resolve the workspace folder")?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => env::current_dir()
                .context("read the working folder")?
                .join(folder),
            None => root.join("target"),
        };
        let tools = root.join("target/tools");
        Ok(Self {
            root,
            target,
            tools,
        })
    }

    /// The agent that this checkout builds.
    pub(crate) fn agent(&self) -> PathBuf {
        self.target.join("release/profiler-agent")
    }

    /// The agent that tests run: what is shipped, or another one where `PROFILER_AGENT` says so.
    pub(crate) fn agent_under_test(&self) -> PathBuf {
        env::var_os("PROFILER_AGENT").map_or_else(|| dist::program(self), PathBuf::from)
    }

    /// Whether commits are known: a copy of the files alone has none.
    pub(crate) fn has_history(&self) -> bool {
        self.root.join(".git").exists()
    }

    pub(crate) fn web(&self) -> PathBuf {
        self.root.join("web")
    }

    /// Logs of quiet commands.
    pub(crate) fn logs(&self) -> PathBuf {
        self.tools.join("logs")
    }
}
