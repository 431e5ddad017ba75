//! Schemathesis, which makes requests from an OpenAPI document; a program in Python.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::kept;
use crate::{
    exec, pins,
    progress::Outcome,
    stamp::{Stamp, text_hash},
    workspace::Workspace,
};

pub(crate) fn label() -> String {
    format!("Schemathesis {}", version())
}

/// The first requirement is the program itself.
fn version() -> &'static str {
    let first = pins::SCHEMATHESIS.split_whitespace().next();
    let pinned = first.and_then(|pin| pin.split_once("=="));
    pinned.map_or("of no version", |(_, version)| version)
}

/// Leaves target/tools/schemathesis-VERSION, a folder for PYTHONPATH.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.tools.join(format!("schemathesis-{}", version()));
    // Some of its wheels are compiled for one series of Python.
    let series = "import sys; print(*sys.version_info[:2])";
    let python = exec::output(Command::new("python3").args(["-c", series]))?;
    let made_for = format!("{} for Python {}", version(), python.trim());
    let hash = text_hash(pins::SCHEMATHESIS);
    let stamp = Stamp::new(folder.join("stamp"), &made_for, &hash);
    kept::ensure_in_place(&folder, &stamp, |folder| install(workspace, folder))
}

fn install(workspace: &Workspace, folder: &Path) -> Result<()> {
    let requirements = workspace.tools.join("schemathesis.txt");
    fs::write(&requirements, pins::SCHEMATHESIS)
        .with_context(|| format!("write {}", requirements.display()))?;
    let mut install = Command::new("python3");
    install
        .args(["-m", "pip", "install", "--only-binary=:all:", "--no-deps"])
        .args(["--require-hashes", "--disable-pip-version-check"])
        // Compiled files would not be the same the next time.
        .args(["--no-compile", "--upgrade", "--target"])
        .arg(folder)
        .arg("--requirement")
        .arg(&requirements);
    exec::download(&mut install, &workspace.logs().join("schemathesis.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_requirement_is_the_program() {
        assert!(pins::SCHEMATHESIS.starts_with("schemathesis=="));
        assert!(version().starts_with(|first: char| first.is_ascii_digit()));
    }
}
