//! What this kernel and these privileges allow, one by one, as far as it can be determined without loading programs:
//! for `doctor` and the node page.

use std::fs;

use profiler_sandbox::confine::{self, Filtering};
use serde::Serialize;

use crate::{pid_namespace::is_initial_pid_namespace, process::ContainerHierarchy};

/// Verdict on one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// Works, with less.
    Degraded,
    Missing,
}

impl Verdict {
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ok => "ok      ",
            Self::Degraded => "degraded",
            Self::Missing => "missing ",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub verdict: Verdict,
    /// Oldest kernel that has what it needs, as `5.8`; empty where the kernel's version does not matter.
    pub minimum_kernel: &'static str,
    pub detail: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: String,
}

/// See docs/kernel-support.md.
fn minimum_kernel(name: &str) -> &'static str {
    match name {
        "btf" => "5.4",
        "ebpf_programs" => "5.15",
        "sampling_clock" => "4.9",
        "stack_tables" => "5.17",
        "pid_namespace" => "5.7",
        "capabilities" | "bpf_statistics" => "5.8",
        "seccomp" => "3.17",
        "landlock" => "5.13",
        _ => "",
    }
}

/// A verdict; the remedy counts only where something is wrong.
pub fn feature(
    name: &'static str,
    verdict: Verdict,
    detail: impl Into<String>,
    remedy: &str,
) -> Feature {
    let remedy = if verdict == Verdict::Ok { "" } else { remedy };
    Feature {
        name,
        verdict,
        minimum_kernel: minimum_kernel(name),
        detail: detail.into(),
        remedy: remedy.to_owned(),
    }
}

pub fn btf() -> Feature {
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

pub fn kernel_names() -> Feature {
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
            "/proc/kallsyms shows no addresses: kernel frames have names only where the program kernel_names is loaded",
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

pub fn containers() -> Feature {
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

pub fn pid_namespace() -> Feature {
    match is_initial_pid_namespace() {
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

pub fn capabilities() -> Feature {
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

pub fn seccomp() -> Feature {
    const REMEDY: &str =
        "start the agent with --confine auto, on a kernel with CONFIG_SECCOMP_FILTER=y";
    match (confine::filtering(), confine::is_wanted()) {
        (Filtering::InForce, true) => feature(
            "seccomp",
            Verdict::Ok,
            "in force: calls that the agent never makes are refused",
            "",
        ),
        (Filtering::InForce | Filtering::Off, false) => feature(
            "seccomp",
            Verdict::Ok,
            "there; not in force in this process (serve --confine auto uses it)",
            "",
        ),
        (Filtering::Off, true) | (Filtering::Unknown, _) => feature(
            "seccomp",
            Verdict::Degraded,
            "system calls are not filtered",
            REMEDY,
        ),
    }
}

pub fn landlock() -> Feature {
    let version = confine::landlock_version();
    if version == 0 {
        return feature(
            "landlock",
            Verdict::Degraded,
            "this kernel has none: the HTTP thread is held by its filter of system calls alone",
            "use a kernel with CONFIG_SECURITY_LANDLOCK=y and landlock in lsm=",
        );
    }
    let detail = if confine::is_wanted() {
        format!("version {version}, in force for the thread that serves HTTP")
    } else {
        format!("version {version}; not in force in this process (serve --confine auto uses it)")
    };
    feature("landlock", Verdict::Ok, detail, "")
}
