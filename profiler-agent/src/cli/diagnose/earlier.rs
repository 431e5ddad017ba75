//! `--compare`: what is compared of a document that `diagnose --json` or the API wrote earlier.

use std::{fs::File, io::Read as _, path::Path};

use anyhow::{Context as _, Result, ensure};
use profiler_analysis::comparison::{Side, SideProcess, SideRow, Which, check_samples};
use profiler_host::process::accounting::cpu_time;
use profiler_model::{
    comparison::FindingName,
    diagnosis::{Diagnosis, Estimate, Measurement},
    latency::Latency,
    printable::printable,
};
use serde::Deserialize;

/// Largest document that is read; one has some hundred kilobytes.
const LIMIT: u64 = 64 << 20;
/// What documents of all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Deserialize)]
struct Document {
    coverage: Coverage,
    totals: Totals,
    matrix: Matrix,
    findings: Vec<Titled>,
    processes: Vec<Process>,
    #[serde(default)]
    other_processes: Vec<Process>,
    #[serde(default)]
    latency: Vec<Latency>,
    /// Missing in documents of earlier versions.
    not_measured: Option<Vec<Measurement>>,
}

#[derive(Debug, Deserialize)]
struct Process {
    pid: u32,
    /// Missing in documents made by hand.
    #[serde(default)]
    start_ticks: u64,
    comm: String,
    exe: String,
    rule_set: String,
    share_percent: f64,
}

#[derive(Deserialize)]
struct Coverage {
    samples: u64,
}

#[derive(Deserialize)]
struct Totals {
    cpu_cores: Option<f64>,
    cpu_us_per_request: Option<Estimate>,
}

#[derive(Deserialize)]
struct Matrix {
    features: Vec<Titled>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    feature: String,
    samples: u64,
    share_percent: f64,
    low: f64,
    high: f64,
}

/// A feature or a finding.
#[derive(Deserialize)]
struct Titled {
    id: String,
    title: String,
}

/// An earlier diagnosis, and a word about it where it is not of what is diagnosed now.
#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) side: Side,
    processes: Vec<Process>,
}

impl Earlier {
    /// A process of it that still runs and was not looked at now: two processes are compared, not one before and after.
    pub(super) fn other(&self, now: &Diagnosis) -> Option<String> {
        let runs = |Process {
                        pid, start_ticks, ..
                    }: &&Process| {
            cpu_time(*pid).is_ok_and(|time| time.start_ticks == *start_ticks)
        };
        let other = self.processes.iter().find(runs)?;
        let mut seen = now.processes.iter().chain(&now.other_processes);
        let is_seen = seen.any(|process| process.pid == other.pid);
        (!is_seen).then(|| {
            format!(
                "{} ({}), which still runs",
                printable(&other.comm),
                other.pid
            )
        })
    }
}

/// Reads a document from a file.
pub(super) fn read(path: &Path) -> Result<Earlier> {
    let said = || format!("--compare {}", path.display());
    let file = File::open(path).with_context(said)?;
    let mut text = String::new();
    file.take(LIMIT + 1)
        .read_to_string(&mut text)
        .with_context(said)?;
    ensure!(
        text.len() as u64 <= LIMIT,
        "{}: it has more than {LIMIT} bytes",
        said()
    );
    let earlier = parse(&text).with_context(said)?;
    check_samples(Which::Earlier, &earlier.side).with_context(said)?;
    Ok(earlier)
}

fn parse(text: &str) -> Result<Earlier> {
    let other = "is not a diagnosis, as `diagnose --json` and the API write them";
    let Versioned { version } = serde_json::from_str(text).context(other)?;
    ensure!(
        version == Diagnosis::VERSION,
        "the document has version {version}, and this program knows {}: diagnose again with one \
         program",
        Diagnosis::VERSION
    );
    let document: Document = serde_json::from_str(text).context(other)?;
    let Document {
        coverage,
        totals,
        matrix,
        findings,
        processes,
        other_processes,
        latency,
        not_measured,
    } = document;
    let side = Side {
        samples: coverage.samples,
        cpu_cores: totals.cpu_cores,
        cpu_us_per_request: totals.cpu_us_per_request,
        rows: rows_of(matrix),
        findings: findings
            .into_iter()
            .map(|Titled { id, title }| FindingName { id, title })
            .collect(),
        processes: processes.iter().map(named).collect(),
        other_processes: other_processes.iter().map(named).collect(),
        latency: Side::latency_of(&latency),
        not_measured,
    };
    Ok(Earlier { side, processes })
}

fn named(process: &Process) -> SideProcess {
    let Process {
        comm,
        exe,
        rule_set,
        share_percent,
        ..
    } = process;
    SideProcess::named(comm, exe, rule_set, *share_percent)
}

fn rows_of(matrix: Matrix) -> Vec<SideRow> {
    let Matrix { features, rows } = matrix;
    let title = |id: &str| {
        let found = features.iter().find(|feature| feature.id == id);
        found.map_or_else(|| id.to_owned(), |feature| feature.title.clone())
    };
    let rows = rows.into_iter().map(|row| SideRow {
        title: title(&row.feature),
        samples: row.samples,
        share: Estimate {
            value: row.share_percent,
            low: row.low,
            high: row.high,
        },
        feature: row.feature,
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"version":1,"verdict":"x","coverage":{"samples":1000,"named_percent":90},
        "totals":{"cpu_cores":0.5,"cpu_us_per_request":{"value":50,"low":49.0,"high":51.5}},
        "matrix":{"features":[{"id":"lua","title":"Lua","about":"","settings":true}],"mechanisms":[],"cells":[],
            "rows":[{"feature":"lua","samples":100,"share_percent":10.0,"low":9.0,"high":11.0}]},
        "findings":[{"id":"lua","title":"Lua runs","severity":"low"}],
        "processes":[{"pid":7,"comm":"wrk:main","exe":"/usr/bin/envoy","rule_set":"envoy","share_percent":100.0}]}"#;

    #[test]
    fn what_is_compared_is_read() {
        let side = parse(DOCUMENT).unwrap().side;
        assert_eq!((side.samples, side.cpu_cores), (1000, Some(0.5)));
        assert_eq!(
            (side.rows[0].title.as_str(), side.rows[0].samples),
            ("Lua", 100)
        );
        assert!((side.rows[0].share.high - 11.0).abs() < 1e-9);
        assert_eq!(side.findings[0].id, "lua");
        assert_eq!(side.processes[0].program, "envoy");
        assert_eq!(side.not_measured, None);
        let newer = DOCUMENT.replace("\"findings\"", "\"not_measured\":[\"waits\"],\"findings\"");
        assert_eq!(
            parse(&newer).unwrap().side.not_measured,
            Some(vec![profiler_model::diagnosis::Measurement::Waits])
        );
        let unknown = DOCUMENT.replace("\"cpu_cores\":0.5", "\"cpu_cores\":null");
        assert_eq!(parse(&unknown).unwrap().side.cpu_cores, None);
    }

    #[test]
    fn other_files_are_refused_with_what_is_wrong() {
        for (text, wanted) in [
            (r#"{"version":2}"#.to_owned(), "version 2"),
            ("{}".to_owned(), "is not a diagnosis"),
            ("not json".to_owned(), "is not a diagnosis"),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(wanted), "{error}");
        }
        let missing = read(Path::new("/nonexistent/old.json")).unwrap_err();
        assert!(format!("{missing:#}").contains("--compare /nonexistent/old.json"));
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("old.json");
        std::fs::write(
            &empty,
            DOCUMENT.replace("{\"samples\":1000", "{\"samples\":0"),
        )
        .unwrap();
        let error = format!("{:#}", read(&empty).unwrap_err());
        assert!(error.contains("has 0 samples"), "{error}");
    }
}
