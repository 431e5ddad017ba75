//! One run of qemu in software emulation: hardware virtualisation is not there on most build machines.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::transcript::Transcript;
use crate::exec;

/// A boot takes 3 s and the whole run some minutes on two idle cores.
const LIMIT: Duration = Duration::from_mins(20);
/// Without cmpxchg16b: qemu 7.2 spoils the flags register when it emulates it (Debian 12), and 6.12 crashes. Without fast
/// string instructions: they are emulated byte by byte, and the kernel then clears and copies by words (a third less time).
const CPU: &str = "max,-cx16,-erms,-fsrm";
/// One thread for all CPUs: with a thread each, a CPU runs on in code that another one has just changed, as it
/// does to switch system-call tracepoints on, and 6.12 crashes.
const ACCELERATOR: &str = "tcg,thread=single";
/// A warning of the kernel stops the machine: it has no end of its own then. At boot the kernel counts the interrupts of its
/// timer for some milliseconds and stops when there were too few, as there are where the emulator waits for a CPU
/// (`timer_irq_works`, `arch/x86/kernel/apic/io_apic.c`): it is told not to look.
const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 quiet panic=-1 panic_on_warn=1 mitigations=off no_timer_check";

/// What a machine is made of, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) cpus: u32,
    pub(super) megabytes: u32,
    pub(super) tries: Tries,
}

/// What is tried in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tries {
    Everything,
    /// Programs and a profile of each kind, no connections.
    Profiles,
}

impl Tries {
    /// For `guest/init.sh`.
    fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Profiles => "profiles",
        }
    }
}

/// A finished run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) transcript: Transcript,
    pub(super) took: Duration,
}

/// Boots, waits until the machine powers itself off, and reads what it wrote. A machine that does not end
/// is killed. Results and console are left in a folder.
pub(super) fn boot(folder: &Path, guest: Guest, kernel: &Path, initramfs: &Path) -> Result<Run> {
    let results = folder.join("results.txt");
    if results.exists() {
        fs::remove_file(&results).with_context(|| format!("remove {}", results.display()))?;
    }
    let mut qemu = exec::limited(LIMIT, "qemu-system-x86_64");
    qemu.args([
        "-accel",
        ACCELERATOR,
        "-cpu",
        CPU,
        "-smp",
        &guest.cpus.to_string(),
        "-m",
        &guest.megabytes.to_string(),
    ])
    .args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ])
    .args(["-serial", "stdio", "-serial"])
    .arg(format!("file:{}", results.display()))
    .arg("-kernel")
    .arg(kernel)
    .arg("-initrd")
    .arg(initramfs)
    .arg("-append")
    // What the kernel does not know it hands to init, as a variable.
    .arg(format!("{KERNEL_ARGUMENTS} tries={}", guest.tries.name()));
    let start = Instant::now();
    let console = folder.join("console.log");
    exec::to_log(&mut qemu, &console)?;
    let took = start.elapsed();
    let text = fs::read(&results).with_context(|| format!("read {}", results.display()))?;
    let transcript = Transcript::parse(&String::from_utf8_lossy(&text)).with_context(|| {
        let shown = fs::read(&console).unwrap_or_default();
        format!(
            "the machine ended early; the end of {}:\n{}",
            console.display(),
            end(&String::from_utf8_lossy(&shown))
        )
    })?;
    Ok(Run { transcript, took })
}

/// The last lines of a console, from the kernel's own report on where it stopped if there is one.
fn end(console: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = console.lines().collect();
    let report = |line: &&str| line.contains("WARNING:") || line.contains("BUG:");
    let from = lines
        .iter()
        .position(report)
        .unwrap_or(lines.len().saturating_sub(LINES));
    lines
        .get(from..(from + LINES).min(lines.len()))
        .unwrap_or_default()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_begins_with_what_stopped_the_kernel() {
        let many = |first: &str| {
            let rest: Vec<String> = (0..40).map(|line| format!("line {line}")).collect();
            format!("{first}\n{}", rest.join("\n"))
        };
        assert!(end(&many("[ 1.0] WARNING: CPU: 0")).starts_with("[ 1.0] WARNING"));
        assert!(end(&many("booted")).starts_with("line 28"));
        assert_eq!(end(""), "");
    }
}
