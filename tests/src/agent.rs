//! The agent under test: `serve` as a child, and its other commands.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::{
    api::Api,
    cleanup::{Guard, scratch_directory},
    paths,
    process::{Launch, Running},
};

/// On a busy machine, and in an emulated one.
const START_LIMIT: Duration = Duration::from_mins(2);

/// Programs that events call return at once: what is left of a cost is what the kernel takes to call them.
pub const FLOOR: &str = "--deny-probe=work";

/// How to start `profiler-agent serve`.
#[derive(Debug, Default)]
pub struct ServeOptions {
    /// More arguments.
    pub arguments: Vec<String>,
    /// Command in front of the agent, for example `unshare --pid --fork`.
    pub wrapper: Vec<String>,
    /// Keep data here instead of in a fresh folder.
    pub data_dir: Option<PathBuf>,
    /// Another build than the one under test.
    pub program: Option<PathBuf>,
}

impl ServeOptions {
    pub fn with_arguments<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            arguments: arguments.map(str::to_owned).into(),
            ..Self::default()
        }
    }
}

/// A running `profiler-agent serve` with its own data directory on a free port.
#[derive(Debug)]
pub struct Agent {
    process: Running,
    pub api: Api,
    pub data_dir: PathBuf,
    folder: PathBuf,
    _folder_guard: Guard,
}

impl Agent {
    /// Starts with default options.
    pub fn start() -> Result<Self> {
        Self::start_with(ServeOptions::default())
    }

    /// Starts and returns when the agent says that it listens.
    pub fn start_with(options: ServeOptions) -> Result<Self> {
        paths::require_root()?;
        let (folder, folder_guard) = scratch_directory("agent")?;
        let data_dir = options
            .data_dir
            .clone()
            .unwrap_or_else(|| folder.join("data"));
        let mut process = launch_serve(&options, &data_dir, &folder)?;
        let (address, token_file) = process.wait_for_line(START_LIMIT, ready_line)?;
        let token = token_file.as_deref().map(token_in).transpose()?;
        Ok(Self {
            process,
            api: Api::new(address, token),
            data_dir,
            folder,
            _folder_guard: folder_guard,
        })
    }

    /// Pid of the started process (of the wrapper, where there is one).
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it has printed.
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.process.errors()
    }

    /// Scratch folder that goes away with the agent.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.stop()
    }

    /// Stops it on a machine that is busy with other things.
    pub fn stop_within(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.interrupt_within(Signal::TERM, limit)
    }

    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.process.interrupt(Signal::KILL)
    }
}

/// Starts `serve` without waiting for it.
pub fn launch_serve(options: &ServeOptions, data_dir: &Path, logs: &Path) -> Result<Running> {
    let agent = options.program.clone().map_or_else(paths::agent, Ok)?;
    let mut command: Vec<String> = options.wrapper.clone();
    command.push(agent.to_string_lossy().into_owned());
    let listen = "--listen=127.0.0.1:0".to_owned();
    let data = format!("--data-dir={}", data_dir.display());
    command.extend(["serve".to_owned(), listen, data]);
    command.extend(options.arguments.iter().cloned());
    Launch::new(Path::new(&command[0]), "serve", logs)
        .args(&command[1..])
        .start()
}

/// Starts any other command of the agent; `label` names its output files in `logs`.
pub fn launch(arguments: &[&str], label: &str, logs: &Path) -> Result<Running> {
    launch_program(&paths::agent()?, arguments, label, logs)
}

/// The same of a build that is given.
pub fn launch_program(
    program: &Path,
    arguments: &[&str],
    label: &str,
    logs: &Path,
) -> Result<Running> {
    Launch::new(program, label, logs).args(arguments).start()
}

/// Where it listens and the file of its token, as soon as it has printed that.
pub fn address(output: &str) -> Option<(SocketAddr, Option<PathBuf>)> {
    let whole = output
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole.map(str::trim_end).find_map(ready_line)
}

fn ready_line(line: &str) -> Option<(SocketAddr, Option<PathBuf>)> {
    let rest = line.strip_prefix("listening on http://")?;
    let (address, rest) = rest.split_once('/')?;
    let file = rest
        .strip_prefix("; the token is in ")
        .and_then(|rest| rest.split_once(" (`"))
        .map(|(path, _)| PathBuf::from(path));
    Some((address.parse().ok()?, file))
}

/// The token in a file of the agent.
pub fn token_in(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// Runs a command of the agent to its end: exit status, standard output, standard error.
pub fn run(arguments: &[&str], limit: Duration) -> Result<(ExitStatus, String, String)> {
    let (folder, _guard) = scratch_directory("run")?;
    let mut process = launch(arguments, "agent", &folder)?;
    let status = process
        .wait(limit)
        .with_context(|| format!("profiler-agent {arguments:?}"))?;
    Ok((status, process.output(), process.errors()))
}
