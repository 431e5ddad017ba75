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
/// Without cmpxchg16b: qemu 7.2 spoils the flags register when it emulates it (Debian 12), and 6.12 crashes.
const CPU: &str = "max,-cx16";
/// One thread for all CPUs: with a thread each, a CPU runs on in code that another one has just changed, as it
/// does to switch system-call tracepoints on, and 6.12 crashes.
const ACCELERATOR: &str = "tcg,thread=single";
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 mitigations=off";

/// A finished run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) transcript: Transcript,
    pub(super) took: Duration,
}

/// Boots, waits until the machine powers itself off, and reads what it wrote. A machine that does not end
/// is killed. Results and console are left in a folder.
pub(super) fn boot(folder: &Path, kernel: &Path, initramfs: &Path) -> Result<Run> {
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
        "2",
        "-m",
        "1024",
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
    .args(["-append", KERNEL_ARGUMENTS]);
    let start = Instant::now();
    let console = folder.join("console.log");
    exec::to_log(&mut qemu, &console)?;
    let took = start.elapsed();
    let text = fs::read(&results).with_context(|| format!("read {}", results.display()))?;
    let transcript = Transcript::parse(&String::from_utf8_lossy(&text)).with_context(|| {
        format!(
            "the machine ended early; its console is in {}",
            console.display()
        )
    })?;
    Ok(Run { transcript, took })
}
