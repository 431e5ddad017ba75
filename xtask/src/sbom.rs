//! The list of what the shipped program is made of, as `CycloneDX`: crates of the agent and packages of the UI.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{exec, pins, setup, stamp::Stamp, web, workspace::Workspace};

const FORMAT: &str = "1.5";

/// Writes the list for what is built for `target` to `file`.
pub(crate) fn write(workspace: &Workspace, target: &str, file: &Path) -> Result<()> {
    let mut bom = crates(workspace, target)?;
    let packages = packages(workspace)?;
    ensure!(
        bom["specVersion"] == FORMAT && packages["specVersion"] == FORMAT,
        "the lists are of versions {} and {}, not both of {FORMAT}",
        bom["specVersion"],
        packages["specVersion"]
    );
    let ui = packages["components"]
        .as_array()
        .context("npm's list names no components")?;
    let ui_dependencies = packages["dependencies"].as_array().cloned();
    append(&mut bom, "components", ui.clone())?;
    append(
        &mut bom,
        "dependencies",
        ui_dependencies.unwrap_or_default(),
    )?;
    let problems = problems(&bom);
    ensure!(
        problems.is_empty(),
        "the list of parts: {}",
        problems.join("; ")
    );
    let text = serde_json::to_vec_pretty(&bom).context("encode the list of parts")?;
    fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

/// What cargo resolves for the agent alone: no crates of its tests and of its build.
fn crates(workspace: &Workspace, target: &str) -> Result<Value> {
    const NAME: &str = "profiler-agent.cdx";
    let program = ensure_tool(workspace)?;
    let mut list = Command::new(program);
    list.args(["cyclonedx", "--format", "json", "--spec-version", FORMAT])
        .args(["--no-build-deps", "--target", target])
        .args(["--override-filename", NAME, "--manifest-path"])
        .arg(workspace.root.join("profiler-agent/Cargo.toml"))
        .current_dir(&workspace.root);
    let result = exec::to_log(&mut list, &workspace.logs().join("sbom.log"));
    // It writes one beside the manifest of each member; nothing of it may stay in the checkout.
    let mut found = None;
    let list = |folder| fs::read_dir(folder).context("list the checkout");
    let entries = list(workspace.root.clone())?.chain(list(workspace.root.join("crates"))?);
    for entry in entries {
        let folder = entry.context("list the checkout")?.path();
        let file = folder.join(format!("{NAME}.json"));
        if !file.is_file() {
            continue;
        }
        let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        fs::remove_file(&file).with_context(|| format!("remove {}", file.display()))?;
        if folder.ends_with("profiler-agent") {
            found = Some(text);
        }
    }
    result?;
    let text = found.context("cargo-cyclonedx wrote no list for profiler-agent")?;
    serde_json::from_slice(&text).context("parse the list of crates")
}

/// What the UI's bundle is made of.
fn packages(workspace: &Workspace) -> Result<Value> {
    let arguments = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev"];
    let text = exec::output(&mut web::npm(&workspace.web(), &arguments))?;
    serde_json::from_str(&text).context("parse npm's list of packages")
}

/// Leaves target/tools/cargo-cyclonedx-VERSION.
pub(crate) fn ensure_tool(workspace: &Workspace) -> Result<PathBuf> {
    let version = pins::CARGO_CYCLONEDX;
    let root = workspace.tools.join(format!("cargo-cyclonedx-{version}"));
    let program = root.join("bin/cargo-cyclonedx");
    let stamp = Stamp::new(root.join("stamp"), version, "");
    setup::ensure_kept(&root, &stamp, || {
        let mut install = exec::cargo(&workspace.tools);
        // It runs once: compiling it fast saves more than running it fast.
        install
            .args(["install", "cargo-cyclonedx", "--version", version])
            .args(["--locked", "--force", "--debug", "--root"])
            .arg(&root)
            .env("CARGO_TARGET_DIR", workspace.target.join("cargo-cyclonedx"));
        exec::download(&mut install, &workspace.logs().join("cargo-cyclonedx.log"))
    })?;
    Ok(program)
}

fn append(bom: &mut Value, key: &str, more: Vec<Value>) -> Result<()> {
    bom[key]
        .as_array_mut()
        .with_context(|| format!("the list of crates has no {key}"))?
        .extend(more);
    Ok(())
}

/// What is wrong with a list: a part without name, version or place, and one of which there would be no source.
fn problems(bom: &Value) -> Vec<String> {
    let components = bom["components"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found: Vec<String> = components
        .iter()
        .filter(|part| {
            ["name", "version", "purl"]
                .iter()
                .any(|key| !part[key].is_string())
        })
        .map(|part| format!("incomplete: {part}"))
        .collect();
    for wanted in ["pkg:cargo/aya@", "pkg:cargo/tokio@", "pkg:npm/preact@"] {
        let is_there = components.iter().any(|part| {
            part["purl"]
                .as_str()
                .is_some_and(|purl| purl.starts_with(wanted))
        });
        if !is_there {
            found.push(format!("{wanted} is missing"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_without_one_side_is_refused() {
        let part = |purl: &str| json!({ "name": "a", "version": "1", "purl": purl });
        let mut bom =
            json!({ "components": [part("pkg:cargo/aya@0.14.0"), part("pkg:cargo/tokio@1.0.0")] });
        assert_eq!(problems(&bom), ["pkg:npm/preact@ is missing"]);
        append(&mut bom, "components", vec![part("pkg:npm/preact@10.0.0")]).unwrap();
        assert_eq!(problems(&bom), [""; 0]);
        append(&mut bom, "components", vec![json!({ "name": "b" })]).unwrap();
        assert_eq!(problems(&bom).len(), 1);
    }
}
