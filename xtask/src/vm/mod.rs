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

use anyhow::{Result, ensure};

use crate::{debian::Package, pins, test::Tally, workspace::Workspace};

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

/// Boots every kernel and counts each thing that it must show.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let tests = guest_tests::build(workspace)?;
    let agent = workspace.agent_under_test();
    let mut judge = verdict::Judge::read(workspace)?;
    for kernel in &pins::KERNELS {
        let image = kernel::fetch(workspace, kernel)?;
        let initramfs = initramfs::build(workspace, &agent, &tests, &image.modules)?;
        println!("kernel {}: booting {}", kernel.series, image.description);
        match machine::boot(workspace, &image.path, &initramfs) {
            Ok(run) => {
                println!(
                    "kernel {}: ran for {:.1} s",
                    kernel.series,
                    run.took.as_secs_f64()
                );
                tally.count(true);
                for (what, result) in judge.checks(kernel.series, &run.transcript) {
                    tally.count(result.is_ok());
                    match result {
                        Ok(detail) => println!("kernel {}: {what}: {detail}", kernel.series),
                        Err(error) => {
                            println!("kernel {}: {what}: FAILED: {error:#}", kernel.series);
                        }
                    }
                }
            }
            Err(error) => {
                tally.count(false);
                println!("kernel {}: boot: FAILED: {error:#}", kernel.series);
            }
        }
    }
    judge.bless(workspace)?;
    ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}
