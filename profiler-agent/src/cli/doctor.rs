//! `doctor`: what this kernel and these privileges allow, and what to do about the rest.

use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{access_logs, doctor_process};
use crate::{
    config::cli::DoctorArgs,
    terminal::{self, Text},
};
use profiler_analysis::render::AccessLogCheck;
use profiler_clock::wall_ns;
use profiler_recorder::{
    bpf::{self, Group, MapReport, ProgramReport, ProgramRow, network_programs},
    features::{self, Feature, Verdict, feature},
};

#[derive(Debug, Serialize)]
struct Program {
    name: String,
    /// What it is loaded for, and where it runs; none for the object itself.
    group: Option<&'static str>,
    hook: Option<String>,
    verified_instructions: Option<u32>,
    load_ms: f64,
    error: Option<String>,
    /// What is missing without it.
    without: Option<&'static str>,
}

/// A map of the programs, as large as this machine needs it.
#[derive(Debug, Serialize)]
struct Map {
    name: String,
    kind: &'static str,
    entries: u32,
}

/// A program that watches connections; each works without the others.
#[derive(Debug, Serialize)]
struct Network {
    name: &'static str,
    hook: &'static str,
    minimum_kernel: &'static str,
    state: &'static str,
    /// Why it is not available.
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    kernel: String,
    arch: &'static str,
    cpus: u32,
    features: Vec<Feature>,
    programs: Vec<Program>,
    maps: Vec<Map>,
    network: Vec<Network>,
    /// Of the agent that runs here.
    access_logs: AccessLogCheck,
}

/// How far further lines of a reason are moved in.
const DETAIL: usize = 24;

/// Prints the report; an error when profiling is impossible here.
pub fn run(args: &DoctorArgs) -> Result<()> {
    if let Some(pid) = args.pid {
        return doctor_process::run(pid, args);
    }
    let report = examine(args);
    if args.json {
        terminal::out(&Text::json(&report).context("encode the report")?)?;
    } else {
        terminal::out(&text(&report))?;
    }
    let missing: Vec<&str> = report
        .features
        .iter()
        .filter(|feature| feature.verdict == Verdict::Missing)
        .map(|feature| feature.name)
        .collect();
    if !missing.is_empty() {
        bail!(
            "this machine cannot be profiled: {} missing",
            missing.join(", ")
        );
    }
    Ok(())
}

fn examine(args: &DoctorArgs) -> Report {
    let denied = args.deny_probe.as_slice();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (bpf::Checked { programs, maps }, load_error) = match bpf::check_programs(denied) {
        Ok(checked) => (checked, None),
        Err(error) => (bpf::Checked::default(), Some(error.to_string())),
    };
    let mut features = features::examine();
    // After what they are made of.
    features.insert(2, programs_feature(&programs, load_error.clone()));
    features.insert(3, features::clock(denied));
    let network = network_programs()
        .filter_map(|row| network(row, &programs, load_error.as_deref()))
        .collect();
    Report {
        network,
        access_logs: access_logs::checked(&args.url, &args.token_file),
        version: env!("CARGO_PKG_VERSION"),
        kernel: kernel.trim().to_owned(),
        arch: std::env::consts::ARCH,
        cpus: bpf::cpu_count(),
        features,
        programs: programs.into_iter().map(program).collect(),
        maps: maps.into_iter().map(map).collect(),
    }
}

fn program(report: ProgramReport) -> Program {
    let row = bpf::find(&report.name);
    Program {
        group: row.map(|row| row.group.name()),
        hook: row.map(|row| row.hook.to_string()),
        without: row.map(|row| row.without),
        name: report.name,
        verified_instructions: report.verified_instructions,
        load_ms: report.load_time.as_secs_f64() * 1e3,
        error: report.error,
    }
}

fn map(report: MapReport) -> Map {
    let MapReport {
        name,
        kind,
        entries,
    } = report;
    Map {
        name,
        kind,
        entries,
    }
}

/// A program that is neither loaded nor refused has no hook on this kernel. `None` for one without a hook of its own.
fn network(
    row: &ProgramRow,
    programs: &[ProgramReport],
    load_failure: Option<&str>,
) -> Option<Network> {
    let (name, minimum_kernel) = (row.name, row.minimum_kernel);
    let hook = row.hook.target()?;
    let report = programs.iter().find(|report| report.name == name);
    let reason = match (load_failure, report) {
        (Some(failure), _) => Some(failure.to_owned()),
        (None, Some(report)) => report.error.clone(),
        (None, None) => Some(format!(
            "this kernel has no tracepoint {hook}, which came with {minimum_kernel}"
        )),
    };
    Some(Network {
        name,
        hook,
        minimum_kernel,
        state: if reason.is_none() {
            "available"
        } else {
            "unavailable"
        },
        reason,
    })
}

fn programs_feature(programs: &[ProgramReport], load_error: Option<String>) -> Feature {
    const REMEDY: &str = "run as root, or with CAP_BPF and CAP_PERFMON; kernel 5.15 or later";
    if let Some(error) = load_error {
        return feature("ebpf_programs", Verdict::Missing, error, REMEDY);
    }
    let failed: Vec<&str> = programs
        .iter()
        .filter(|program| program.error.is_some())
        .map(|program| program.name.as_str())
        .collect();
    let loaded = programs.len() - failed.len();
    if failed.is_empty() {
        return feature("ebpf_programs", Verdict::Ok, format!("{loaded} loaded"), "");
    }
    let samples = |program: &&str| bpf::is_of(Group::Samples, program);
    let verdict = if failed.iter().any(samples) {
        Verdict::Missing
    } else {
        Verdict::Degraded
    };
    feature(
        "ebpf_programs",
        verdict,
        format!("{loaded} loaded, refused: {}", failed.join(", ")),
        REMEDY,
    )
}

fn text(report: &Report) -> Text {
    let mut text = Text::default();
    text.line(format_args!(
        "profiler-agent {} on Linux {} {}, {} CPUs",
        report.version, report.kernel, report.arch, report.cpus
    ));
    text.blank();
    for feature in &report.features {
        let line = format!(
            "{}  {:15} {}",
            feature.verdict.mark(),
            feature.name,
            feature.detail
        );
        // What the verifier says has several lines.
        text.paragraph(&line, DETAIL);
        if !feature.remedy.is_empty() {
            text.line(format_args!("          {:15} -> {}", "", feature.remedy));
        }
    }
    text.blank();
    text.line(format_args!(
        "connections             tracepoint             from     state"
    ));
    for program in &report.network {
        let line = format!(
            "{:23} {:22} {:8} {}{}",
            program.name,
            program.hook,
            program.minimum_kernel,
            program.state,
            program
                .reason
                .as_deref()
                .map_or_else(String::new, |reason| format!(": {reason}")),
        );
        text.paragraph(&line, DETAIL);
    }
    text.blank();
    text.push(&report.access_logs.text(wall_ns()));
    if report.programs.is_empty() {
        return text;
    }
    text.blank();
    text.line(format_args!(
        "program                 verified instructions   load time"
    ));
    for program in &report.programs {
        let verified = program
            .verified_instructions
            .map_or_else(|| "-".to_owned(), |count| count.to_string());
        text.line(format_args!(
            "{:23} {verified:>21} {:>8.1} ms",
            program.name, program.load_ms
        ));
        if let Some(error) = &program.error {
            text.paragraph(&format!("{:DETAIL$}refused: {error}", ""), DETAIL);
            if let Some(without) = program.without {
                text.line(format_args!("{:DETAIL$}without it: {without}", ""));
            }
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The text of a report with this wherever a text is not our own.
    pub(in crate::cli) fn with(foreign: &str) -> Text {
        let foreign = || foreign.to_owned();
        text(&Report {
            maps: Vec::new(),
            access_logs: AccessLogCheck::new("http://a", Err(foreign())),
            version: "1",
            kernel: foreign(),
            arch: "x86_64",
            cpus: 2,
            features: vec![Feature {
                name: "btf",
                verdict: Verdict::Degraded,
                minimum_kernel: "5.8",
                detail: foreign(),
                remedy: foreign(),
            }],
            programs: vec![Program {
                name: foreign(),
                group: None,
                hook: None,
                without: None,
                verified_instructions: None,
                load_ms: 1.0,
                error: Some(foreign()),
            }],
            network: vec![Network {
                name: "connect",
                hook: "inet_sock_set_state",
                minimum_kernel: "4.16",
                state: "unavailable",
                reason: Some(foreign()),
            }],
        })
    }

    #[test]
    fn lines_of_the_verifier_stay_lines_and_are_moved_in() {
        let text = with("first\nsecond");
        let indented = format!("{:DETAIL$}second", "");
        assert!(text.contains("refused: first\n"), "{text}");
        assert!(text.lines().any(|line| line == indented), "{text}");
    }
}
