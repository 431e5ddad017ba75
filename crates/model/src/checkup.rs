//! What is kept of a check-up beside the results of its tasks.

use serde::{Deserialize, Serialize};

use super::{Observed, ProcessKey};

/// Readings of counters that were taken while the tasks of a check-up ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckupRecord {
    pub observed: Observed,
    /// Of each process that counts its requests, in order of their keys.
    pub series: Vec<RequestSeries>,
}

/// CPU time and requests of one process over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSeries {
    pub key: ProcessKey,
    /// In order of time.
    pub points: Vec<RequestPoint>,
}

/// Both counters at nearly the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPoint {
    /// Nanoseconds since the first point.
    pub at_ns: u64,
    /// CPU time by the kernel's accounting since the first point.
    pub cpu_ns: u64,
    /// Requests since the process started.
    pub requests: u64,
}
