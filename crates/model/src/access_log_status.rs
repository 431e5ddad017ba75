//! Which Envoys send their access logs, and what is missing of them, as it is published.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EnvoyLogs, OwnLogCounts, PodNames, ProcessKey, ReceivedLogs, percent};

/// Why its counts are not known.
const HAS_ENDED: &str = "it has ended";

/// Which Envoys send their access logs, what has come of them, and what is missing. Nothing is received where the agent was started
/// without `--access-logs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccessLogStatus {
    /// False: nothing is received.
    pub is_on: bool,
    /// Address and port where it is received.
    #[schema(required)]
    pub listen: Option<String>,
    /// Connections that were not accepted, because there were too many.
    pub refused_connections: u64,
    /// Connections that failed before anything was received: without TLS where it is asked for, or with a certificate that is not trusted.
    pub failed_connections: u64,
    /// From where the newest of them came, and why it failed.
    #[schema(required)]
    pub newest_failure: Option<String>,
    pub stage_seconds: AccessLogStages,
    /// Those with the most entries first.
    pub envoys: Vec<AccessLogEnvoy>,
}

/// An Envoy that sends its access log. Counts begin with the first of its entries that was received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccessLogEnvoy {
    /// Null where no process of this node holds the other end of its connections.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `PID-STARTTICKS` of the process.
    #[schema(required)]
    pub id: Option<String>,
    /// The process's program; null also where it has ended. Untrusted text.
    #[schema(required)]
    pub program: Option<String>,
    /// `NAMESPACE/NAME` of the process's pod; null where nothing has named it. Untrusted text.
    #[schema(required)]
    pub pod: Option<String>,
    /// True: nothing on this node proves which Envoy it is; it is only what it calls itself.
    pub claimed: bool,
    /// What it calls itself; empty where it has not said. Untrusted text.
    pub node_id: String,
    /// `node_id` is that of a proxy of Istio in another pod than the process's.
    pub node_id_differs: bool,
    /// Of Envoy, as it says. Untrusted text.
    pub version: String,
    /// Address and port of its newest connection.
    #[schema(required)]
    pub peer: Option<String>,
    /// Names of its logs. Untrusted text.
    pub log_names: Vec<String>,
    /// Streams that are open.
    pub streams: u64,
    /// Entries of every kind.
    pub received: u64,
    /// Requests that are over.
    pub requests: u64,
    /// TCP connections that are over.
    pub connections: u64,
    /// Attempts of the router, which belong to requests that have entries of their own.
    pub attempts: u64,
    /// Entries of streams that were not over.
    pub open: u64,
    /// Entries that could not be decoded.
    pub unreadable: u64,
    /// Entries that were counted and not read, see `stage`.
    pub unread: u64,
    /// Messages that were refused, with all of their entries.
    pub refused_messages: u64,
    pub bytes: u64,
    /// Entries that the Envoy has written into its buffers, by its own count.
    #[schema(required)]
    pub written: Option<u64>,
    /// Entries that it has dropped because its buffers were full, by its own count.
    #[schema(required)]
    pub dropped: Option<u64>,
    /// Entries that it could not send, by its own count (Envoy 1.40).
    #[schema(required)]
    pub failed: Option<u64>,
    /// Requests whose answers it has begun, logged or not, by its own count. It is some seconds behind `requests`.
    #[schema(required)]
    pub completed: Option<u64>,
    /// Of `written`, those that were not received.
    #[schema(required)]
    pub unknown: Option<u64>,
    /// Why its own counts are not known. Untrusted text.
    #[schema(required)]
    pub unknown_reason: Option<String>,
    /// Share of `written` and `dropped` that was received. Null where these are not known.
    #[schema(required)]
    pub received_percent: Option<f64>,
    pub stage: AccessLogStage,
    /// When its first and its newest message came.
    pub first_ns: u64,
    pub newest_ns: u64,
}

/// How much of what comes is read. `full`: every entry. `counted`: entries are counted and not read, as reading them all would take more
/// than half of a CPU. `held`: messages wait as well, and Envoys drop what they have no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessLogStage {
    #[default]
    Full,
    Counted,
    Held,
}

impl AccessLogStage {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Counted => "counted",
            Self::Held => "held",
        }
    }
}

/// How long each stage was in force since the agent began, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccessLogStages {
    pub full: f64,
    pub counted: f64,
    pub held: f64,
}

/// A process of this node that sends its access log.
#[derive(Clone, Copy, Debug)]
pub struct LoggingProcess<'a> {
    pub program: &'a str,
    pub pod: Option<&'a PodNames>,
}

impl AccessLogEnvoy {
    /// `running` is the process of the logs, where it still runs.
    pub fn new(logs: &EnvoyLogs, running: Option<LoggingProcess<'_>>) -> Self {
        let EnvoyLogs {
            process,
            peer,
            node_id,
            version,
            log_names,
            streams,
            received,
            own,
            stage,
            first_ns,
            newest_ns,
        } = logs;
        let ReceivedLogs {
            messages: _,
            bytes,
            requests,
            connections,
            attempts,
            open,
            unreadable,
            unread,
            refused,
            // In metrics.
            classes: _,
            flags: _,
        } = received;
        let counted = own.as_ref().copied().unwrap_or_default();
        let OwnLogCounts {
            written,
            dropped,
            failed,
            completed,
            unknown,
        } = counted;
        let pod = running.and_then(|process| process.pod);
        let has_ended = process.is_some() && running.is_none();
        let unknown_reason = own.as_ref().err().map(String::as_str);
        let unknown_reason = unknown_reason.map(|why| if has_ended { HAS_ENDED } else { why });
        Self {
            pid: process.map(|key| key.pid),
            id: process.as_ref().map(ProcessKey::to_string),
            program: running.map(|process| process.program.to_owned()),
            pod: pod.map(|pod| format!("{}/{}", pod.namespace, pod.name)),
            claimed: process.is_none(),
            node_id: node_id.clone(),
            node_id_differs: pod.is_some_and(|pod| names_another_pod(node_id, pod)),
            version: version.clone(),
            peer: peer.map(|address| address.to_string()),
            log_names: log_names.clone(),
            streams: *streams,
            received: received.entries(),
            requests: *requests,
            connections: *connections,
            attempts: *attempts,
            open: *open,
            unreadable: *unreadable,
            unread: *unread,
            refused_messages: *refused,
            bytes: *bytes,
            written,
            dropped,
            failed,
            completed,
            unknown,
            unknown_reason: unknown_reason.map(str::to_owned),
            received_percent: received_percent(&counted),
            stage: *stage,
            first_ns: *first_ns,
            newest_ns: *newest_ns,
        }
    }
}

/// By the Envoy's counts: more entries have come since than it had written then.
fn received_percent(counted: &OwnLogCounts) -> Option<f64> {
    let written = counted.written?;
    let came = written.saturating_sub(counted.unknown?);
    let all = written.saturating_add(counted.dropped.unwrap_or(0));
    (all > 0).then(|| percent(came, all))
}

/// Whether a node id of Istio, `sidecar~IP~POD.NAMESPACE~DOMAIN`, names another pod than this. Others name none.
fn names_another_pod(node_id: &str, pod: &PodNames) -> bool {
    let parts: Vec<&str> = node_id.split('~').collect();
    let [_kind, _ip, named, _domain] = parts[..] else {
        return false;
    };
    // Names of pods may have dots in them, those of namespaces may not.
    named
        .rsplit_once('.')
        .is_none_or(|(name, namespace)| name != pod.name || namespace != pod.namespace)
}

#[cfg(test)]
#[path = "access_log_status_tests.rs"]
mod tests;
