//! `doctor`: what this kernel and these privileges allow, and what to do about the rest.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{doctor_process, print};
use crate::{
    bpf::{self, NETWORK_PROGRAMS, NetworkProgram, ProgramReport},
    config::cli::DoctorArgs,
    features::{self, Feature, Verdict, feature},
};

#[derive(Debug, Serialize)]
struct Program {
    name: String,
    verified_instructions: Option<u32>,
    load_ms: f64,
    error: Option<String>,
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
    network: Vec<Network>,
}

/// Prints the report; an error when profiling is impossible here.
pub fn run(args: &DoctorArgs) -> Result<()> {
    if let Some(pid) = args.pid {
        return doctor_process::run(pid, args);
    }
    let report = examine(&args.deny_probe);
    if args.json {
        let text = serde_json::to_string_pretty(&report).context("encode the report")?;
        print(&(text + "\n"))?;
    } else {
        print(&text(&report))?;
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

fn examine(denied: &[String]) -> Report {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (programs, load_error) = match bpf::check_programs(denied) {
        Ok(programs) => (programs, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let mut features = features::examine();
    // After what they are made of.
    features.insert(2, programs_feature(&programs, load_error.clone()));
    features.insert(3, features::clock(denied));
    let network = NETWORK_PROGRAMS
        .iter()
        .map(|program| network(program, &programs, load_error.as_deref()))
        .collect();
    Report {
        network,
        version: env!("CARGO_PKG_VERSION"),
        kernel: kernel.trim().to_owned(),
        arch: std::env::consts::ARCH,
        cpus: bpf::cpu_count(),
        features,
        programs: programs.into_iter().map(program).collect(),
    }
}

fn program(report: ProgramReport) -> Program {
    Program {
        name: report.name,
        verified_instructions: report.verified_instructions,
        load_ms: report.load_time.as_secs_f64() * 1e3,
        error: report.error,
    }
}

/// A program that is neither loaded nor refused has no hook on this kernel.
fn network(
    program: &NetworkProgram,
    programs: &[ProgramReport],
    load_failure: Option<&str>,
) -> Network {
    let NetworkProgram {
        name,
        hook,
        minimum_kernel,
    } = *program;
    let report = programs.iter().find(|report| report.name == name);
    let reason = match (load_failure, report) {
        (Some(failure), _) => Some(failure.to_owned()),
        (None, Some(report)) => report.error.clone(),
        (None, None) => Some(format!(
            "this kernel has no tracepoint {hook}, which came with {minimum_kernel}"
        )),
    };
    Network {
        name,
        hook,
        minimum_kernel,
        state: if reason.is_none() {
            "available"
        } else {
            "unavailable"
        },
        reason,
    }
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
    let verdict = if failed.contains(&"on_cpu") {
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

fn text(report: &Report) -> String {
    let mut text = format!(
        "profiler-agent {} on Linux {} {}, {} CPUs\n\n",
        report.version, report.kernel, report.arch, report.cpus
    );
    for feature in &report.features {
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            text,
            "{}  {:15} {}",
            feature.verdict.mark(),
            feature.name,
            feature.detail
        );
        if !feature.remedy.is_empty() {
            let _infallible = writeln!(text, "          {:15} -> {}", "", feature.remedy);
        }
    }
    text.push_str("\nconnections             tracepoint             from     state\n");
    for program in &report.network {
        let _infallible = writeln!(
            text,
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
    }
    if report.programs.is_empty() {
        return text;
    }
    text.push_str("\nprogram                 verified instructions   load time\n");
    for program in &report.programs {
        let verified = program
            .verified_instructions
            .map_or_else(|| "-".to_owned(), |count| count.to_string());
        let _infallible = writeln!(
            text,
            "{:23} {verified:>21} {:>8.1} ms",
            program.name, program.load_ms
        );
        if let Some(error) = &program.error {
            let _infallible = writeln!(text, "                        refused: {error}");
        }
    }
    text
}
