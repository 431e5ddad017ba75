//! Helm, which renders the chart in tests, built from the Go module proxy by a Go of the same place.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{exec, pins, stamp::Stamp, workspace::Workspace};

/// Leaves target/tools/helm-VERSION/helm.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.tools.join(format!("helm-{}", pins::HELM));
    let program = folder.join("helm");
    let stamp = Stamp::new(folder.join("stamp"), pins::HELM, pins::GO.sha256);
    if stamp.is_fresh() && program.exists() {
        return Ok(program);
    }
    let go = go(workspace)?;
    let modules = workspace.target.join("go");
    let mut install = Command::new(&go);
    install
        .args(["install", "-trimpath", "-ldflags=-s -w"])
        .arg(format!("helm.sh/helm/v3/cmd/helm@v{}", pins::HELM))
        .env("GOBIN", &folder)
        .env("GOPATH", &modules)
        .env("GOCACHE", modules.join("cache"))
        // The checksum database vouches for each module; no other Go is fetched.
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-modcacherw")
        .env("CGO_ENABLED", "0");
    exec::to_log(&mut install, &workspace.logs().join("helm.log"))?;
    // Half a gigabyte that nobody needs again.
    fs::remove_dir_all(&modules).with_context(|| format!("remove {}", modules.display()))?;
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

/// Leaves target/tools/go-VERSION; its `go`.
fn go(workspace: &Workspace) -> Result<PathBuf> {
    let pins::Go { version, sha256 } = pins::GO;
    let folder = workspace.tools.join(format!("go-{version}"));
    let name = format!("golang.org/toolchain@v0.0.1-go{version}.linux-amd64");
    let program = folder.join(&name).join("bin/go");
    let stamp = Stamp::new(folder.join("stamp"), version, sha256);
    if stamp.is_fresh() && program.exists() {
        return Ok(program);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let url = format!(
        "https://proxy.golang.org/golang.org/toolchain/@v/v0.0.1-go{version}.linux-amd64.zip"
    );
    let mut fetch = Command::new("python3");
    fetch.args(["-c", FETCH, &url, sha256]).current_dir(&folder);
    exec::to_log(&mut fetch, &workspace.logs().join("go.log"))?;
    stamp.write()?;
    Ok(program)
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
