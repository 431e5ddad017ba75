//! `cargo build` with a line for each crate of this workspace, in place of one for every crate there is.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::exec;

/// How much of cargo's output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The crates of this workspace, warnings and errors.
    Short,
    All,
}

/// A line of cargo about what it does.
#[derive(Debug, PartialEq, Eq)]
enum Said<'a> {
    /// It compiles a crate of this workspace.
    Own(&'a str),
    /// It compiles a crate from elsewhere, downloads one, or says how long all of it took.
    Routine,
    /// Warnings and errors.
    Else,
}

/// Runs `cargo build`; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command, output: Output) -> Result<()> {
    if output == Output::All {
        return exec::on_terminal(command);
    }
    let mut child = command
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_TERM_PROGRESS_WHEN", "never")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", exec::shown(command)))?;
    let lines = BufReader::new(child.stderr.take().context("a pipe for its output")?);
    let mut others = 0;
    for line in lines.split(b'\n') {
        let line = line.context("read the output of cargo")?;
        let line = String::from_utf8_lossy(&line).into_owned();
        match said(&line) {
            Said::Own(name) => {
                if others > 0 {
                    println!("      {others} crates from elsewhere");
                }
                others = 0;
                println!("      {name}");
            }
            Said::Routine => others += u32::from(line.trim_start().starts_with(COMPILING)),
            Said::Else => eprintln!("{line}"),
        }
    }
    let status = child.wait().context("wait for cargo")?;
    if status.success() {
        return Ok(());
    }
    bail!(
        "{}: {status}; --verbose shows all of its output",
        exec::shown(command)
    )
}

const COMPILING: &str = "Compiling ";
/// What it begins other lines with that show nothing about what is wrong.
const ROUTINE: [&str; 8] = [
    "Updating ",
    "Locking ",
    "Downloading ",
    "Downloaded ",
    "Finished ",
    "Fresh ",
    "Adding ",
    "Blocking ",
];

fn said(line: &str) -> Said<'_> {
    // It indents them: `   Compiling profiler-common v0.1.0 (/src/profiler-common)`.
    let words = line.trim_start();
    if words.len() == line.len() {
        return Said::Else;
    }
    if let Some(rest) = words.strip_prefix(COMPILING) {
        let is_own = rest
            .rsplit_once('(')
            .is_some_and(|(_, place)| place.starts_with('/'));
        return match rest.split(' ').next() {
            Some(name) if is_own => Said::Own(name),
            _ => Said::Routine,
        };
    }
    if ROUTINE.iter().any(|begin| words.starts_with(begin)) {
        Said::Routine
    } else {
        Said::Else
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_the_workspace_are_told_from_others() {
        for (line, expected) in [
            (
                "   Compiling profiler-common v0.1.0 (/src/profiler-common)",
                Said::Own("profiler-common"),
            ),
            ("   Compiling serde v1.0.229", Said::Routine),
            ("  Downloaded serde v1.0.229", Said::Routine),
            (
                "    Finished `release` profile [optimized] target(s) in 2m",
                Said::Routine,
            ),
            ("error[E0425]: cannot find value `x`", Said::Else),
            ("  --> src/main.rs:1:1", Said::Else),
            ("warning: unused", Said::Else),
            ("", Said::Else),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn a_failed_build_says_where_the_rest_is() {
        let mut command = Command::new("false");
        let error = run(&mut command, Output::Short).unwrap_err();
        assert!(error.to_string().contains("--verbose"), "{error}");
    }
}
