//! Bounds of a task specification, each with its exact message.

use profiler_host::{container_names::LabelSelector, sockets::NamespacePath};
use profiler_model::{
    DEFAULT_FREQUENCY_HZ, LoopRules, MAX_CAPTURE_BYTES, MAX_CAPTURE_CPU_PERCENT, MAX_DURATION_S,
    MAX_FREQUENCY_HZ, MAX_STALL_MS, MIN_CAPTURE_BYTES, PodSelector, RequestOptions, Target,
    TaskKind, TaskSpec, WaitRules,
};

use super::TaskError;
use crate::requests::Rules;

/// Processes that one task may name.
pub const MAX_PIDS: usize = 4096;
/// `comm` as the kernel keeps it: 15 bytes.
pub const MAX_COMM_BYTES: usize = 15;
/// A cgroup path is a file path.
pub const MAX_CGROUP_BYTES: usize = 4096;
/// Container ids are 64 hex digits, pod ids are UUIDs.
pub const MAX_CONTAINER_BYTES: usize = 128;
/// Shorter prefixes match too easily what was not meant.
pub const MIN_CONTAINER_BYTES: usize = 12;

/// Longest name in Kubernetes, of a subdomain.
const MAX_NAME_BYTES: usize = 253;
const MAX_SELECTOR_BYTES: usize = 4096;

/// How the kind comes to be that nobody can start.
const IMPORTED_BY: &str = "a profile is imported with POST /api/v1/imports";
/// A group is named by a person or by the page.
const MAX_GROUP_BYTES: usize = 64;

/// Checks everything that can be checked without looking at the machine.
/// Field names in errors are those of the API.
pub fn validate(spec: &TaskSpec) -> Result<(), TaskError> {
    if let Some(duration) = spec.duration_s
        && !(1..=MAX_DURATION_S).contains(&duration)
    {
        return invalid(
            "duration_s",
            format!("duration_s must be between 1 and {MAX_DURATION_S}, got {duration}"),
        );
    }
    if !(1..=MAX_FREQUENCY_HZ).contains(&spec.frequency_hz) {
        let got = spec.frequency_hz;
        return invalid(
            "frequency_hz",
            format!("frequency_hz must be between 1 and {MAX_FREQUENCY_HZ}, got {got}"),
        );
    }
    if spec.kind.has_edges() && spec.frequency_hz != DEFAULT_FREQUENCY_HZ {
        let kind = spec.kind.name();
        return invalid(
            "frequency_hz",
            format!("frequency_hz is a rate of samples, which {kind} does not take: leave it out"),
        );
    }
    if spec.wakers && !measures_waits(spec.kind) {
        let kind = spec.kind.name();
        return invalid(
            "wakers",
            format!("wakers end waits, which {kind} does not record: take off_cpu or wall"),
        );
    }
    if spec.timed && !spec.kind.has_edges() {
        let kind = spec.kind.name();
        return invalid(
            "timed",
            format!("timed measures system calls on sockets, which {kind} does not: take network"),
        );
    }
    loops_hold(spec)?;
    requests_hold(spec)?;
    if spec.kind == TaskKind::Imported {
        return invalid("kind", IMPORTED_BY.to_owned());
    }
    waits_hold(spec)?;
    match &spec.target {
        Target::Pids(pids) => pids_hold(pids),
        Target::Container(id) => container_holds(id),
        Target::Pod(selector) => pod_holds(selector),
        Target::Cgroup(path) => cgroup_holds(path),
        Target::Comm(comm) => comm_holds(comm),
        Target::NetworkNamespace(path) => network_namespace_holds(path, spec.kind),
        Target::All => Ok(()),
        Target::Imported(_) => invalid("target.imported", IMPORTED_BY.to_owned()),
    }
}

fn loops_hold(spec: &TaskSpec) -> Result<(), TaskError> {
    let Some(LoopRules { threshold_ms }) = spec.event_loop else {
        return Ok(());
    };
    if spec.kind.has_edges() {
        let kind = spec.kind.name();
        return invalid(
            "event_loop",
            format!(
                "event loops are watched beside samples, which {kind} does not take: take on_cpu, \
                 off_cpu or wall"
            ),
        );
    }
    if !(1..=MAX_STALL_MS).contains(&threshold_ms) {
        return invalid(
            "event_loop.threshold_ms",
            format!(
                "event_loop.threshold_ms must be between 1 and {MAX_STALL_MS}, got {threshold_ms}"
            ),
        );
    }
    Ok(())
}

fn requests_hold(spec: &TaskSpec) -> Result<(), TaskError> {
    let Some(options) = &spec.requests else {
        return Ok(());
    };
    if spec.kind != TaskKind::Requests {
        let kind = spec.kind.name();
        return invalid(
            "requests",
            format!("requests are not what {kind} records: take requests"),
        );
    }
    let RequestOptions {
        tls,
        tls_duty_percent,
        bodies: _,
        raw_paths: _,
        samples_all: _,
        rules,
        capture_bytes,
        cpu_percent,
    } = options;
    if let Err(error) = Rules::compile(rules) {
        return invalid("rules", error.to_string());
    }
    if !(1..=100).contains(tls_duty_percent) {
        return invalid(
            "tls_duty_percent",
            format!("tls_duty_percent must be between 1 and 100, got {tls_duty_percent}"),
        );
    }
    if !tls && *tls_duty_percent != 100 {
        return invalid(
            "tls_duty_percent",
            "tls_duty_percent is for tasks that read TLS: add tls, or leave it out".to_owned(),
        );
    }
    if !(MIN_CAPTURE_BYTES..=MAX_CAPTURE_BYTES).contains(capture_bytes) {
        return invalid(
            "capture_bytes",
            format!(
                "capture_bytes must be between {MIN_CAPTURE_BYTES} and {MAX_CAPTURE_BYTES}, got \
                 {capture_bytes}"
            ),
        );
    }
    if !(1..=MAX_CAPTURE_CPU_PERCENT).contains(cpu_percent) {
        return invalid(
            "cpu_percent",
            format!(
                "cpu_percent must be between 1 and {MAX_CAPTURE_CPU_PERCENT}, got {cpu_percent}"
            ),
        );
    }
    Ok(())
}

fn measures_waits(kind: TaskKind) -> bool {
    match kind {
        TaskKind::OffCpu | TaskKind::Wall | TaskKind::Imported => true,
        TaskKind::OnCpu | TaskKind::Network | TaskKind::Requests => false,
    }
}

fn waits_hold(spec: &TaskSpec) -> Result<(), TaskError> {
    let WaitRules {
        mode,
        min_ns,
        max_ns,
    } = spec.waits;
    if !measures_waits(spec.kind) {
        let kind = spec.kind.name();
        let given = [
            ("min_wait_ns", min_ns != 0),
            ("max_wait_ns", max_ns.is_some()),
            // One agent-wide setting stands for on_cpu as well.
            ("off_cpu_mode", mode.is_some() && spec.kind.has_edges()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, given)| *given) {
            return invalid(
                field,
                format!(
                    "{field} is about waits, which {kind} does not measure: take off_cpu or wall"
                ),
            );
        }
    }
    if max_ns.is_some_and(|most| most < min_ns || most == 0) {
        return invalid(
            "max_wait_ns",
            "max_wait_ns must be above 0 and not below min_wait_ns".to_owned(),
        );
    }
    Ok(())
}

fn pids_hold(pids: &[u32]) -> Result<(), TaskError> {
    const FIELD: &str = "target.pids";
    if pids.is_empty() {
        return invalid(
            FIELD,
            "target.pids must name at least one process".to_owned(),
        );
    }
    if pids.len() > MAX_PIDS {
        let got = pids.len();
        return invalid(
            FIELD,
            format!("target.pids must name at most {MAX_PIDS} processes, got {got}"),
        );
    }
    // Pids are positive numbers of the kernel's signed pid_t.
    match pids
        .iter()
        .find(|pid| **pid == 0 || i32::try_from(**pid).is_err())
    {
        Some(pid) => {
            let most = i32::MAX;
            invalid(
                FIELD,
                format!("target.pids must be between 1 and {most}, got {pid}"),
            )
        }
        None => Ok(()),
    }
}

fn container_holds(id: &str) -> Result<(), TaskError> {
    const FIELD: &str = "target.container";
    if !(MIN_CONTAINER_BYTES..=MAX_CONTAINER_BYTES).contains(&id.len()) {
        let got = id.len();
        return invalid(
            FIELD,
            format!(
                "target.container must be {MIN_CONTAINER_BYTES} to {MAX_CONTAINER_BYTES} \
                 characters of a container id, got {got}"
            ),
        );
    }
    if !id.bytes().all(is_in_name) {
        return invalid(
            FIELD,
            "target.container must consist of letters, digits, '-', '_' and '.'".to_owned(),
        );
    }
    Ok(())
}

fn pod_holds(selector: &PodSelector) -> Result<(), TaskError> {
    const FIELD: &str = "target.pod";
    let PodSelector {
        namespace,
        name,
        labels,
        container,
    } = selector;
    if name.is_none() && labels.is_none() && container.is_none() {
        return invalid(
            FIELD,
            "target.pod must have a name, labels or a container".to_owned(),
        );
    }
    for (key, value) in [
        ("namespace", namespace),
        ("name", name),
        ("container", container),
    ] {
        if value.as_ref().is_some_and(|value| !is_name(value)) {
            return invalid(
                FIELD,
                format!(
                    "target.pod.{key} must be 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' and '.'"
                ),
            );
        }
    }
    match labels {
        Some(labels) if labels.len() > MAX_SELECTOR_BYTES => invalid(
            FIELD,
            format!("target.pod.labels must be at most {MAX_SELECTOR_BYTES} bytes"),
        ),
        Some(labels) => LabelSelector::parse(labels)
            .map(drop)
            .or_else(|error| invalid(FIELD, format!("target.pod.labels: {error}"))),
        None => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_in_name)
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

fn cgroup_holds(path: &str) -> Result<(), TaskError> {
    const FIELD: &str = "target.cgroup";
    if !path.starts_with('/') {
        return invalid(
            FIELD,
            "target.cgroup must be an absolute path, as /system.slice".to_owned(),
        );
    }
    if path.len() > MAX_CGROUP_BYTES {
        let got = path.len();
        return invalid(
            FIELD,
            format!("target.cgroup must be at most {MAX_CGROUP_BYTES} bytes, got {got}"),
        );
    }
    if path.split('/').any(|part| part == "..") || path.contains('\0') {
        return invalid(
            FIELD,
            "target.cgroup must not contain \"..\" or NUL".to_owned(),
        );
    }
    Ok(())
}

fn network_namespace_holds(path: &str, kind: TaskKind) -> Result<(), TaskError> {
    const FIELD: &str = "target.network_namespace";
    if !kind.has_edges() {
        return invalid(
            FIELD,
            "target.network_namespace is for tasks of kind network and requests".to_owned(),
        );
    }
    if path.len() > MAX_CGROUP_BYTES || NamespacePath::parse(path).is_none() {
        return invalid(
            FIELD,
            "target.network_namespace must be /run/netns/NAME, /run/docker/netns/NAME or /proc/PID/ns/net"
                .to_owned(),
        );
    }
    Ok(())
}

/// Checks the name of a group: it stands in addresses, file names and commands as it is.
pub(super) fn group_holds(group: &str) -> Result<(), TaskError> {
    const FIELD: &str = "group";
    if !(1..=MAX_GROUP_BYTES).contains(&group.len()) {
        let got = group.len();
        return invalid(
            FIELD,
            format!("group must be 1 to {MAX_GROUP_BYTES} characters, got {got}"),
        );
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !group.bytes().all(is_plain) {
        return invalid(
            FIELD,
            "group must consist of letters, digits, '-', '_' and '.'".to_owned(),
        );
    }
    Ok(())
}

fn comm_holds(comm: &str) -> Result<(), TaskError> {
    const FIELD: &str = "target.comm";
    if comm.is_empty() {
        return invalid(FIELD, "target.comm must not be empty".to_owned());
    }
    if comm.len() > MAX_COMM_BYTES {
        let got = comm.len();
        return invalid(
            FIELD,
            format!("target.comm must be at most {MAX_COMM_BYTES} bytes, got {got}"),
        );
    }
    if comm.contains('\0') {
        return invalid(FIELD, "target.comm must not contain NUL".to_owned());
    }
    Ok(())
}

fn invalid<T>(field: &'static str, detail: String) -> Result<T, TaskError> {
    Err(TaskError::InvalidSpec { field, detail })
}
