//! Programs from the Go module proxy, built by a Go of the same place.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{exec, pins, stamp::Stamp, workspace::Workspace};

/// A Go with caches of its own until the set-up is over: gigabytes that are not needed again.
#[derive(Debug)]
pub(super) struct Build {
    go: PathBuf,
    modules: PathBuf,
}

impl Build {
    pub(super) fn begin(workspace: &Workspace) -> Result<Self> {
        Ok(Self {
            go: toolchain(workspace)?,
            modules: modules(workspace),
        })
    }

    /// `go`, which leaves small programs that need no libraries.
    pub(super) fn command(&self, verb: &str, linker_flags: &str) -> Command {
        let mut command = Command::new(&self.go);
        command
            .args([verb, "-trimpath"])
            .arg(format!("-ldflags=-s -w {linker_flags}"))
            .env("GOPATH", &self.modules)
            .env("GOCACHE", self.modules.join("cache"))
            // The checksum database vouches for each module; no other Go is fetched.
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-modcacherw")
            .env("CGO_ENABLED", "0");
        command
    }
}

/// Leaves target/tools/go-VERSION; its `go`.
fn toolchain(workspace: &Workspace) -> Result<PathBuf> {
    let pins::Go { version, sha256 } = pins::GO;
    let folder = workspace.tools.join(format!("go-{version}"));
    let name = format!("golang.org/toolchain@v0.0.1-go{version}.linux-amd64");
    let program = folder.join(&name).join("bin/go");
    let stamp = Stamp::new(folder.join("stamp"), version, sha256);
    if stamp.is_fresh() && program.exists() {
        return Ok(program);
    }
    if folder.exists() {
        remove(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let url = format!(
        "https://proxy.golang.org/golang.org/toolchain/@v/v0.0.1-go{version}.linux-amd64.zip"
    );
    let mut fetch = Command::new("python3");
    fetch.args(["-c", FETCH, &url, sha256]).current_dir(&folder);
    exec::download(&mut fetch, &workspace.logs().join("go.log"))?;
    stamp.write()?;
    Ok(program)
}

/// Removes the caches of all builds.
pub(super) fn clean(workspace: &Workspace) -> Result<()> {
    let modules = modules(workspace);
    if modules.exists() {
        remove(&modules)?;
    }
    Ok(())
}

fn modules(workspace: &Workspace) -> PathBuf {
    workspace.target.join("go")
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))
}

/// Downloads, compares the hash, unpacks with the programs executable.
const FETCH: &str = r#"
import hashlib, os, sys, urllib.request, zipfile
url, expected = sys.argv[1:]
digest = hashlib.sha256()
with urllib.request.urlopen(url, timeout=60) as source, open("go.zip", "wb") as file:
    while block := source.read(1 << 20):
        digest.update(block)
        file.write(block)
if digest.hexdigest() != expected:
    sys.exit(f"{url} has the SHA-256 {digest.hexdigest()}, not {expected}")
zipfile.ZipFile("go.zip").extractall()
os.remove("go.zip")
for folder, _, files in os.walk("."):
    if folder.endswith("/bin") or "/pkg/tool/" in folder:
        for file in files:
            os.chmod(os.path.join(folder, file), 0o755)
"#;
