//! Helm, which renders the chart in tests, built from the Go module proxy.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{go, kept};
use crate::{exec, pins, progress::Outcome, stamp::Stamp, workspace::Workspace};

pub(crate) fn label() -> String {
    format!("Helm {}", pins::HELM)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.tools.join(format!("helm-{}", pins::HELM))
}

pub(crate) fn path(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("helm")
}

/// Leaves target/tools/helm-VERSION/helm.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let folder = folder(workspace);
    let program = path(workspace);
    let stamp = Stamp::new(folder.join("stamp"), pins::HELM, pins::GO.sha256);
    kept::ensure(&folder, &stamp, || {
        let build = go::Build::begin(workspace)?;
        let mut install = build.command("install", "");
        install
            .arg(format!("helm.sh/helm/v3/cmd/helm@v{}", pins::HELM))
            .env("GOBIN", &folder);
        exec::download(&mut install, &workspace.logs().join("helm.log"))?;
        // Built like this it knows its number without the last part.
        let said = exec::output(Command::new(&program).args(["version", "--short"]))?;
        let (series, _) = pins::HELM.rsplit_once('.').context("Helm's version")?;
        ensure!(
            said.contains(series),
            "{} says it is {}",
            program.display(),
            said.trim()
        );
        Ok(())
    })
}
