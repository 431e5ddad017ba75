//! cargo-deny, asked about the workspace as it is and as it must not become.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::{exec, setup, workspace::Workspace};

/// What cargo-deny only warns about: entries of deny.toml that stand for nothing any more.
const STALE: [&str; 7] = [
    "advisory-not-detected",
    "license-not-encountered",
    "license-exception-not-encountered",
    "unmatched-skip",
    "unnecessary-skip",
    "unmatched-source",
    "index-failure",
];

/// A line of cargo-deny's output.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    fields: Fields,
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    code: String,
    #[serde(default)]
    severity: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    graphs: Vec<Graph>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct Label {
    #[serde(default)]
    span: String,
}

/// The dependents of the crate; the crate itself is the first.
#[derive(Deserialize)]
struct Graph {
    #[serde(rename = "Krate")]
    part: Option<GraphPart>,
}

#[derive(Deserialize)]
struct GraphPart {
    name: String,
    version: String,
}

/// Something that cargo-deny found wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Its word for the kind: `vulnerability`, `rejected`, `duplicate`, ...
    pub(super) code: String,
    /// The rest, with the names of crates.
    pub(super) text: String,
}

/// cargo-deny with the database of advisories, and what it is asked about.
pub(super) struct Deny<'a> {
    workspace: &'a Workspace,
    scratch: PathBuf,
    /// As cargo describes the workspace.
    pub(super) metadata: Value,
}

impl<'a> Deny<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Result<Self> {
        let scratch = workspace.target.join("supply-chain");
        fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
        let mut metadata = exec::cargo(&workspace.root);
        metadata.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
        let text = exec::output(&mut metadata)?;
        let metadata = serde_json::from_str(&text).context("read cargo's metadata")?;
        Ok(Self {
            workspace,
            scratch,
            metadata,
        })
    }

    /// Asks about the workspace as it is.
    pub(super) fn accepts(&self) -> Result<String> {
        let found = self.check(&self.metadata)?;
        let found: Vec<String> = found
            .into_iter()
            .map(|finding| format!("{}: {}", finding.code, finding.text))
            .collect();
        ensure!(
            found.is_empty(),
            "cargo-deny: {}; what each word means, and what may be entered in deny.toml: \
             https://embarkstudios.github.io/cargo-deny/",
            found.join("\n  ")
        );
        let crates = self.metadata["packages"].as_array().map_or(0, Vec::len);
        Ok(format!("cargo-deny accepts {crates} crates"))
    }

    /// What is wrong with a workspace of this description.
    pub(super) fn check(&self, metadata: &Value) -> Result<Vec<Finding>> {
        let description = self.scratch.join("metadata.json");
        fs::write(&description, metadata.to_string())
            .with_context(|| format!("write {}", description.display()))?;
        let mut command = Command::new(setup::cargo_deny_path(self.workspace));
        command
            .args(["--offline", "--format", "json", "--config"])
            .arg(self.workspace.root.join("deny.toml"))
            .arg("--metadata-path")
            .arg(&description)
            .arg("check")
            // Paths in deny.toml begin here.
            .current_dir(&self.workspace.root)
            .stdin(Stdio::null());
        let output = command.output().context("start cargo-deny")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let found = findings(&said)?;
        ensure!(
            output.status.success() || !found.is_empty(),
            "cargo-deny: {}: {}",
            output.status,
            said.trim()
        );
        Ok(found)
    }
}

/// Errors, and warnings about entries of deny.toml.
fn findings(output: &str) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for line in output.lines().filter(|line| line.starts_with('{')) {
        let line: Line =
            serde_json::from_str(line).with_context(|| format!("cargo-deny wrote {line}"))?;
        let Fields {
            code,
            severity,
            message,
            labels,
            graphs,
            notes,
        } = line.fields;
        let counts = severity == "error" || STALE.contains(&code.as_str());
        if line.kind != "diagnostic" || !counts {
            continue;
        }
        let mut words = vec![message];
        words.extend(labels.into_iter().map(|label| label.span));
        words.extend(graphs.into_iter().filter_map(|graph| {
            let GraphPart { name, version } = graph.part?;
            Some(format!("{name} {version}"))
        }));
        // The others explain.
        words.extend(notes.into_iter().take(2));
        words.retain(|word| !word.is_empty());
        found.push(Finding {
            code,
            text: words.join(", "),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_stale_entries_are_findings() {
        let output = r#"{"fields":{"code":"vulnerability","severity":"error","message":"bad","labels":[{"span":"slab 0.4.10 registry+x"}],"graphs":[{"Krate":{"name":"slab","version":"0.4.10"}}],"notes":["ID: RUSTSEC-2025-0047"]},"type":"diagnostic"}
{"fields":{"code":"unnecessary-skip","severity":"warning","message":"skip"},"type":"diagnostic"}
{"fields":{"code":"unmaintained","severity":"note","message":"n"},"type":"diagnostic"}
{"type":"log","fields":{"severity":"ERROR","message":"no database"}}
{"type":"summary","fields":{"advisories":{"errors":1}}}"#;
        let found = findings(output).unwrap();
        let codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["vulnerability", "unnecessary-skip"]);
        assert_eq!(
            found[0].text,
            "bad, slab 0.4.10 registry+x, slab 0.4.10, ID: RUSTSEC-2025-0047"
        );
        assert!(findings("{").is_err());
    }
}
