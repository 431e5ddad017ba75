//! Helm, which renders the chart in tests, built from the Go module proxy.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::go;
use crate::{exec, pins, stamp::Stamp, workspace::Workspace};

/// Leaves target/tools/helm-VERSION/helm.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.tools.join(format!("helm-{}", pins::HELM));
    let program = folder.join("helm");
    let stamp = Stamp::new(folder.join("stamp"), pins::HELM, pins::GO.sha256);
    if stamp.is_fresh() && program.exists() {
        return Ok(program);
    }
    let build = go::Build::begin(workspace)?;
    let mut install = build.command("install", "");
    install
        .arg(format!("helm.sh/helm/v3/cmd/helm@v{}", pins::HELM))
        .env("GOBIN", &folder);
    exec::to_log(&mut install, &workspace.logs().join("helm.log"))?;
    build.end()?;
    // Built like this it knows its number without the last part.
    let said = exec::output(Command::new(&program).args(["version", "--short"]))?;
    let (series, _) = pins::HELM.rsplit_once('.').context("Helm's version")?;
    ensure!(
        said.contains(series),
        "{} says it is {}",
        program.display(),
        said.trim()
    );
    stamp.write()?;
    Ok(program)
}
