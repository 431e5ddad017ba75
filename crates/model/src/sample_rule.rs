//! What a user wants kept of single requests.

use serde::{Deserialize, Serialize};

/// Conditions that must all hold for a request to be kept. What is not known of a request fits no
/// condition about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SampleRule {
    /// A regular expression that is searched in `METHOD ROUTE`, and in the path where that is kept.
    pub operation: Option<String>,
    /// 0: no condition.
    pub min_duration_ns: u64,
    /// Of request and answer together; 0: no condition.
    pub min_bytes: u64,
    /// Classes of HTTP's status; one of these or one of `grpc_statuses`. Both empty: no condition.
    pub statuses: Vec<StatusClass>,
    /// Numbers of gRPC's status.
    pub grpc_statuses: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StatusClass {
    /// 400 to 499.
    ClientError,
    /// 500 to 599.
    ServerError,
}
