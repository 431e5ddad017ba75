//! Running other programs.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

/// Lines from both ends of a log that are shown when its command fails: some tools begin with the cause.
const HEAD_LINES: usize = 8;
const TAIL_LINES: usize = 20;
/// What `timeout` exits with when the time is over.
const TIMEOUT_STATUS: i32 = 124;

/// Runs a command on the terminal; an exit status other than 0 is an error.
pub(crate) fn on_terminal(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("start {}", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    bail!("{}: {status}", shown(command))
}

/// Runs a command with its output in a log file, whose end is part of the error.
pub(crate) fn to_log(command: &mut Command, log: &Path) -> Result<()> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let both = file
        .try_clone()
        .with_context(|| format!("share {}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(both)
        .status()
        .with_context(|| format!("start {}", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let excerpt = excerpt(&text);
    let reason = if status.code() == Some(TIMEOUT_STATUS) {
        "time limit exceeded".to_owned()
    } else {
        status.to_string()
    };
    bail!(
        "{}: {reason}; from {}:\n  {excerpt}",
        shown(command),
        log.display()
    )
}

/// Tries of a download, and pauses before the second and the third.
const PAUSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

/// The same for a command that downloads: what fails is tried again, three times in all.
pub(crate) fn download(command: &mut Command, log: &Path) -> Result<()> {
    for pause in PAUSES {
        match to_log(command, log) {
            Ok(()) => return Ok(()),
            Err(error) => {
                let first = error.to_string();
                let first = first.lines().next().unwrap_or_default();
                println!("note: trying again in {} s: {first}", pause.as_secs());
            }
        }
        thread::sleep(pause);
    }
    to_log(command, log).context("the third try failed as well")
}

fn excerpt(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    if lines.len() <= HEAD_LINES + TAIL_LINES {
        return lines.join("\n  ");
    }
    let (head, tail) = (&lines[..HEAD_LINES], &lines[lines.len() - TAIL_LINES..]);
    format!("{}\n  ...\n  {}", head.join("\n  "), tail.join("\n  "))
}

/// Standard output of a command as text; an exit status other than 0 is an error with its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("start {}", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}: {}", shown(command), output.status, stderr.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed bytes that are not text", shown(command)))
}

/// The same with its standard error on the terminal: for a build whose output is read.
pub(crate) fn output_shown(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{}: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed bytes that are not text", shown(command)))
}

/// A command that coreutils' `timeout` ends after `limit`, so that it ends even when we die first.
pub(crate) fn limited(limit: Duration, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", "--kill-after=5"])
        .arg(limit.as_secs().to_string())
        .arg(program);
    command
}

/// The stable cargo that runs this program.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// Whether a program is in PATH.
pub(crate) fn in_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// Program and arguments, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_cut_in_the_middle() {
        let log: String = (0..100)
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
            .concat();
        let excerpt = excerpt(&log);
        assert!(excerpt.starts_with("0\n  1\n"), "{excerpt}");
        assert!(excerpt.contains("7\n  ...\n  80\n"), "{excerpt}");
        assert!(excerpt.ends_with("99"), "{excerpt}");
    }

    #[test]
    fn the_error_of_a_failed_command_holds_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo cause >&2; exit 3"]);
        let error = to_log(&mut command, &folder.path().join("logs/a.log"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("cause"),
            "{error}"
        );
    }

    #[test]
    fn a_download_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "test -e tried || { touch tried; exit 1; }"])
            .current_dir(folder.path());
        download(&mut command, &folder.path().join("a.log")).unwrap();
    }

    #[test]
    fn a_command_beyond_its_limit_is_ended_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = limited(Duration::from_secs(1), "sleep");
        let error = to_log(command.arg("60"), &folder.path().join("a.log"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("time limit exceeded"), "{error}");
    }
}
