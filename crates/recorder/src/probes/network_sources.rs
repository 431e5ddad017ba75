//! Which hook each metric of a network task comes from, and why a metric has none.

use std::collections::BTreeMap;

use crate::bpf::CallPlan;

/// Name of the source that is not one hook.
const SYSTEM_CALLS: &str = "system calls";
/// Why times of calls are missing in the light mode.
const NEEDS_TIMED: &str = "needs the timed mode";

/// Metrics that have one source, with the programs that all are needed for it.
const SINGLE: [(&str, &str, &[&str]); 7] = [
    ("name", "sk_data_ready", &["network_ready"]),
    ("connect", "inet_sock_set_state", &["network_state"]),
    (
        "close",
        "inet_sock_set_state",
        &["network_state", "network_destroy"],
    ),
    ("retransmit", "tcp_retransmit_skb", &["network_retransmit"]),
    ("drop", "kfree_skb", &["network_drop"]),
    (
        "reset",
        "tcp_send_reset, tcp_receive_reset",
        &["network_reset_sent", "network_reset_received"],
    ),
    ("error", "inet_sk_error_report", &["network_error"]),
];

/// Metrics that one of their sources alone tells of Unix sockets.
pub(super) const OF_UNIX_SOCKETS: [(&str, &str); 3] = [
    ("write", "sock_send_length"),
    ("read", "sock_recv_length"),
    ("receive_wait", "sk_data_ready"),
];

/// Metrics by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MetricSources {
    pub(super) from: BTreeMap<String, String>,
    pub(super) unavailable: BTreeMap<String, String>,
}

impl MetricSources {
    /// `attached` returns whether a program runs, or why not.
    pub(super) fn new(plan: CallPlan, attached: impl Fn(&str) -> Result<(), String>) -> Self {
        let mut sources = Self::default();
        for (metric, hook, programs) in SINGLE {
            let failure = programs.iter().find_map(|name| attached(name).err());
            sources.set(metric, failure.map_or(Ok(hook), Err));
        }
        let calls = || attached("network_call").and_then(|()| attached("network_call_end"));
        let moved = |hook: &'static str, program: &str, by_calls: bool| {
            let announced = attached(program).map(|()| hook);
            let Err(reason) = announced else {
                return announced;
            };
            let counted = if by_calls { calls() } else { Err(reason) };
            counted.map(|()| SYSTEM_CALLS)
        };
        let write = moved("sock_send_length", "network_send", plan.counts_writes);
        let read = moved("sock_recv_length", "network_receive", plan.counts_reads);
        let ready = attached("network_ready").map(|()| "sk_data_ready");
        let ready = ready.or_else(|reason| {
            if plan.watches_segments {
                attached("network_segment").map(|()| "tcp_probe")
            } else {
                Err(reason)
            }
        });
        sources.set("write_rtt_us", write.clone());
        sources.set("min_rtt_us", write.clone());
        sources.set("write", write);
        sources.set("receive_wait", read.clone().and(ready));
        sources.set("read", read);
        let timed = if plan.timed {
            calls().map(|()| SYSTEM_CALLS)
        } else {
            Err(NEEDS_TIMED.to_owned())
        };
        for metric in ["accept", "read.time_ns", "write.time_ns"] {
            sources.set(metric, timed.clone());
        }
        sources.set(
            "tls",
            Err("edges do not say whether a connection is encrypted".to_owned()),
        );
        sources
    }

    fn set(&mut self, metric: &str, source: Result<&str, String>) {
        match source {
            Ok(source) => self.from.insert(metric.to_owned(), source.to_owned()),
            Err(reason) => self.unavailable.insert(metric.to_owned(), reason),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources where the named programs are missing.
    fn without(missing: &'static [&'static str], timed: bool) -> MetricSources {
        let plan = CallPlan::new(timed, |name| !missing.contains(&name));
        MetricSources::new(plan, |name| {
            if missing.contains(&name) {
                Err(format!("no {name}"))
            } else if plan.needs(name) {
                Ok(())
            } else {
                Err("not needed".to_owned())
            }
        })
    }

    #[test]
    fn a_kernel_that_announces_lengths_needs_no_system_calls() {
        let sources = without(&[], false);
        for (metric, source) in OF_UNIX_SOCKETS {
            assert_eq!(sources.from[metric], source);
        }
        assert_eq!(sources.unavailable["accept"], "needs the timed mode");
        assert_eq!(sources.unavailable["write.time_ns"], "needs the timed mode");
        assert!(!sources.from.contains_key("tls"));
    }

    #[test]
    fn every_metric_has_a_source_or_a_reason() {
        let sources = without(&["network_drop"], false);
        for metric in profiler_model::EDGE_METRICS {
            let name = metric.id;
            let is_known =
                sources.from.contains_key(name) || sources.unavailable.contains_key(name);
            assert!(name.is_empty() || is_known, "{name}");
        }
    }

    #[test]
    fn without_lengths_system_calls_and_segments_take_their_place() {
        let sources = without(&["network_send", "network_receive", "network_ready"], true);
        for metric in ["write", "read", "write_rtt_us", "min_rtt_us", "accept"] {
            assert_eq!(sources.from[metric], "system calls");
        }
        assert_eq!(sources.from["receive_wait"], "tcp_probe");
    }

    #[test]
    fn what_nothing_gives_has_the_reason() {
        let sources = without(
            &["network_send", "network_call", "network_reset_sent"],
            true,
        );
        assert_eq!(sources.unavailable["write"], "no network_call");
        assert_eq!(sources.unavailable["reset"], "no network_reset_sent");
        assert_eq!(sources.from["read"], "sock_recv_length");
        assert_eq!(sources.unavailable["accept"], "no network_call");
    }
}
