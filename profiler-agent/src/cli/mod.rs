//! What each command of the program does.

pub mod access_logs;
mod asking;
pub mod diagnose;
pub mod diff;
pub mod doctor;
pub mod doctor_process;
mod doctor_tls;
mod flags;
pub mod health;
pub mod import;
mod naming;
pub mod net;
pub mod openapi;
pub mod ps;
pub mod record;
pub mod record_command;
mod record_loops;
pub mod requests;
pub mod serve;
pub mod support_bundle;
pub mod top;
pub mod url;
mod watching;

#[cfg(test)]
mod hostile_tests;

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{config::ConfigError, terminal};

/// Exit code of errors in the command line or the configuration, as clap uses it.
pub const EXIT_USAGE: u8 = 2;
/// Exit code of `diagnose` when a finding matches `--fail-on`.
pub const EXIT_FOUND: u8 = 3;

/// Why a command ended without success.
#[derive(Debug)]
pub enum CliError {
    /// The configuration is wrong.
    Config(anyhow::Error),
    /// Something failed at run time.
    Runtime(anyhow::Error),
    /// Nothing failed, and what was looked for is there; the text says what.
    Found(String),
}

impl CliError {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::from(EXIT_USAGE),
            Self::Runtime(_) => ExitCode::FAILURE,
            Self::Found(_) => ExitCode::from(EXIT_FOUND),
        }
    }

    /// Says it on stderr.
    pub fn report(&self) {
        terminal::failed(self);
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = match self {
            Self::Config(error) | Self::Runtime(error) => error,
            Self::Found(text) => return f.write_str(text),
        };
        // Many texts already name their cause; each is reported once.
        let mut text = String::new();
        for cause in error.chain() {
            let cause = cause.to_string();
            if text.is_empty() {
                text = cause;
            } else if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.into())
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        Self::Runtime(error)
    }
}

/// What asks the command to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listen for SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Tells remarks of a collection.
fn say(notes: &[String]) {
    for note in notes {
        terminal::err_line(format_args!("note: {note}"));
    }
}
