//! bpf-linker, built with the eBPF nightly whose LLVM it uses.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{kept, toolchain::EbpfToolchain};
use crate::{exec, pins, progress::Outcome, stamp::Stamp, workspace::Workspace};

pub(crate) fn label() -> String {
    format!("bpf-linker {}", pins::BPF_LINKER)
}

pub(crate) fn path(workspace: &Workspace) -> PathBuf {
    root(workspace).join("bin/bpf-linker")
}

fn root(workspace: &Workspace) -> PathBuf {
    workspace.tools.join(label().replace(' ', "-"))
}

/// Installs it below target/tools unless it is there, built with the same nightly.
pub(crate) fn ensure(workspace: &Workspace, toolchain: Option<&EbpfToolchain>) -> Result<Outcome> {
    let toolchain = toolchain.context("bpf-linker needs the eBPF toolchain")?;
    let root = root(workspace);
    let program = path(workspace);
    let stamp = Stamp::new(root.join("stamp"), pins::BPF_LINKER, pins::NIGHTLY_COMMIT);
    kept::ensure(&root, &stamp, || {
        let scratch = workspace.tools.join("bpf-linker-build");
        let mut install = Command::new(&toolchain.cargo);
        install
            .args(["install", "bpf-linker", "--version", pins::BPF_LINKER])
            .args(["--locked", "--force", "--root"])
            .arg(&root)
            .env("RUSTC", &toolchain.rustc)
            .env("CARGO_TARGET_DIR", &scratch)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTFLAGS")
            .current_dir(&workspace.tools);
        exec::download(&mut install, &workspace.logs().join("bpf-linker.log"))?;
        let version = exec::output(Command::new(&program).arg("--version"))?;
        ensure!(
            version.contains(pins::BPF_LINKER),
            "{} says it is {}",
            program.display(),
            version.trim()
        );
        if scratch.exists() {
            fs::remove_dir_all(&scratch)
                .with_context(|| format!("remove {}", scratch.display()))?;
        }
        Ok(())
    })
}
