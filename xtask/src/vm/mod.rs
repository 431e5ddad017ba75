//! The step `kernels`: Debian's older kernels in software emulation, each with the release agent inside.
//!
//! A machine is a kernel and an initramfs made on the spot. It says what it found on its second serial port
//! and powers off; everything is judged on the host.

mod kernel;
mod initramfs;
mod guest_tests;
mod machine;
mod transcript;
mod verdict;

use std::{path::Path, thread};

use anyhow::{Result, anyhow, ensure};

use crate::{
    debian::Package,
    pins,
    test::{self, Tally},
    workspace::Workspace,
};

pub(crate) const PACKAGES: [Package; 2] = [
    Package {
        name: "qemu-system-x86",
        evidence: "/usr/bin/qemu-system-x86_64",
    },
    Package {
        name: "cpio",
        evidence: "/usr/bin/cpio",
    },
];

/// Fetches what the machines boot.
pub(crate) fn fetch(workspace: &Workspace) -> Result<()> {
    for kernel in &pins::KERNELS {
        kernel::fetch(workspace, kernel)?;
    }
    initramfs::busybox(workspace).map(drop)
}

/// Boots every kernel, each on one processor, and counts each thing that it must show.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let tests = test::integration_binary(workspace)?;
    let mut judge = verdict::Judge::read(workspace)?;
    let runs: Vec<(&str, Result<machine::Run>)> = thread::scope(|scope| {
        let started: Vec<_> = pins::KERNELS
            .iter()
            .map(|kernel| {
                (
                    kernel.series,
                    scope.spawn(|| boot(workspace, kernel, &tests)),
                )
            })
            .collect();
        let ended = started.into_iter().map(|(series, run)| {
            let panicked = |_| Err(anyhow!("its thread panicked"));
            (series, run.join().unwrap_or_else(panicked))
        });
        ended.collect()
    });
    for (series, run) in runs {
        let run = match run {
            Ok(run) => run,
            Err(error) => {
                tally.count(false);
                println!("kernel {series}: boot: FAILED: {error:#}");
                continue;
            }
        };
        println!("kernel {series}: ran for {:.1} s", run.took.as_secs_f64());
        tally.count(true);
        for (what, result) in judge.checks(series, &run.transcript) {
            tally.count(result.is_ok());
            match result {
                Ok(detail) => println!("kernel {series}: {what}: {detail}"),
                Err(error) => println!("kernel {series}: {what}: FAILED: {error:#}"),
            }
        }
    }
    judge.bless(workspace)?;
    ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}

fn boot(workspace: &Workspace, kernel: &pins::Kernel, tests: &Path) -> Result<machine::Run> {
    let agent = workspace.agent_under_test();
    let image = kernel::fetch(workspace, kernel)?;
    // Not in the kernel's own folder, all of which is kept for other checkouts.
    let guest = format!("kernels/guest-{}", kernel.series);
    let folder = workspace.tools.join(guest);
    let initramfs = initramfs::build(workspace, &folder, &agent, tests, &image.modules)?;
    println!("kernel {}: booting {}", kernel.series, image.description);
    machine::boot(&folder, &image.path, &initramfs)
}
