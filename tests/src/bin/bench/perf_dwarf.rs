//! `perf record --call-graph dwarf` beside ours: how many of its stacks reach their root.
//!
//! perf copies the top of the stack with each sample and unwinds it afterwards by the same
//! descriptions, without a step that knows why it ended. A stack is taken to be whole when its
//! outermost frame is where a thread or a program starts.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Functions at the root of a whole stack, as they are called in glibc's own table of symbols.
const ROOTS: [&str; 6] = [
    "clone3",
    "__clone3",
    "clone",
    "__clone",
    "_start",
    "__libc_start_main",
];

/// Share in per cent of a process's samples that perf can unwind to the root.
pub(crate) fn complete_percent(pid: u32, seconds: u64, hz: u32) -> Result<f64> {
    let folder = tempfile::tempdir().context("make a folder")?;
    let data = folder.path().join("perf.data");
    let mut record = Command::new("perf");
    record
        .args(["record", "--event", "cpu-clock", "--call-graph", "dwarf"])
        .args(["--freq", &hz.to_string(), "--pid", &pid.to_string()])
        .arg("--output")
        .arg(&data)
        .args(["--", "sleep", &seconds.to_string()])
        .stdin(Stdio::null());
    output(&mut record)?;
    let mut script = Command::new("perf");
    // The names of inlined functions would take minutes and change no root.
    script.args(["script", "--no-inline", "--input"]).arg(&data);
    let (samples, complete) = count(&output(&mut script)?);
    eprintln!("perf, DWARF: {samples} samples, {complete} of them complete");
    ensure!(samples > 100, "perf has only {samples} samples");
    #[expect(clippy::cast_precision_loss, reason = "samples are few")]
    let percent = complete as f64 * 100.0 / samples as f64;
    Ok(percent)
}

fn output(command: &mut Command) -> Result<String> {
    let result = command
        .output()
        .context("run perf (Debian package: linux-perf)")?;
    ensure!(
        result.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&result.stderr)
    );
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Samples in the output of `perf script`, and those whose last frame is a root. A sample is a line
/// that begins at the margin, then its frames from the leaf on, then an empty line.
fn count(script: &str) -> (u64, u64) {
    let (mut samples, mut complete) = (0, 0);
    for sample in script
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty())
    {
        samples += 1;
        let root = sample.lines().next_back().unwrap_or_default();
        // Address, function and distance, module.
        let function = root.split_whitespace().nth(1).unwrap_or_default();
        let function = function.split(['+', '@']).next().unwrap_or_default();
        complete += u64::from(ROOTS.contains(&function));
    }
    (samples, complete)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn only_stacks_that_end_at_a_start_are_complete() {
        let script = "\
wrk 1 2.0: 1001 cpu-clock: 
\t 1 [unknown] (/envoy)
\t 2 clone3+0x2b (/libc.so.6)

wrk 1 2.1: 1001 cpu-clock: 
\t 1 [unknown] (/envoy)
\t 2 [unknown] ([unknown])

main 1 2.2: 1001 cpu-clock: 
\t 1 main (/program)
\t 2 __libc_start_main@@GLIBC_2.34+0x85 (/libc.so.6)
\t 3 _start+0x21 (/program)

";
        assert_eq!(count(script), (3, 2));
        assert_eq!(count(""), (0, 0));
    }
}
