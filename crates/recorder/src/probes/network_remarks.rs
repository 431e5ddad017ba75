//! What a result reports about itself: where its numbers come from, and what could not be counted.

use std::collections::BTreeMap;

use profiler_common::network_calls::{
    CALLS_LEFT_OUT, CALLS_UNBOUND, MESSAGES_LEFT_OUT, TIMES_LEFT_OUT,
};
use profiler_recording::{ProbeState, ProbeStatus};

use super::{MetricSources, NetworkCollector, NetworkSession};
use crate::bpf::{LoadError, NetworkLinks, network_programs};

impl NetworkCollector {
    /// Writes the state of every program, and says where each metric comes from.
    pub(super) fn report(&self, links: &NetworkLinks, failures: &[LoadError]) -> MetricSources {
        let failure_of = |name: &str| {
            failures
                .iter()
                .find(|failure| failure.program() == Some(name))
        };
        for program in network_programs() {
            let failure = failure_of(program.name);
            let state = match failure {
                None if links.is_attached(program.name) => ProbeState::Attached,
                None => ProbeState::Available,
                Some(LoadError::Denied(_)) => ProbeState::Denied,
                Some(_) => ProbeState::Unavailable,
            };
            self.statuses.set(ProbeStatus {
                name: program.name.to_owned(),
                state,
                reason: failure.map(ToString::to_string),
                minimum_kernel: program.minimum_kernel.to_owned(),
            });
        }
        MetricSources::new(links.plan(), |name| {
            if links.is_attached(name) {
                return Ok(());
            }
            Err(failure_of(name)
                .map_or_else(|| format!("{name} is not needed"), ToString::to_string))
        })
    }
}

impl NetworkSession {
    /// Calls that could not be counted or timed.
    pub(super) fn uncounted_calls(&self) -> Result<BTreeMap<String, u64>, LoadError> {
        let counters = self.object.call_counters()?;
        let named = [
            ("calls_left_out", CALLS_LEFT_OUT),
            ("calls_of_unknown_sockets", CALLS_UNBOUND),
            ("messages_left_out", MESSAGES_LEFT_OUT),
            ("times_left_out", TIMES_LEFT_OUT),
        ];
        let numbers = named.into_iter().filter_map(|(name, counter)| {
            let number = *counters.get(counter as usize)?;
            (number > 0).then(|| (name.to_owned(), number))
        });
        Ok(numbers.collect())
    }

    /// Where metrics come from, and what was there before.
    pub(super) fn sources_now(&self) -> BTreeMap<String, String> {
        let mut sources = self.sources.from.clone();
        let sockets = match self.socket_table.without_diag() {
            None => "inet_diag",
            Some(_) => "inet_diag, /proc/PID/net/tcp",
        };
        sources.insert("sockets".to_owned(), sockets.to_owned());
        sources
    }

    /// Metrics that are missing, and facts that may be.
    pub(super) fn unavailable(&self) -> BTreeMap<String, String> {
        let mut unavailable = self.sources.unavailable.clone();
        let (conntrack, originals) = self.socket_table.failures();
        if let Some(reason) = conntrack {
            unavailable.insert("translated_addresses".to_owned(), reason.to_owned());
        }
        if let Some(reason) = self.socket_table.without_diag() {
            unavailable.insert("older_connections".to_owned(), reason.to_owned());
        }
        if let Some(reason) = originals {
            unavailable.insert("original_destination".to_owned(), reason.to_owned());
        }
        unavailable
    }
}
