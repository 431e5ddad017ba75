//! A run of Schemathesis against an agent: its configuration, and what it found.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::results::Results;
use crate::{api::Api, paths, process::Launch};

/// Beyond its own limit: it starts, ends its last case and writes its report, on a busy machine.
const MARGIN: Duration = Duration::from_mins(2);
/// Exit statuses of a run: nothing found, something found.
const ENDED: [i32; 2] = [0, 1];
/// How much of its own account of failures is shown.
const SHOWN_BYTES: usize = 12_000;
/// What names no edge, where there is none.
const NO_EDGE: &str = "0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    WithToken,
    WithoutToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phases {
    /// Each parameter at its limits and beyond; the same in each run.
    Coverage,
    /// By the seed, also one request with what another has answered.
    Random,
}

impl Phases {
    fn names(self) -> &'static str {
        match self {
            Self::Coverage => "coverage",
            Self::Random => "fuzzing,stateful",
        }
    }
}

/// One run.
pub(super) struct Run<'a> {
    pub(super) api: &'a Api,
    /// Where its folder is made.
    pub(super) folder: &'a Path,
    pub(super) document: &'a Value,
    pub(super) results: &'a Results,
    /// Process that tasks look at.
    pub(super) target: u32,
    pub(super) seed: u32,
    pub(super) asking: Asking,
    pub(super) phases: Phases,
    pub(super) length: Duration,
}

pub(super) struct Answered {
    pub(super) requests: u64,
    pub(super) operations: u64,
    pub(super) faults: Vec<String>,
    /// For people who wait.
    pub(super) line: String,
}

/// Its JSON report, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Report {
    operations: Option<Operations>,
    test_cases: Cases,
    failures: Vec<Failure>,
    errors: Vec<Trouble>,
}

#[derive(Debug, Deserialize)]
struct Operations {
    total: u64,
}

#[derive(Debug, Deserialize)]
struct Cases {
    generated: u64,
}

#[derive(Debug, Deserialize)]
struct Failure {
    code: String,
    title: String,
    count: u64,
    operations: Vec<String>,
}

/// What kept it from asking.
#[derive(Debug, Deserialize)]
struct Trouble {
    title: String,
    count: u64,
}

impl Run<'_> {
    /// Runs it in a folder of its own.
    pub(super) fn finish(&self, number: u32) -> Result<Answered> {
        let folder = self.folder.join(format!("schemathesis-{number}"));
        fs::create_dir(&folder).with_context(|| format!("create {}", folder.display()))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        write("openapi.json", &self.document.to_string())?;
        write("schemathesis.toml", &self.configuration()?)?;
        let output = self.start_and_wait(&folder)?;
        let report = folder.join("report.json");
        let text =
            fs::read(&report).with_context(|| format!("read {}: {output}", report.display()))?;
        let report: Report =
            serde_json::from_slice(&text).with_context(|| format!("parse {}", report.display()))?;
        Ok(self.answered(&report, &output))
    }

    fn start_and_wait(&self, folder: &Path) -> Result<String> {
        let tool = paths::tool("schemathesis-")?;
        // What it compiles lies beside and not in it: its files are checked by their hashes.
        let compiled = paths::workspace().join("target/python-cache");
        let mut python = Launch::new(Path::new("python3"), "schemathesis", folder)
            .args([
                "-m",
                "schemathesis.cli",
                "run",
                "openapi.json",
                "--no-color",
            ])
            .args(["--phases", self.phases.names()])
            .env("PYTHONPATH", &tool.to_string_lossy())
            .env("PYTHONPYCACHEPREFIX", &compiled.to_string_lossy())
            .env("API_FUZZ_TARGET", &self.target.to_string())
            .current_dir(folder)
            .start()?;
        let status = python.wait(self.length + MARGIN)?;
        let output = python.output();
        ensure!(
            status.code().is_some_and(|code| ENDED.contains(&code)),
            "Schemathesis ended with {status}: {output}{}",
            python.errors()
        );
        Ok(output)
    }

    /// As TOML, of which a JSON string is one.
    fn configuration(&self) -> Result<String> {
        let mut text = format!(
            "seed = {}\nmax-time = {}\nbase-url = \"http://{}\"\nhooks = {}\n",
            self.seed,
            self.length.as_secs().max(1),
            self.api.address,
            json!(checks().to_string_lossy()),
        );
        if self.asking == Asking::WithToken {
            let token = self.api.token.as_deref();
            let token = token.context("the agent has no token")?;
            writeln!(text, "headers = {{ Authorization = \"Bearer {token}\" }}")?;
        }
        text += SETTINGS;
        // Without a token the refusal of the method is never reached.
        let methods = self.asking == Asking::WithToken;
        writeln!(text, "unsupported_method.enabled = {methods}")?;
        text += REPORT;
        self.dictionaries(&mut text)?;
        Ok(text)
    }

    /// Ids that exist; made-up ones alone would never get to a result.
    fn dictionaries(&self, text: &mut String) -> Result<()> {
        let Results {
            tasks,
            checkups,
            processes,
            edges,
        } = self.results;
        let no_edge = [NO_EDGE.to_owned()];
        let edges: &[String] = if edges.is_empty() { &no_edge } else { edges };
        for (name, values) in [
            ("tasks", tasks.as_slice()),
            ("checkups", checkups),
            ("processes", processes),
            ("edges", edges),
        ] {
            writeln!(text, "\n[dictionaries.{name}]\nvalues = {}", json!(values))?;
        }
        for (paths, parameters) in NAMED {
            let bindings: Vec<String> = parameters
                .iter()
                .map(|(parameter, name)| {
                    format!(
                        "{} = {{ dictionary = \"{name}\", probability = 0.8 }}",
                        json!(parameter)
                    )
                })
                .collect();
            writeln!(
                text,
                // Deleted ones would be missing for the rest of the run.
                "\n[[operations]]\ninclude-path-regex = {}\nexclude-method = \"DELETE\"\nparameters = {{ {} }}",
                json!(paths),
                bindings.join(", ")
            )?;
        }
        Ok(())
    }

    fn answered(&self, report: &Report, output: &str) -> Answered {
        let Self {
            seed,
            asking,
            phases,
            length,
            ..
        } = self;
        let run = format!(
            "{asking:?}, {phases:?}, {} s, seed {seed}",
            length.as_secs()
        );
        let mut faults: Vec<String> = Vec::new();
        for Failure {
            code,
            title,
            count,
            operations,
        } in &report.failures
        {
            faults.push(format!(
                "{run}: {count} times {code} {title}: {}",
                operations.join(", ")
            ));
        }
        for Trouble { title, count } in &report.errors {
            faults.push(format!("{run}: {count} times {title}"));
        }
        if !faults.is_empty() {
            faults.push(format!("{run}:\n{}", account(output)));
        }
        let requests = report.test_cases.generated;
        Answered {
            requests,
            operations: report.operations.as_ref().map_or(0, |all| all.total),
            line: format!("{run}: {requests} requests, {} faults", faults.len()),
            faults,
        }
    }
}

/// Where the checks are.
fn checks() -> PathBuf {
    paths::workspace().join("tests/fixtures/api_fuzz/api_fuzz_checks.py")
}

/// The part of its output that tells of errors and failures, of bounded length.
fn account(output: &str) -> &str {
    let begin = [" ERRORS =", " FAILURES ="]
        .iter()
        .filter_map(|title| output.find(title))
        .min();
    let text = output.get(begin.unwrap_or(0)..).unwrap_or(output);
    let end = text.find(" SUMMARY =").unwrap_or(text.len());
    &text[..text.floor_char_boundary(end.min(SHOWN_BYTES))]
}

/// Paths whose parameters name something that exists.
const NAMED: [(&str, &[(&str, &str)]); 7] = [
    (
        "^/api/v1/tasks/[{]id[}]($|/[a-z-]+$|/edges/events$)",
        &[("path.id", "tasks")],
    ),
    (
        "^/api/v1/tasks/[{]id[}]/edges/[{]edge[}]/",
        &[("path.id", "tasks"), ("path.edge", "edges")],
    ),
    (
        "^/api/v1/network/edges/[{]edge[}]/",
        &[("path.edge", "edges")],
    ),
    ("^/api/v1/checkups/[{]id[}]", &[("path.id", "checkups")]),
    ("^/api/v1/processes/[{]id[}]", &[("path.id", "processes")]),
    (
        "^/api/v1/diff$",
        &[("query.a", "tasks"), ("query.b", "tasks")],
    ),
    (
        "^/api/v1/checkups/compare$",
        &[("query.a", "checkups"), ("query.b", "checkups")],
    ),
];

/// One worker, so that a seed repeats a run as far as the agent's state allows. Streams of events are read up to the first
/// event. Tokens are tried by our own requests; what an unknown token is refused with depends on how many there were.
const SETTINGS: &str = r#"
workers = 1
continue-on-failure = true
request-timeout = 20
max-stream-events = 1
max-redirects = 0
warnings = false
suppress-health-check = ["all"]

[cache]
enabled = false

[generation]
with-security-parameters = false
database = "none"
no-shrink = true

[[operations]]
include-path-regex = "/events$"
request-timeout = 1

[checks]
enabled = false
status_code_conformance.enabled = true
content_type_conformance.enabled = true
response_headers_conformance.enabled = true
response_schema_conformance.enabled = true
server_error_is_meant.enabled = true
refusal_says_why.enabled = true
"#;

const REPORT: &str = r#"
[reports]
json.enabled = true
json.path = "report.json"
"#;
