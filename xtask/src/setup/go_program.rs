//! Programs of our own that only tests and benches use, built with modules of the Go module proxy.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use super::{go, kept};
use crate::{
    exec,
    pins::{self, GoProgram},
    progress::Outcome,
    stamp::{self, Stamp},
    workspace::Workspace,
};

pub(crate) fn label(program: &GoProgram) -> String {
    format!("{} {}", program.name, program.version)
}

/// Leaves the program in `target/tools/NAME-VERSION`. Its source is in tests/workloads.
pub(crate) fn ensure(workspace: &Workspace, program: &GoProgram) -> Result<Outcome> {
    let GoProgram {
        name,
        version,
        program,
        modules,
        sums,
    } = *program;
    let source = format!("{program}.go");
    let path = workspace.root.join("tests/workloads").join(&source);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let folder = workspace.tools.join(format!("{name}-{version}"));
    let files = [
        ("go.mod", Some(modules)),
        ("go.sum", sums),
        (&*source, Some(&*text)),
    ];
    let files: Vec<(&str, &str)> = files
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)))
        .collect();
    let hashes: Vec<String> = files
        .iter()
        .map(|(_, text)| stamp::text_hash(text))
        .collect();
    let inputs = format!("{} {}", hashes.join(" "), pins::GO.sha256);
    let stamp = Stamp::new(folder.join("stamp"), version, &inputs);
    kept::ensure(&folder, &stamp, || {
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        for (name, text) in &files {
            let path: PathBuf = folder.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        let build = go::Build::begin(workspace)?;
        let mut compile = build.command("build", "");
        // Without sums: what these modules require in turn follows from them, and is added to the files.
        let reading = if sums.is_some() {
            "-mod=readonly"
        } else {
            "-mod=mod"
        };
        compile
            .args([reading, "-o", program, &source])
            .current_dir(&folder);
        exec::download(&mut compile, &workspace.logs().join(format!("{name}.log")))
    })
}

#[cfg(test)]
mod tests {
    use crate::pins::{ALS_COLLECTOR, GRPC_GO};

    #[test]
    fn the_modules_are_of_the_versions_that_are_pinned() {
        for (program, module) in [
            (GRPC_GO, "google.golang.org/grpc"),
            (
                ALS_COLLECTOR,
                "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/envoyalsreceiver",
            ),
        ] {
            let required = format!("{module} v{}", program.version);
            let mut lines = program.modules.lines().map(str::trim);
            assert!(lines.any(|line| line == required), "{required}");
        }
    }
}
