//! The integration tests that a test machine runs, in the test binary that the host built.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::transcript::Transcript;
use crate::{exec, workspace::Workspace};

/// By their whole names: those of connections that need no programs but the agent.
pub(super) const NAMES: [&str; 11] = [
    "network::a_connection_from_before_the_task_has_its_ends_and_only_its_new_bytes",
    "network::bytes_and_calls_are_exact_over_ipv4_and_ipv6",
    "network::thousands_of_short_connections_are_all_there",
    "network::a_refused_connection_and_a_reset_are_told_apart",
    "network_timed::a_read_takes_as_long_as_it_was_blocked",
    "network_timed::a_write_takes_as_long_as_the_buffer_was_full",
    "network_timed::an_accept_that_comes_late_shows_how_long_the_connection_waited",
    "network_timed::data_that_waits_is_seen_in_segments_where_nothing_announces_it",
    "network_timed::every_way_to_read_and_write_is_counted_once_and_timed",
    "network_timed::the_light_mode_has_no_times_and_says_why",
    "network_timed::with_every_source_denied_the_reason_is_there",
];

/// A line of `cargo --message-format=json`, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds the test binary of the integration tests.
pub(super) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command: Command = exec::cargo(&workspace.root);
    command.args([
        "test",
        "--release",
        "--locked",
        "--package=profiler-tests",
        "--test=it",
        "--no-run",
        "--message-format=json",
    ]);
    let messages = exec::output(&mut command).context("build the integration tests")?;
    executable(&messages).context("cargo named no test binary `it`")
}

fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .find(|message| {
            let target = message.target.as_ref();
            target.is_some_and(|target| target.name == "it")
        })?
        .executable
}

/// Every test ran and passed.
pub(super) fn verdict(transcript: &Transcript) -> Result<String> {
    let output = transcript.succeeded("connections")?;
    let passed = NAMES
        .iter()
        .filter(|name| output.contains(&format!("test {name} ... ok")))
        .count();
    ensure!(
        passed == NAMES.len(),
        "only {passed} of {} tests passed: {output}",
        NAMES.len()
    );
    Ok(format!("{passed} tests passed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_binary_is_the_one_that_cargo_names() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"profiler_tests"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"name":"it"},"executable":"/target/debug/deps/it-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(
            executable(messages),
            Some(PathBuf::from("/target/debug/deps/it-1"))
        );
        assert_eq!(executable(""), None);
    }

    #[test]
    fn a_test_that_did_not_run_fails_the_kernel() {
        let transcript = |names: Vec<&str>| {
            let lines: Vec<String> = names
                .iter()
                .map(|name| format!("test {name} ... ok"))
                .collect();
            let lines = lines.join("\n");
            let text = format!("@@@ begin connections\n{lines}\n@@@ end connections 0\n");
            Transcript::parse(&text).unwrap()
        };
        verdict(&transcript(NAMES.to_vec())).unwrap();
        assert!(verdict(&transcript(NAMES[1..].to_vec())).is_err());
    }
}
