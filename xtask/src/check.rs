//! `cargo xtask check`: checks of the code that do not run it.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    exec, pins,
    progress::Progress,
    setup::{self, BINARY},
    tidy,
    workspace::Workspace,
};

/// Makes every check, also after one failed.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, &BINARY)?;
    let mut progress = Progress::new(STEPS);
    let failed: Vec<String> = checks()
        .into_iter()
        .filter_map(|check| progress.loud(check.what, || (check.run)(workspace)).err())
        .map(|error| format!("{error:#}"))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{} of {STEPS} checks failed:\n{}",
        failed.len(),
        failed.join("\n")
    )
}

/// How many checks `run` makes.
pub(crate) const STEPS: usize = 5;

struct Check {
    what: &'static str,
    run: fn(&Workspace) -> Result<()>,
}

fn checks() -> [Check; STEPS] {
    [
        Check {
            what: "formatting",
            run: |workspace| cargo(workspace, &["fmt", "--all", "--check"], &[]),
        },
        Check {
            what: "lints of the host crates",
            run: host_lints,
        },
        Check {
            what: "lints of the eBPF crate",
            run: ebpf_lints,
        },
        Check {
            what: "documentation",
            run: |workspace| {
                let arguments = [
                    "doc",
                    "--workspace",
                    "--exclude",
                    "profiler-ebpf",
                    "--no-deps",
                    "--locked",
                    "--document-private-items",
                ];
                cargo(workspace, &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
            },
        },
        Check {
            what: "house rules",
            run: tidy::run,
        },
    ]
}

fn host_lints(workspace: &Workspace) -> Result<()> {
    let mut arguments = vec![
        "clippy",
        "--workspace",
        "--exclude",
        "profiler-ebpf",
        "--all-targets",
        "--locked",
        "--",
    ];
    arguments.extend(deny_warnings()?);
    cargo(workspace, &arguments, &[])
}

/// The dated nightly has no clippy, and the eBPF crate needs only stable Rust when nothing is linked. The
/// host's target stands in for eBPF's, whose core library is not there for the stable compiler.
fn ebpf_lints(workspace: &Workspace) -> Result<()> {
    let mut arguments = vec![
        "clippy",
        "--package",
        "profiler-ebpf",
        "--release",
        "--locked",
        "--",
    ];
    arguments.extend(deny_warnings()?);
    // Without std there is no unwinding; the architecture is passed as in the real build.
    let flags = format!(
        "-Cpanic=abort\x1f--cfg=bpf_target_arch=\"{}\"",
        std::env::consts::ARCH
    );
    cargo(
        workspace,
        &arguments,
        &[
            ("CARGO_ENCODED_RUSTFLAGS", &flags),
            // The name of the kernel's atomic addition is not stable.
            ("RUSTC_BOOTSTRAP", "profiler_ebpf"),
        ],
    )
}

/// Warnings are errors with the pinned Rust only: a newer one knows lints that this code was not written for.
fn deny_warnings() -> Result<&'static [&'static str]> {
    let version = exec::output(Command::new("rustc").arg("--version"))?;
    let pinned = format!("{}.", pins::STABLE);
    if version
        .split_whitespace()
        .nth(1)
        .is_some_and(|found| found.starts_with(&pinned))
    {
        return Ok(&["-D", "warnings"]);
    }
    println!(
        "note: this is not Rust {}, so warnings are shown but are not errors",
        pins::STABLE
    );
    Ok(&[])
}

fn cargo(workspace: &Workspace, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let mut command = exec::cargo(&workspace.root);
    command.args(arguments).envs(environment.iter().copied());
    // Documentation and lints do not need the object; building it here would only cost time.
    command.env("PROFILER_SKIP_EBPF", "1");
    exec::on_terminal(&mut command)
}
