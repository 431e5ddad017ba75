//! Metrics of what Envoys send.

use std::fmt::Error;

use profiler_access_logs::flags::FLAGS;
use profiler_host::process::ProcessTable;
use profiler_model::{EnvoyLogs, printable::printable};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
    registry::Unit,
};

use super::AccessLogs;
use crate::edge_metrics::signed;

/// Class of requests without a response.
const NO_RESPONSE: &str = "none";

/// Everything at one moment. Counters of an Envoy end with it; those of a claimed one when it has been silent for an hour.
#[derive(Debug)]
pub struct LogMetrics {
    entries: u64,
    refused: u64,
    failed: u64,
    stages: [(&'static str, f64); 3],
    envoys: Vec<(Names, EnvoyLogs)>,
}

/// What Envoys are told apart by.
#[derive(Debug)]
struct Names {
    /// Empty: no process of this node is known to be this one.
    pid: String,
    /// `NAMESPACE/NAME`, or empty.
    pod: String,
    /// As it says, and may be anything.
    node_id: String,
}

impl Names {
    fn of(logs: &EnvoyLogs, table: &ProcessTable) -> Self {
        let found = logs.process.and_then(|key| table.process(key));
        let names = found.and_then(|process| table.names_of(&process));
        let pod = names.and_then(|names| {
            let pod = names.pod.as_deref()?;
            Some(format!("{}/{}", pod.namespace, pod.name))
        });
        Self {
            pid: logs
                .process
                .map(|key| key.pid.to_string())
                .unwrap_or_default(),
            pod: pod.unwrap_or_default(),
            node_id: printable(&logs.node_id).into_owned(),
        }
    }

    fn labels(&self) -> [(&'static str, &str); 3] {
        [
            ("pid", &self.pid),
            ("pod", &self.pod),
            ("node_id", &self.node_id),
        ]
    }
}

impl LogMetrics {
    /// `None`: access logs are not received.
    pub fn read(logs: &AccessLogs, table: &ProcessTable) -> Option<Self> {
        if !logs.is_on() {
            return None;
        }
        let seconds = logs.stage_seconds();
        let envoys = logs.report().into_iter();
        Some(Self {
            entries: logs.entries(),
            refused: logs.refused(),
            failed: logs.failed().0,
            stages: [
                ("full", seconds.full),
                ("counted", seconds.counted),
                ("held", seconds.held),
            ],
            envoys: envoys.map(|logs| (Names::of(&logs, table), logs)).collect(),
        })
    }
}

/// A number that each Envoy has; `None`: it is not known.
type Number = (&'static str, &'static str, fn(&EnvoyLogs) -> Option<u64>);

const COUNTERS: [Number; 5] = [
    (
        "access_log_received",
        "Entries of an Envoy's access log that have come",
        |logs| Some(logs.received.entries()),
    ),
    (
        "access_log_unread",
        "Entries that were counted and not read",
        |logs| Some(logs.received.unread),
    ),
    (
        "access_log_dropped",
        "Entries that the Envoy has dropped because its buffers were full, by its own count",
        |logs| logs.own.as_ref().ok()?.dropped,
    ),
    (
        "access_log_completed",
        "Requests whose answers the Envoy has begun, logged or not, by its own count",
        |logs| logs.own.as_ref().ok()?.completed,
    ),
    (
        "access_log_connections",
        "TCP connections that are over",
        |logs| Some(logs.received.connections),
    ),
];

impl Collector for LogMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, value) in [
            (
                "access_log_entries",
                "Entries of access logs that Envoys have sent",
                self.entries,
            ),
            (
                "access_log_refused_connections",
                "Connections that were not accepted because there were too many",
                self.refused,
            ),
            (
                "access_log_failed_connections",
                "Connections that failed before anything was received",
                self.failed,
            ),
        ] {
            encoder
                .encode_descriptor(name, help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        encoder
            .encode_descriptor(
                "access_log_envoys",
                "Envoys that have sent their access log",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&signed(self.envoys.len() as u64))?;
        let mut stages = encoder.encode_descriptor(
            "access_log_stage",
            "Time in which entries were read, counted only, and held off",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        for (stage, seconds) in &self.stages {
            stages
                .encode_family(&[("stage", *stage)])?
                .encode_counter::<NoLabelSet, _, u64>(seconds, None)?;
        }
        for (name, help, of) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (names, logs) in &self.envoys {
                if let Some(value) = of(logs) {
                    family
                        .encode_family(&names.labels())?
                        .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                }
            }
        }
        let mut unknown = encoder.encode_descriptor(
            "access_log_unknown",
            "Entries that the Envoy has written and that have not come",
            None,
            MetricType::Gauge,
        )?;
        for (names, logs) in &self.envoys {
            if let Some(count) = logs.own.as_ref().ok().and_then(|own| own.unknown) {
                unknown
                    .encode_family(&names.labels())?
                    .encode_gauge(&signed(count))?;
            }
        }
        self.encode_requests(encoder)
    }
}

impl LogMetrics {
    fn encode_requests(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut requests = encoder.encode_descriptor(
            "access_log_requests",
            "Requests that are over, by the class of their status; none: there was no response",
            None,
            MetricType::Counter,
        )?;
        for (names, logs) in &self.envoys {
            for (class, count) in logs.received.classes.iter().enumerate() {
                let class = match class {
                    0 => NO_RESPONSE.to_owned(),
                    class => format!("{class}xx"),
                };
                if *count > 0 {
                    let [pid, pod, node_id] = names.labels();
                    requests
                        .encode_family(&[pid, pod, node_id, ("status", class.as_str())])?
                        .encode_counter::<NoLabelSet, _, u64>(count, None)?;
                }
            }
        }
        let mut flags = encoder.encode_descriptor(
            "access_log_response_flags",
            "Requests and TCP connections that are over, by response flag; one may have several",
            None,
            MetricType::Counter,
        )?;
        for (names, logs) in &self.envoys {
            for (flag, count) in FLAGS.iter().zip(&logs.received.flags) {
                if *count > 0 {
                    let [pid, pod, node_id] = names.labels();
                    flags
                        .encode_family(&[pid, pod, node_id, ("flag", flag.short_name)])?
                        .encode_counter::<NoLabelSet, _, u64>(count, None)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{OwnLogCounts, ReceivedLogs};
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn an_envoy_has_what_it_sent_and_what_is_missing() {
        let mut received = ReceivedLogs {
            requests: 9,
            ..ReceivedLogs::default()
        };
        received.classes = [1, 0, 5, 0, 0, 3];
        received.flags[1] = 3;
        let own = OwnLogCounts {
            dropped: Some(4),
            unknown: Some(2),
            ..OwnLogCounts::default()
        };
        let logs = EnvoyLogs {
            node_id: "gateway".to_owned(),
            received,
            own: Ok(own),
            ..EnvoyLogs::default()
        };
        let names = Names::of(&logs, &ProcessTable::new());
        let metrics = LogMetrics {
            entries: 9,
            refused: 0,
            failed: 0,
            stages: [("full", 1.5), ("counted", 0.0), ("held", 0.0)],
            envoys: vec![(names, logs)],
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let flag = FLAGS[1].short_name;
        for line in [
            "access_log_entries_total 9".to_owned(),
            "access_log_stage_seconds_total{stage=\"full\"} 1.5".to_owned(),
            format!(
                "access_log_response_flags_total{{pid=\"\",pod=\"\",node_id=\"gateway\",flag=\"{flag}\"}} 3"
            ),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for part in [
            "status=\"none\"} 1",
            "status=\"5xx\"} 3",
            "status=\"2xx\"} 5",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("4xx"), "{text}");
        for part in ["access_log_dropped_total{", "access_log_unknown{"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // Not known.
        assert!(!text.contains("access_log_completed_total{"), "{text}");
    }
}
