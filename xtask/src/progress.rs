//! Progress lines: `[2/6] bpf-linker 0.10.4 ... done in 71.3 s`.

use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// What a step had to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Everything was there already.
    Cached,
    /// Done, and the user should know how.
    Remark(String),
}

/// Counts the steps of one command.
#[derive(Debug)]
pub(crate) struct Progress {
    total: usize,
    current: usize,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        Self { total, current: 0 }
    }

    /// Runs a step whose commands write to log files.
    pub(crate) fn quiet(
        &mut self,
        what: &str,
        step: impl FnOnce() -> Result<Outcome>,
    ) -> Result<()> {
        self.begin(what);
        print!(" ... ");
        io::stdout().flush().context("write to standard output")?;
        let start = Instant::now();
        match step() {
            Ok(Outcome::Done) => println!("done in {}", seconds(start.elapsed())),
            Ok(Outcome::Cached) => println!("up to date"),
            Ok(Outcome::Remark(remark)) => {
                println!("done in {} ({remark})", seconds(start.elapsed()));
            }
            Err(error) => {
                println!("failed after {}", seconds(start.elapsed()));
                return Err(error.context(what.to_owned()));
            }
        }
        Ok(())
    }

    /// Runs a step whose commands write to the terminal.
    pub(crate) fn loud<T>(&mut self, what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin(what);
        println!();
        let position = format!("[{}/{}]", self.current, self.total);
        let start = Instant::now();
        let result = step().with_context(|| what.to_owned());
        let verdict = if result.is_ok() {
            "done in"
        } else {
            "failed after"
        };
        println!("{position} {what}: {verdict} {}", seconds(start.elapsed()));
        result
    }

    fn begin(&mut self, what: &str) {
        self.current += 1;
        print!("[{}/{}] {what}", self.current, self.total);
    }
}

/// `3.2 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
