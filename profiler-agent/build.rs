//! Tells the crate where the built UI is, and which revision it is built from; compresses the OpenAPI document. Writes to `OUT_DIR` only.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};

const STUB_PAGE: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>profiler-agent: UI not built</title></head>
<body>
<h1>The web UI is not part of this build</h1>
<p>The agent was built without <code>web/dist</code>. Its API works as usual.</p>
<p>To build the UI and the agent together run <code>cargo xtask build</code> (needs Node 20).</p>
</body>
</html>
";

fn main() -> Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .parent()
        .context("the agent's folder has no parent")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    ui(root, &out)?;
    openapi(root, &out)?;
    git_revision(root);
    println!("cargo:rustc-env=PROFILER_TARGET={}", env::var("TARGET")?);
    Ok(())
}

/// Points `PROFILER_UI_DIST` at the built UI, or at a page that says how to build it.
fn ui(root: &Path, out: &Path) -> Result<()> {
    let built = root.join("web/dist");
    let dist = if built.join("index.html").is_file() {
        println!("cargo:rustc-env=PROFILER_UI=embedded");
        built.clone()
    } else {
        println!("cargo:rustc-env=PROFILER_UI=left out");
        let stub = out.join("ui-stub");
        fs::create_dir_all(&stub).with_context(|| format!("create {}", stub.display()))?;
        let page = stub.join("index.html");
        fs::write(&page, STUB_PAGE).with_context(|| format!("write {}", page.display()))?;
        stub
    };
    // A watched path that does not exist makes cargo run this script each time, so the folder
    // itself is watched only when it is there; its parent tells when it appears.
    let watched = [built, root.join("web"), root.to_path_buf()];
    if let Some(path) = watched
        .iter()
        .find(|path| path.exists())
        .filter(|path| *path != root)
    {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=PROFILER_UI_DIST={}", dist.display());
    Ok(())
}

/// Compresses the OpenAPI document for the program.
fn openapi(root: &Path, out: &Path) -> Result<()> {
    let path = root.join("docs/http-api.json");
    println!("cargo:rerun-if-changed={}", path.display());
    let document = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(&document)?;
    let path = out.join("http-api.json.gz");
    fs::write(&path, compressed.finish()?).with_context(|| format!("write {}", path.display()))
}

/// Sets `PROFILER_GIT_REVISION` from the files of the repository, without running git.
fn git_revision(root: &Path) {
    let revision = read_revision(&root.join(".git")).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=PROFILER_GIT_REVISION={revision}");
}

/// The commit that HEAD points to; `None` outside a repository or when its files are odd.
fn read_revision(dot_git: &Path) -> Option<String> {
    // In a linked work tree `.git` is a file that names the real folder.
    let git_dir = if dot_git.is_file() {
        let text = fs::read_to_string(dot_git).ok()?;
        dot_git
            .parent()?
            .join(text.trim().strip_prefix("gitdir: ")?)
    } else {
        dot_git.to_path_buf()
    };
    let common = fs::read_to_string(git_dir.join("commondir"))
        .map_or_else(|_| git_dir.clone(), |text| git_dir.join(text.trim()));
    let head = watched_text(&git_dir.join("HEAD"))?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return as_commit(&head);
    };
    if let Some(text) = watched_text(&common.join(reference)) {
        return as_commit(&text);
    }
    let packed = watched_text(&common.join("packed-refs"))?;
    let line = packed
        .lines()
        .find(|line| line.ends_with(&format!(" {reference}")))?;
    as_commit(line.split_once(' ')?.0)
}

fn watched_text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}

fn as_commit(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hash = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}
