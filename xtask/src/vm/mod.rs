//! The step and the bench `kernels`: other kernels than the machine's in software emulation, each with the release agent
//! inside.
//!
//! A machine is a kernel and an initramfs made on the spot. It says what it found on its second serial port
//! and powers off; everything is judged on the host.

mod kernel;
mod initramfs;
mod guest_tests;
mod machine;
mod transcript;
mod verdict;

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Result, anyhow, ensure};

use crate::{
    debian::Package,
    pins::{self, Kernel},
    test::{self, Tally},
    workspace::Workspace,
};
use machine::{Guest, Tries};
use verdict::Expected;

const SMALL: Guest = Guest {
    cpus: 2,
    megabytes: 1024,
    tries: Tries::Everything,
};
/// For what depends on the number of CPUs. Idle ones cost nothing.
const LARGE: Guest = Guest {
    cpus: 64,
    megabytes: 4096,
    tries: Tries::Profiles,
};

/// A kernel in a machine, and what is expected of it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kernel: &'static Kernel,
    guest: Guest,
    expected: Expected,
}

impl Trial {
    /// For people, and for a folder.
    fn name(&self) -> String {
        match self.guest.cpus {
            2 => self.kernel.series.to_owned(),
            cpus => format!("{}-{cpus}-cpus", self.kernel.series),
        }
    }
}

/// Of the step: everything must work, with the recorded numbers of instructions.
fn trials() -> Vec<Trial> {
    let trial = |kernel, guest| Trial {
        kernel,
        guest,
        expected: Expected::Recorded,
    };
    let [.., newest] = &pins::KERNELS;
    let all = pins::KERNELS.iter().map(|kernel| trial(kernel, SMALL));
    all.chain([trial(newest, LARGE)]).collect()
}

/// Of the bench.
fn more_trials() -> Vec<Trial> {
    let expected = |series| match series {
        "5.15" => Expected::Refused {
            programs: &WARNED_OF,
            reason: "panic_on_warn",
        },
        "6.1-rt" => Expected::Refused {
            programs: &IN_THE_SCHEDULER,
            reason: "PREEMPT_RT",
        },
        _ => Expected::Refused {
            programs: &[],
            reason: "",
        },
    };
    let trial = |kernel: &'static Kernel| Trial {
        kernel,
        guest: SMALL,
        expected: expected(kernel.series),
    };
    pins::MORE_KERNELS.iter().map(trial).collect()
}

/// The first program of each group that 5.15 to 6.0 would warn of; the rest of a group is not tried then.
const WARNED_OF: [&str; 4] = [
    "event_loop_call",
    "network_capture",
    "network_evict",
    "tls_call",
];
/// The same of those that fill ring buffers in interrupts or under the lock of a run queue.
const IN_THE_SCHEDULER: [&str; 4] = ["on_cpu", "wakers_waking", "wall_sample", "wall_switch"];

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

/// Boots every kernel of the tests and counts each thing that it must show.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    try_all(workspace, tally, &trials())
}

/// The same of the bench's kernels.
pub(crate) fn run_more(workspace: &Workspace) -> Result<()> {
    for kernel in &pins::MORE_KERNELS {
        kernel::fetch(workspace, kernel)?;
    }
    initramfs::busybox(workspace)?;
    let mut tally = Tally::default();
    let result = try_all(workspace, &mut tally, &more_trials());
    println!("{} passed, {} failed", tally.passed, tally.failed);
    result
}

/// Machines at once: each keeps one processor busy.
const AT_ONCE: usize = 2;

/// Boots all machines and judges each.
fn try_all(workspace: &Workspace, tally: &mut Tally, trials: &[Trial]) -> Result<()> {
    let tests = test::integration_binary(workspace)?;
    let mut judge = verdict::Judge::read(workspace)?;
    let next = AtomicUsize::new(0);
    let boot_in_turn = || {
        let mut runs = Vec::new();
        while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            runs.push((trial, boot(workspace, trial, &tests)));
        }
        runs
    };
    let runs = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(boot_in_turn)).collect();
        let runs = threads.into_iter().map(|thread| {
            let panicked = |_| anyhow!("a thread that boots machines panicked");
            thread.join().map_err(panicked)
        });
        runs.collect::<Result<Vec<_>>>()
    })?;
    let runs = runs.into_iter().flatten();
    let mut failures = Vec::new();
    for (trial, run) in runs {
        let name = trial.name();
        let run = match run {
            Ok(run) => run,
            Err(error) => {
                tally.count(false);
                failures.push(format!("kernel {name}: boot: FAILED: {error:#}"));
                continue;
            }
        };
        println!("kernel {name}: ran for {:.1} s", run.took.as_secs_f64());
        tally.count(true);
        for (what, result) in judge.checks(trial, &run.transcript) {
            tally.count(result.is_ok());
            match result {
                Ok(detail) => println!("kernel {name}: {what}: {detail}"),
                Err(error) => failures.push(format!("kernel {name}: {what}: FAILED: {error:#}")),
            }
        }
    }
    judge.bless(workspace)?;
    // Last, where a record that is cut at its beginning has them.
    for failure in failures {
        println!("{failure}");
    }
    ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}

fn boot(workspace: &Workspace, trial: &Trial, tests: &Path) -> Result<machine::Run> {
    let agent = workspace.agent_under_test();
    let name = trial.name();
    let image = kernel::fetch(workspace, trial.kernel)?;
    // Not in the kernel's own folder, all of which is kept for other checkouts.
    let folder = workspace.tools.join(format!("kernels/guest-{name}"));
    let initramfs = initramfs::build(workspace, &folder, &agent, tests, &image.modules)?;
    println!("kernel {name}: booting {}", image.description);
    machine::boot(&folder, trial.guest, &image.path, &initramfs)
}
