//! The integration tests that a test machine runs, in the test binary that the host built.

use anyhow::{Result, ensure};

use super::transcript::Transcript;

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
