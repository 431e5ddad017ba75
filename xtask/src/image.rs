//! `cargo xtask image`: the shipped program alone in an image, made without a registry.

use std::{fs, path::PathBuf};

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
    let engine = Engine::start(workspace)?;
    let tag = make(workspace, shipped.target, &engine)?;
    let said = exec::output(engine.command().args([
        "run",
        "--rm",
        "--network",
        "none",
        &tag,
        "--version",
    ]))?;
    print!("{said}");
    let archive = archive(workspace);
    let mut save = engine.command();
    save.args(["save", "--output"]).arg(&archive).arg(&tag);
    exec::on_terminal(&mut save)?;
    println!("{tag} holds {}", shipped.program.display());
    println!("{}: load it with `docker load --input`", archive.display());
    Ok(())
}

/// Makes the image of the program that `dist` has left, which was built for `target`; its name.
pub(crate) fn make(workspace: &Workspace, target: &str, engine: &Engine) -> Result<String> {
    let folder = dist::folder(workspace);
    sbom::write(workspace, target, &folder.join("sbom.cdx.json"))?;
    // The builder sends the folder to the engine: only what the image holds.
    let archive = archive(workspace);
    if archive.exists() {
        fs::remove_file(&archive).with_context(|| format!("remove {}", archive.display()))?;
    }
    let tag = format!("{NAME}:{}", env!("CARGO_PKG_VERSION"));
    let mut build = engine.command();
    build
        .args(["build", "--network", "none", "--tag", &tag, "--file"])
        .arg(workspace.root.join("deploy/Dockerfile"))
        .arg(&folder);
    exec::to_log(&mut build, &workspace.logs().join("image.log"))?;
    Ok(tag)
}

fn archive(workspace: &Workspace) -> PathBuf {
    dist::folder(workspace).join("profiler-agent-image.tar")
}
