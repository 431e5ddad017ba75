//! The API server of Kubernetes and the store behind it, which only tests use, built from the Go module proxy.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{go, kept};
use crate::{
    exec,
    pins::{self, KUBERNETES},
    progress::Outcome,
    stamp::{self, Stamp},
    workspace::Workspace,
};

/// The package of the API server, and where its version is written into it.
const API_SERVER: &str = "k8s.io/kubernetes/cmd/kube-apiserver";
const VERSION: &str = "k8s.io/component-base/version";
/// Go names the program of etcd's package after its folder.
const ETCD: &str = "go.etcd.io/etcd/server/v3";
const ETCD_BUILT: &str = "server";

pub(crate) fn label() -> String {
    format!(
        "kube-apiserver {} with etcd {}",
        KUBERNETES.version, KUBERNETES.etcd
    )
}

/// Leaves target/tools/kubernetes-VERSION/kube-apiserver and etcd. Six minutes of CPU time.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace
        .tools
        .join(format!("kubernetes-{}", KUBERNETES.version));
    let [api_server, etcd] = ["kube-apiserver", "etcd"].map(|name| folder.join(name));
    let inputs = format!(
        "{} {}",
        stamp::text_hash(KUBERNETES.modules),
        pins::GO.sha256
    );
    let stamp = Stamp::new(folder.join("stamp"), KUBERNETES.version, &inputs);
    kept::ensure(&folder, &stamp, || {
        build(workspace, &folder)?;
        fs::rename(folder.join(ETCD_BUILT), &etcd).context("find etcd where Go puts it")?;
        says(&api_server, &format!("v{}", KUBERNETES.version))?;
        says(&etcd, &format!("etcd Version: {}", KUBERNETES.etcd))
    })
}

fn build(workspace: &Workspace, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let modules = folder.join("go.mod");
    fs::write(&modules, KUBERNETES.modules)
        .with_context(|| format!("write {}", modules.display()))?;
    let mut parts = KUBERNETES.version.split('.');
    let (major, minor) = parts.next().zip(parts.next()).context("its version")?;
    let version = format!(
        "-X {VERSION}.gitVersion=v{} -X {VERSION}.gitMajor={major} -X {VERSION}.gitMinor={minor}",
        KUBERNETES.version
    );
    let build = go::Build::begin(workspace)?;
    let mut compile = build.command("build", &version);
    // What these modules require in turn follows from them, and is added to the file.
    compile
        .args(["-mod=mod", "-o"])
        .arg(format!("{}/", folder.display()))
        .args([API_SERVER, ETCD])
        .current_dir(folder);
    exec::download(&mut compile, &workspace.logs().join("kubernetes.log"))
}

fn says(program: &Path, version: &str) -> Result<()> {
    let said = exec::output(Command::new(program).arg("--version"))?;
    ensure!(
        said.contains(version),
        "{} says it is {}",
        program.display(),
        said.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_are_of_the_versions_that_are_pinned() {
        let lines: Vec<&str> = KUBERNETES.modules.lines().map(str::trim).collect();
        let required =
            |module: &str, version: &str| lines.contains(&&*format!("{module} v{version}"));
        assert!(required("k8s.io/kubernetes", KUBERNETES.version));
        assert!(required(ETCD, KUBERNETES.etcd));
        // Modules of one release have its number with another beginning.
        let (_, number) = KUBERNETES.version.split_once('.').unwrap();
        let replaced: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split_once(" => ").map(|(_, with)| with))
            .collect();
        assert!(!replaced.is_empty());
        for module in replaced {
            assert!(module.ends_with(&format!(" v0.{number}")), "{module}");
        }
    }
}
