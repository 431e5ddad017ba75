//! What Envoys report of a task's requests by their access logs.

use profiler_analysis::logged_requests::report;
use profiler_model::{self as model, access_log_report::AccessLogReport};
use serde::Serialize;
use utoipa::ToSchema;

use super::edges::{EdgeEnd, end};

/// Requests that come from access logs, beside the operations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedRequests)]
pub(super) struct RequestAccessLogs {
    /// Those with the most requests first.
    envoys: Vec<RequestLogEnvoy>,
    /// Requests that were seen at sockets as well. They are counted once, as the access log has them.
    seen_twice: u64,
    /// Requests into these Envoys that sockets show at listeners with an access log, and of which no entry tells: it was lost, or not all of them
    /// are logged. No operation has them. Known at the end of the task, where all connections were captured.
    without_entry: u64,
    /// Entries that arrived faster than they could be read.
    left_out: u64,
    /// Entries of Envoys for which there was no room; their operations are counted.
    of_other_envoys: u64,
}

/// An Envoy that sends its access log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggingEnvoy)]
struct RequestLogEnvoy {
    /// Its port is null.
    process: EdgeEnd,
    /// No process of this node is known to be this Envoy: it is only what it calls itself.
    claimed: bool,
    #[serde(flatten)]
    report: AccessLogReport,
}

impl From<&model::LoggedRequests> for RequestAccessLogs {
    fn from(logged: &model::LoggedRequests) -> Self {
        let model::LoggedRequests {
            // Operations say it by their source.
            edges: _,
            envoys,
            seen_twice,
            without_entry,
            left_out,
            of_other_envoys,
        } = logged;
        let envoy = |found: &model::LoggingEnvoy| RequestLogEnvoy {
            process: end(&found.process, None, None),
            claimed: found.process.pid.is_none(),
            report: report(found),
        };
        Self {
            envoys: envoys.iter().map(envoy).collect(),
            seen_twice: *seen_twice,
            without_entry: *without_entry,
            left_out: *left_out,
            of_other_envoys: *of_other_envoys,
        }
    }
}
