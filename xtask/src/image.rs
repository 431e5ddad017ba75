//! `cargo xtask image`: the shipped program alone in an image, made without a registry.

use std::fs;

use anyhow::{Context as _, Result};

use crate::{
    dist::{self, DistArgs},
    engine::Engine,
    exec, sbom,
    workspace::Workspace,
};

/// Name of the image, without its tag.
const NAME: &str = "profiler-agent";

pub(crate) fn run(workspace: &Workspace, args: &DistArgs) -> Result<()> {
    let shipped = dist::build(workspace, args)?;
    let folder = dist::folder(workspace);
    sbom::write(workspace, shipped.target, &folder.join("sbom.cdx.json"))?;
    // The builder sends the folder to the engine: only what the image holds.
    let archive = folder.join("profiler-agent-image.tar");
    if archive.exists() {
        fs::remove_file(&archive).with_context(|| format!("remove {}", archive.display()))?;
    }
    let engine = Engine::start(workspace)?;
    let tag = format!("{NAME}:{}", env!("CARGO_PKG_VERSION"));
    let mut build = engine.command();
    build
        .args(["build", "--network", "none", "--tag", &tag, "--file"])
        .arg(workspace.root.join("deploy/Dockerfile"))
        .arg(&folder);
    exec::to_log(&mut build, &workspace.logs().join("image.log"))?;
    let said = exec::output(engine.command().args([
        "run",
        "--rm",
        "--network",
        "none",
        &tag,
        "--version",
    ]))?;
    print!("{said}");
    let mut save = engine.command();
    save.args(["save", "--output"]).arg(&archive).arg(&tag);
    exec::on_terminal(&mut save)?;
    println!("{tag} holds {}", shipped.program.display());
    println!("{}: load it with `docker load --input`", archive.display());
    Ok(())
}
