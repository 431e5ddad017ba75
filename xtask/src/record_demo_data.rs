//! `cargo xtask record-demo-data`: makes what `profiler-agent serve --demo-data` shows, on the real mesh.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    build,
    compile::Output,
    demo, exec, pins,
    setup::{self, Part},
    workspace::Workspace,
};

/// Where the mesh's programs run from: their paths are in the recorded profiles, and those of a
/// checkout would say more about a developer's machine than about the mesh.
const FOLDER: &str = "/opt/mesh-demo";
const PROGRAMS: [&str; 4] = ["profiler-demo", "mesh-server", "mesh-client", "zipkin-sink"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the mesh is profiled by the real agent: run it as root"
    );
    setup::run(
        workspace,
        &[
            Part::Packages(&demo::PACKAGES),
            Part::Ebpf,
            Part::Web,
            Part::Envoy,
        ],
    )?;
    build::agent(workspace, Output::Short)?;
    build::bench_programs(workspace)?;
    let folder = ProgramFolder::make()?;
    let release = workspace.target.join("release");
    for program in PROGRAMS {
        let copy = folder.copy(&release.join(program), program)?;
        // Names stay, places in the developer's source tree go.
        exec::on_terminal(Command::new("strip").arg("--strip-debug").arg(&copy))?;
    }
    let envoy = folder.copy(&setup::envoy_path(workspace, &pins::ENVOY), "envoy")?;
    let mut record = Command::new(folder.path.join("profiler-demo"));
    record
        .arg("record")
        .arg(workspace.root.join("profiler-agent/demo-data"))
        .arg("--envoy")
        .arg(envoy)
        .env("PROFILER_AGENT", workspace.agent());
    exec::on_terminal(&mut record)
}

/// Removed when dropped.
struct ProgramFolder {
    path: PathBuf,
}

impl ProgramFolder {
    fn make() -> Result<Self> {
        let path = PathBuf::from(FOLDER);
        fs::create_dir(&path)
            .with_context(|| format!("make {FOLDER}; remove it when it is left over"))?;
        Ok(Self { path })
    }

    fn copy(&self, from: &Path, name: &str) -> Result<PathBuf> {
        let to = self.path.join(name);
        fs::copy(from, &to).with_context(|| format!("copy {}", from.display()))?;
        // The sidecars run as a user of their own.
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("open {} for all", to.display()))?;
        Ok(to)
    }
}

impl Drop for ProgramFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("warning: remove {}: {error}", self.path.display());
        }
    }
}
