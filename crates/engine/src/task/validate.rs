//! Bounds of a task specification, each with its exact message.

use std::fmt::Display;

use profiler_host::{container_names::LabelSelector, sockets::NamespacePath};
use profiler_model::{
    LoopRules, MAX_CAPTURE_BYTES, MAX_CAPTURE_CPU_PERCENT, MAX_DURATION_S, MAX_FREQUENCY_HZ,
    MAX_STALL_MS, MIN_CAPTURE_BYTES, PodSelector, Recording, RequestOptions, SampleSpec, Target,
    TaskSpec, WaitRules,
};
use profiler_network::requests::Rules;

use super::TaskError;

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

const NETWORK_NAMESPACE: &str = "target.network_namespace";
/// A group is named by a person or by the page.
const MAX_GROUP_BYTES: usize = 64;

/// What fields and kinds are called in errors: their names in the API are given.
pub type Names = fn(&'static str) -> &'static str;

/// Checks everything that can be checked without looking at the machine. Errors have the names of the API.
pub fn validate(spec: &TaskSpec) -> Result<(), TaskError> {
    validate_with(spec, |name| name)
}

/// The same with other names in errors.
pub fn validate_with(spec: &TaskSpec, names: Names) -> Result<(), TaskError> {
    if let Some(duration) = spec.duration_s
        && !(1..=MAX_DURATION_S).contains(&duration)
    {
        return refused(
            names,
            "duration_s",
            format!("must be between 1 and {MAX_DURATION_S}, got {duration}"),
        );
    }
    match &spec.recording {
        Recording::Samples(samples) => samples_hold(samples, names)?,
        Recording::Edges(_) => {}
        Recording::Requests(requests) => requests_hold(&requests.options, names)?,
    }
    match &spec.target {
        Target::Pids(pids) => pids_hold(pids, names),
        Target::Container(id) => container_holds(id, names),
        Target::Pod(selector) => pod_holds(selector, names),
        Target::Cgroup(path) => cgroup_holds(path, names),
        Target::Comm(comm) => comm_holds(comm, names),
        Target::NetworkNamespace(_) if spec.edges().is_none() => refused(
            names,
            NETWORK_NAMESPACE,
            "is for tasks of kind network and requests",
        ),
        Target::NetworkNamespace(path) => network_namespace_holds(path, names),
        Target::All => Ok(()),
    }
}

fn samples_hold(spec: &SampleSpec, names: Names) -> Result<(), TaskError> {
    let SampleSpec {
        kind,
        frequency_hz,
        wakers,
        waits,
        event_loop,
    } = spec;
    if !(1..=MAX_FREQUENCY_HZ).contains(frequency_hz) {
        return refused(
            names,
            "frequency_hz",
            format!("must be between 1 and {MAX_FREQUENCY_HZ}, got {frequency_hz}"),
        );
    }
    if *wakers && !kind.has_waits() {
        let kind = names(kind.name());
        return refused(
            names,
            "wakers",
            format!(
                "end waits, which {kind} does not record: take {} or wall",
                names("off_cpu")
            ),
        );
    }
    if let Some(LoopRules { threshold_ms }) = event_loop
        && !(1..=MAX_STALL_MS).contains(threshold_ms)
    {
        return refused(
            names,
            "event_loop.threshold_ms",
            format!("must be between 1 and {MAX_STALL_MS}, got {threshold_ms}"),
        );
    }
    let WaitRules {
        // One agent-wide setting stands for kinds without waits as well.
        mode: _,
        min_ns,
        max_ns,
    } = *waits;
    if !kind.has_waits() {
        let given = [
            ("min_wait_ns", min_ns != 0),
            ("max_wait_ns", max_ns.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, given)| *given) {
            let (kind, take) = (names(kind.name()), names("off_cpu"));
            let rest =
                format!("is about waits, which {kind} does not measure: take {take} or wall");
            return refused(names, field, rest);
        }
    }
    if max_ns.is_some_and(|most| most < min_ns || most == 0) {
        return refused(
            names,
            "max_wait_ns",
            format!("must be above 0 and not below {}", names("min_wait_ns")),
        );
    }
    Ok(())
}

fn requests_hold(options: &RequestOptions, names: Names) -> Result<(), TaskError> {
    let RequestOptions {
        access_log: _,
        sockets: _,
        tls,
        tls_duty_percent,
        bodies: _,
        raw_paths: _,
        samples_all: _,
        rules,
        capture_bytes,
        cpu_percent,
    } = options;
    sources_hold(options, names)?;
    if let Err(error) = Rules::compile(rules) {
        return invalid("rules", error.to_string());
    }
    if !(1..=100).contains(tls_duty_percent) {
        return refused(
            names,
            "tls_duty_percent",
            format!("must be between 1 and 100, got {tls_duty_percent}"),
        );
    }
    if !tls && *tls_duty_percent != 100 {
        return refused(
            names,
            "tls_duty_percent",
            format!(
                "is for tasks that read TLS: add {}, or leave it out",
                names("tls")
            ),
        );
    }
    if !(MIN_CAPTURE_BYTES..=MAX_CAPTURE_BYTES).contains(capture_bytes) {
        return refused(
            names,
            "capture_bytes",
            format!(
                "must be between {MIN_CAPTURE_BYTES} and {MAX_CAPTURE_BYTES}, got \
                 {capture_bytes}"
            ),
        );
    }
    if !(1..=MAX_CAPTURE_CPU_PERCENT).contains(cpu_percent) {
        return refused(
            names,
            "cpu_percent",
            format!("must be between 1 and {MAX_CAPTURE_CPU_PERCENT}, got {cpu_percent}"),
        );
    }
    Ok(())
}

/// Refuses what is only known of sockets where these are not looked at.
fn sources_hold(options: &RequestOptions, names: Names) -> Result<(), TaskError> {
    if options.sockets {
        return Ok(());
    }
    let usual = RequestOptions::default();
    let given = [
        ("tls", options.tls),
        ("bodies", options.bodies),
        (
            "capture_bytes",
            options.capture_bytes != usual.capture_bytes,
        ),
        ("cpu_percent", options.cpu_percent != usual.cpu_percent),
    ];
    let source = names("source");
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let rest = format!(
            "is about what is read at sockets, which are not in {source}: add sockets to {source}, or leave it out"
        );
        return refused(names, field, rest);
    }
    if options.access_log {
        return Ok(());
    }
    refused(names, "source", "must have access_log or sockets")
}

fn pids_hold(pids: &[u32], names: Names) -> Result<(), TaskError> {
    const FIELD: &str = "target.pids";
    if pids.is_empty() {
        return refused(names, FIELD, "must name at least one process");
    }
    if pids.len() > MAX_PIDS {
        let got = pids.len();
        return refused(
            names,
            FIELD,
            format!("must name at most {MAX_PIDS} processes, got {got}"),
        );
    }
    // Pids are positive numbers of the kernel's signed pid_t.
    match pids
        .iter()
        .find(|pid| **pid == 0 || i32::try_from(**pid).is_err())
    {
        Some(pid) => {
            let most = i32::MAX;
            refused(
                names,
                FIELD,
                format!("must be between 1 and {most}, got {pid}"),
            )
        }
        None => Ok(()),
    }
}

fn container_holds(id: &str, names: Names) -> Result<(), TaskError> {
    const FIELD: &str = "target.container";
    if !(MIN_CONTAINER_BYTES..=MAX_CONTAINER_BYTES).contains(&id.len()) {
        let got = id.len();
        return refused(
            names,
            FIELD,
            format!(
                "must be {MIN_CONTAINER_BYTES} to {MAX_CONTAINER_BYTES} \
                 characters of a container id, got {got}"
            ),
        );
    }
    if !id.bytes().all(is_in_name) {
        return refused(
            names,
            FIELD,
            "must consist of letters, digits, '-', '_' and '.'",
        );
    }
    Ok(())
}

fn pod_holds(selector: &PodSelector, names: Names) -> Result<(), TaskError> {
    const FIELD: &str = "target.pod";
    const LABELS: &str = "target.pod.labels";
    let PodSelector {
        namespace,
        name,
        labels,
        container,
    } = selector;
    if name.is_none() && labels.is_none() && container.is_none() {
        return refused(names, FIELD, "must have a name, labels or a container");
    }
    for (key, value) in [
        ("target.pod.namespace", namespace),
        ("target.pod.name", name),
        ("target.pod.container", container),
    ] {
        if value.as_ref().is_some_and(|value| !is_name(value)) {
            return invalid(
                FIELD,
                format!(
                    "{} must be 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' and '.'",
                    names(key)
                ),
            );
        }
    }
    match labels {
        Some(labels) if labels.len() > MAX_SELECTOR_BYTES => invalid(
            FIELD,
            format!(
                "{} must be at most {MAX_SELECTOR_BYTES} bytes",
                names(LABELS)
            ),
        ),
        Some(labels) => LabelSelector::parse(labels)
            .map(drop)
            .or_else(|error| invalid(FIELD, format!("{}: {error}", names(LABELS)))),
        None => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_in_name)
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

fn cgroup_holds(path: &str, names: Names) -> Result<(), TaskError> {
    const FIELD: &str = "target.cgroup";
    if !path.starts_with('/') {
        return refused(names, FIELD, "must be an absolute path, as /system.slice");
    }
    if path.len() > MAX_CGROUP_BYTES {
        let got = path.len();
        return refused(
            names,
            FIELD,
            format!("must be at most {MAX_CGROUP_BYTES} bytes, got {got}"),
        );
    }
    if path.split('/').any(|part| part == "..") || path.contains('\0') {
        return refused(names, FIELD, "must not contain \"..\" or NUL");
    }
    Ok(())
}

fn network_namespace_holds(path: &str, names: Names) -> Result<(), TaskError> {
    if path.len() > MAX_CGROUP_BYTES || NamespacePath::parse(path).is_none() {
        return refused(
            names,
            NETWORK_NAMESPACE,
            "must be /run/netns/NAME, /run/docker/netns/NAME or /proc/PID/ns/net",
        );
    }
    Ok(())
}

/// Checks the name of a group: it stands in addresses, file names and commands as it is.
pub(super) fn group_holds(group: &str) -> Result<(), TaskError> {
    const FIELD: &str = "group";
    let names: Names = |name| name;
    if !(1..=MAX_GROUP_BYTES).contains(&group.len()) {
        let got = group.len();
        return refused(
            names,
            FIELD,
            format!("must be 1 to {MAX_GROUP_BYTES} characters, got {got}"),
        );
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !group.bytes().all(is_plain) {
        return refused(
            names,
            FIELD,
            "must consist of letters, digits, '-', '_' and '.'",
        );
    }
    Ok(())
}

fn comm_holds(comm: &str, names: Names) -> Result<(), TaskError> {
    const FIELD: &str = "target.comm";
    if comm.is_empty() {
        return refused(names, FIELD, "must not be empty");
    }
    if comm.len() > MAX_COMM_BYTES {
        let got = comm.len();
        return refused(
            names,
            FIELD,
            format!("must be at most {MAX_COMM_BYTES} bytes, got {got}"),
        );
    }
    if comm.contains('\0') {
        return refused(names, FIELD, "must not contain NUL");
    }
    Ok(())
}

/// An error about a field, whose name its text begins with.
fn refused<T>(names: Names, field: &'static str, rest: impl Display) -> Result<T, TaskError> {
    invalid(field, format!("{} {rest}", names(field)))
}

fn invalid<T>(field: &'static str, detail: String) -> Result<T, TaskError> {
    Err(TaskError::InvalidSpec { field, detail })
}
