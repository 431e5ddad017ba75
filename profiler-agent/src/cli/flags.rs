//! What is wrong with a task is said in the words of the API; here in those of the command line.

use anyhow::anyhow;
use profiler_model::TaskSpec;

use super::CliError;
use crate::task;

/// Names of the API and how they are given here.
const FLAGS: [(&str, &str); 20] = [
    ("capture_bytes", "--capture-bytes"),
    ("cpu_percent", "--cpu-percent"),
    ("duration_s", "--duration in seconds"),
    (
        "event_loop.threshold_ms",
        "--event-loop-stalls in milliseconds",
    ),
    ("frequency_hz", "--frequency"),
    ("max_wait_ns", "--max-wait"),
    ("min_wait_ns", "--min-wait"),
    ("off_cpu", "off-cpu"),
    ("off_cpu_mode", "--off-cpu-mode"),
    ("on_cpu", "on-cpu"),
    ("target.cgroup", "--cgroup"),
    ("target.comm", "--comm"),
    ("target.container", "--container"),
    ("target.network_namespace", "--netns"),
    ("target.pids", "--pid"),
    ("target.pod.container", "--container"),
    ("target.pod.labels", "--labels"),
    ("target.pod.name", "--pod"),
    ("target.pod.namespace", "the namespace of --pod"),
    ("tls_duty_percent", "--tls-duty"),
];

/// Checks what can be checked without looking at the machine, as the API does.
pub(super) fn check(spec: &TaskSpec) -> Result<(), CliError> {
    task::validate(spec).map_err(|error| CliError::Config(anyhow!(in_flags(&error.to_string()))))
}

/// The same text with the flags in place of the API's names. What a user wrote is quoted, and stays.
fn in_flags(text: &str) -> String {
    let (ours, theirs) = text.split_at(text.find('"').unwrap_or(text.len()));
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut said = String::new();
    let mut rest = ours;
    while let Some(first) = rest.chars().next() {
        let same = in_word(first);
        let end = rest.find(|c| in_word(c) != same).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let flag = FLAGS.iter().find(|(name, _)| *name == word);
        said.push_str(flag.map_or(word, |(_, flag)| flag));
        rest = after;
    }
    said + theirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_api_are_flags() {
        for (said, expected) in [
            (
                "max_wait_ns must be above 0 and not below min_wait_ns",
                "--max-wait must be above 0 and not below --min-wait",
            ),
            (
                "wakers end waits, which on_cpu does not record: take off_cpu or wall",
                "wakers end waits, which on-cpu does not record: take off-cpu or wall",
            ),
            (
                "target.comm must be at most 15 bytes, got 16",
                "--comm must be at most 15 bytes, got 16",
            ),
            (
                "target.pod.labels: \"on_cpu,\" is no requirement on labels: write KEY",
                "--labels: \"on_cpu,\" is no requirement on labels: write KEY",
            ),
            ("", ""),
        ] {
            assert_eq!(in_flags(said), expected);
        }
    }
}
