//! A server and a client of grpc-go, which only tests use, built from the Go module proxy.

use std::fs;

use anyhow::{Context as _, Result};

use super::{go, kept};
use crate::{
    exec,
    pins::{self, GRPC_GO},
    progress::Outcome,
    stamp::{self, Stamp},
    workspace::Workspace,
};

/// Their source, in tests/workloads.
const SOURCE: &str = "grpc_peer.go";

pub(crate) fn label() -> String {
    format!("grpc-go {}", GRPC_GO.version)
}

/// Leaves `target/tools/grpc-go-VERSION/grpc_peer`.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Outcome> {
    let source = workspace.root.join("tests/workloads").join(SOURCE);
    let text = fs::read_to_string(&source).with_context(|| format!("read {}", source.display()))?;
    let folder = workspace.tools.join(format!("grpc-go-{}", GRPC_GO.version));
    let hashes = [GRPC_GO.modules, &text].map(stamp::text_hash);
    let inputs = format!("{} {}", hashes.join(" "), pins::GO.sha256);
    let stamp = Stamp::new(folder.join("stamp"), GRPC_GO.version, &inputs);
    kept::ensure(&folder, &stamp, || {
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        for (name, text) in [("go.mod", GRPC_GO.modules), (SOURCE, &text)] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        let build = go::Build::begin(workspace)?;
        let mut compile = build.command("build", "");
        // What these modules require in turn follows from them, and is added to the file.
        compile
            .args(["-mod=mod", "-o", "grpc_peer", SOURCE])
            .current_dir(&folder);
        exec::download(&mut compile, &workspace.logs().join("grpc-go.log"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_of_the_version_that_is_pinned() {
        let required = format!("google.golang.org/grpc v{}", GRPC_GO.version);
        let mut lines = GRPC_GO.modules.lines().map(str::trim);
        assert!(lines.any(|line| line == required));
    }
}
