//! What is shipped: the program that `cargo xtask dist` builds, and the image made of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    dist::{self, DistArgs},
    engine::Engine,
    exec, image, notice, supply_chain,
    test::{self, Tally},
    workspace::Workspace,
};

/// Checks the program and the image; then the image runs in an engine.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    // Files may differ from the commit while one works; what CI tests does not.
    let program = dist::build(workspace, &DistArgs { allow_dirty: true })?.program;
    let said = exec::output(Command::new(&program).arg("--version"))?;
    if workspace.has_history() {
        revision(workspace, &said)?;
    }
    let bytes = program.metadata().context("its size")?.len();
    println!(
        "{}: {bytes} bytes of at most {}",
        program.display(),
        dist::BUDGET_BYTES
    );
    tally.passed += 2;
    let target = said.lines().find_map(|line| line.strip_prefix("target: "));
    let target = target.context("the program does not say what it is built for")?;
    let engine = Engine::start(workspace)?;
    let tag = image::make(workspace, target, &engine)?;
    let parts = parts(workspace, &engine, &tag)?;
    println!("{tag} lists {parts} crates of Cargo.lock");
    let licensed = licences(workspace, &engine, &tag)?;
    println!("{tag} holds the licences of {licensed} parts");
    tally.passed += 2;
    let variables = [
        ("DOCKER_HOST", engine.host.as_str()),
        ("PROFILER_IMAGE", &tag),
    ];
    test::integration_with(workspace, "shipped", &variables, tally)
}

/// Whether the program names a commit that there is.
fn revision(workspace: &Workspace, version: &str) -> Result<()> {
    let first = version.lines().next().unwrap_or_default();
    let revision = first
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .with_context(|| format!("no commit in {first:?}"))?;
    let mut known = Command::new("git");
    known
        .args(["cat-file", "-e"])
        .arg(format!("{revision}^{{commit}}"))
        .current_dir(&workspace.root);
    exec::output(&mut known).map(drop)
}

/// How many crates the image lists; all must be those of Cargo.lock.
fn parts(workspace: &Workspace, engine: &Engine, tag: &str) -> Result<usize> {
    let [copy] = extracted(workspace, engine, tag, ["sbom.cdx.json"])?;
    let lock = workspace.root.join("Cargo.lock");
    listed(&read(&copy)?, &read(&lock)?)
}

/// How many parts have their licences in the image; the files must be those of the lock files, as the step
/// `supply-chain` checks them, and lie beside the program as well.
fn licences(workspace: &Workspace, engine: &Engine, tag: &str) -> Result<usize> {
    let copies = extracted(workspace, engine, tag, notice::FILES)?;
    for (name, copy) in notice::FILES.into_iter().zip(&copies) {
        let beside = dist::folder(workspace).join(name);
        ensure!(
            read(copy)? == read(&beside)?,
            "/{name} in the image is not {}",
            beside.display()
        );
    }
    let made = notice::make(workspace)?;
    let [_, in_image, texts] = &copies;
    ensure!(
        read(in_image)? == made.list && read(texts)? == made.texts,
        "the image's licences are not those of Cargo.lock"
    );
    Ok(supply_chain::named_parts(&made.texts)?.len())
}

/// Copies of files that lie at the image's root.
fn extracted<const N: usize>(
    workspace: &Workspace,
    engine: &Engine,
    tag: &str,
    names: [&str; N],
) -> Result<[PathBuf; N]> {
    let created = exec::output(engine.command().args(["create", tag]))?;
    let id = created.trim();
    let copies = names.map(|name| workspace.target.join(format!("of-image-{name}")));
    let mut result = Ok(());
    for (name, copy) in names.into_iter().zip(&copies) {
        let mut extract = engine.command();
        extract.arg("cp").arg(format!("{id}:/{name}")).arg(copy);
        result = result.and(exec::output(&mut extract).map(drop));
    }
    exec::output(engine.command().args(["rm", id]))?;
    result.map(|()| copies)
}

fn listed(bom: &str, lock: &str) -> Result<usize> {
    let bom: Value = serde_json::from_str(bom).context("parse the list of parts")?;
    let components = bom["components"].as_array().context("a list of parts")?;
    let crates = components.iter().filter(|part| {
        let purl = part["purl"].as_str().unwrap_or_default();
        purl.starts_with("pkg:cargo/")
    });
    let mut number = 0;
    for part in crates {
        let entry = format!("name = {}\nversion = {}\n", part["name"], part["version"]);
        ensure!(
            lock.contains(&entry),
            "{} {} is not in Cargo.lock",
            part["name"],
            part["version"]
        );
        number += 1;
    }
    ensure!(number > 0, "the list names no crate");
    Ok(number)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_of_another_version_is_found() {
        let lock = "[[package]]\nname = \"aya\"\nversion = \"0.14.0\"\nsource = \"x\"\n";
        let bom = |version: &str| {
            let purl = format!("pkg:cargo/aya@{version}");
            json!({ "components": [{ "name": "aya", "version": version, "purl": purl }] })
                .to_string()
        };
        assert_eq!(listed(&bom("0.14.0"), lock).unwrap(), 1);
        assert!(listed(&bom("0.14"), lock).is_err());
        assert!(listed("{\"components\": []}", lock).is_err());
    }
}
