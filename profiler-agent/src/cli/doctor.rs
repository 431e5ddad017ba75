//! `doctor`: what this kernel and these privileges allow, and what to do about the rest.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{doctor_process, print};
use crate::{
    bpf::{self, ClockCheck, NETWORK_PROGRAMS, NetworkProgram, ProgramReport},
    config::cli::DoctorArgs,
    process::ContainerHierarchy,
};

/// Verdict on one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    /// Works, with less.
    Degraded,
    Missing,
}

impl Verdict {
    fn mark(self) -> &'static str {
        match self {
            Self::Ok => "ok      ",
            Self::Degraded => "degraded",
            Self::Missing => "missing ",
        }
    }
}

#[derive(Debug, Serialize)]
struct Feature {
    name: &'static str,
    verdict: Verdict,
    detail: String,
    /// What to do; empty when there is nothing to do.
    remedy: String,
}

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
    let features = vec![
        object(),
        btf(),
        programs_feature(&programs, load_error.clone()),
        clock(denied),
        kernel_names(),
        containers(),
        pid_namespace(),
        capabilities(),
        statistics(),
    ];
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

fn feature(
    name: &'static str,
    verdict: Verdict,
    detail: impl Into<String>,
    remedy: &str,
) -> Feature {
    let remedy = if verdict == Verdict::Ok { "" } else { remedy };
    Feature {
        name,
        verdict,
        detail: detail.into(),
        remedy: remedy.to_owned(),
    }
}

fn object() -> Feature {
    let embedded = bpf::is_embedded();
    feature(
        "ebpf_object",
        if embedded {
            Verdict::Ok
        } else {
            Verdict::Missing
        },
        if embedded {
            "embedded"
        } else {
            "this agent was built with PROFILER_SKIP_EBPF=1"
        },
        "build it with `cargo xtask build`",
    )
}

fn btf() -> Feature {
    match fs::metadata("/sys/kernel/btf/vmlinux") {
        Ok(metadata) => feature(
            "btf",
            Verdict::Ok,
            format!("/sys/kernel/btf/vmlinux, {} bytes", metadata.len()),
            "",
        ),
        Err(error) => feature(
            "btf",
            Verdict::Missing,
            format!("/sys/kernel/btf/vmlinux: {error}"),
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y (all distributions since 2021), and mount /sys",
        ),
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

fn clock(denied: &[String]) -> Feature {
    let check = bpf::check_clock(denied);
    match check {
        ClockCheck::Cycles => feature("sampling_clock", Verdict::Ok, "hardware cycles", ""),
        ClockCheck::CpuClock { cycles_error } => feature(
            "sampling_clock",
            Verdict::Ok,
            format!("cpu-clock; hardware cycles are not offered: {cycles_error}"),
            "",
        ),
        ClockCheck::None { error } => feature(
            "sampling_clock",
            Verdict::Missing,
            error,
            "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 1 or less",
        ),
    }
}

fn kernel_names() -> Feature {
    const REMEDY: &str = "run with CAP_SYSLOG, or set kernel.kptr_restrict=0";
    match fs::File::open("/proc/kallsyms").map(first_address) {
        Ok(Some(address)) if address != 0 => feature(
            "kernel_names",
            Verdict::Ok,
            "/proc/kallsyms shows addresses",
            "",
        ),
        Ok(_) => feature(
            "kernel_names",
            Verdict::Degraded,
            "/proc/kallsyms shows no addresses: kernel frames stay without names",
            REMEDY,
        ),
        Err(error) => feature(
            "kernel_names",
            Verdict::Degraded,
            format!("/proc/kallsyms: {error}"),
            REMEDY,
        ),
    }
}

/// The first address that is not zero among the first symbols (per-CPU ones are small).
fn first_address(file: fs::File) -> Option<u64> {
    use std::io::{BufRead as _, BufReader, Read as _};
    BufReader::new(file.take(1 << 16))
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok())
        .find(|address| *address != 0)
}

fn containers() -> Feature {
    match ContainerHierarchy::detect() {
        Some(ContainerHierarchy::V2 { mount }) => feature(
            "containers",
            Verdict::Ok,
            format!("cgroup v2 at {}", mount.path.display()),
            "",
        ),
        Some(ContainerHierarchy::V1 { controller, mount }) => feature(
            "containers",
            Verdict::Ok,
            format!(
                "cgroup v1 controller {controller} at {}",
                mount.path.display()
            ),
            "",
        ),
        None => feature(
            "containers",
            Verdict::Degraded,
            "no cgroup file system is mounted: containers are not recognised",
            "mount /sys/fs/cgroup into the agent's mount namespace",
        ),
    }
}

fn pid_namespace() -> Feature {
    match bpf::is_initial_pid_namespace() {
        Ok(true) => feature(
            "pid_namespace",
            Verdict::Ok,
            "the host's: every process is visible",
            "",
        ),
        Ok(false) => feature(
            "pid_namespace",
            Verdict::Ok,
            "a nested one: its processes are visible, in its own numbers",
            "",
        ),
        Err(error) => feature(
            "pid_namespace",
            Verdict::Missing,
            format!("/proc/self/ns/pid: {error}"),
            "mount /proc",
        ),
    }
}

/// Bits of the capabilities that profiling needs (include/uapi/linux/capability.h).
const NEEDED: [(u32, &str); 5] = [
    (39, "BPF"),
    (38, "PERFMON"),
    (19, "SYS_PTRACE"),
    (34, "SYSLOG"),
    (2, "DAC_READ_SEARCH"),
];

fn capabilities() -> Feature {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(bit, _)| effective & (1 << bit) == 0)
        .map(|(_, name)| *name)
        .collect();
    if missing.is_empty() {
        return feature("capabilities", Verdict::Ok, "all that profiling uses", "");
    }
    feature(
        "capabilities",
        Verdict::Degraded,
        format!("missing: {}", missing.join(", ")),
        "run as root or grant them; SECURITY.md says what each is for",
    )
}

fn statistics() -> Feature {
    match bpf::enable_statistics() {
        Ok(_disabled_when_dropped) => feature(
            "bpf_statistics",
            Verdict::Ok,
            "can be enabled (serve --bpf-stats)",
            "",
        ),
        Err(error) => feature(
            "bpf_statistics",
            Verdict::Degraded,
            format!("{error}: the agent's cost in the kernel is estimated, not measured"),
            "run with CAP_SYS_ADMIN",
        ),
    }
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
