//! What the kernel and a target itself report about a window of time, beside the samples.
//!
//! Text comes from processes or from their answers and is untrusted.

use serde::{Deserialize, Serialize};

use super::ProcessKey;

/// Readings of counters at the start and at the end of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// When the first and the last readings were taken, nanoseconds since the Unix epoch.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Processes that were read at both times, in order of their keys.
    pub processes: Vec<ObservedProcess>,
    /// What could not be read and why, as sentences for people.
    pub gaps: Vec<String>,
}

/// A counter at two times. It never counts backwards: a smaller `last` means no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoReadings {
    pub first: u64,
    pub last: u64,
}

impl TwoReadings {
    /// How much it counted.
    pub fn difference(self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

/// One process of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedProcess {
    pub key: ProcessKey,
    /// When this process was read, nanoseconds since the Unix epoch.
    pub from_ns: u64,
    pub to_ns: u64,
    /// User and system time as the kernel accounts it, in nanoseconds, with threads that have ended.
    pub cpu_ns: TwoReadings,
    /// Threads that were there at both times.
    pub threads: Vec<ObservedThread>,
    /// `None`: no quota, or its counters could not be read (see [`Observed::gaps`]).
    pub throttled: Option<ObservedThrottling>,
    /// `None`: they are not counted, or could not be read.
    pub requests: Option<ObservedRequests>,
    /// `None`: the process has no readable configuration.
    pub configuration: Option<ObservedConfiguration>,
}

/// One thread of such a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedThread {
    pub tid: u32,
    pub name: String,
    /// Nanoseconds on a CPU.
    pub cpu_ns: TwoReadings,
    /// Nanoseconds ready to run without a CPU; `None` where the kernel does not count it.
    pub run_queue_ns: Option<TwoReadings>,
}

/// What a CPU quota did between the readings, summed over the cgroups from the process to the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedThrottling {
    pub periods: u64,
    pub throttled_periods: u64,
    pub throttled_ns: u64,
}

/// Requests between the readings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedRequests {
    pub count: u64,
    /// The source of the counts, for people: `Envoy's own counters`.
    pub source: String,
}

/// What a process reports about its own configuration; never a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedConfiguration {
    /// Where it was read, for people.
    pub source: String,
    pub version: Option<String>,
    /// Worker threads that it is configured to have.
    pub concurrency: Option<u64>,
    pub items: Vec<ConfigurationItem>,
}

/// One thing that is configured. Keys are few and fixed, and may repeat; rules for findings name them:
/// `tracing.provider`, `tracing.sampling`, `access_log` (one for each logger: its kind and where it
/// writes), `access_log.format`, `http_filter` (one for each, by the name of its type), `tls.downstream`,
/// `tls.upstream`, `upstream.http1`, `upstream.http2` (each a number of clusters), `stats`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationItem {
    pub key: String,
    pub value: String,
}
