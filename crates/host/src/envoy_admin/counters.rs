//! `/stats`: how many requests were answered, and what became of their access logs.

use super::{
    EnvoyAdminError,
    client::Client,
    text::harmless,
    traffic::{self, Answer, Stat},
};
use crate::foreign_answers::json;

/// One counter for each HTTP connection manager: `http.PREFIX.downstream_rq_completed`.
const PATH: &str =
    "/stats?usedonly&format=json&filter=%5Ehttp%5C..%2A%5C.downstream_rq_completed%24";
/// A name and a number take some 80 bytes; a proxy has up to some thousand connection managers.
const LIMIT: usize = 4 << 20;

/// Requests that were answered since Envoy started; `None` when it counts none (yet): it leaves out
/// counters that have not been used.
pub(super) fn completed_requests(client: &Client) -> Result<Option<u64>, EnvoyAdminError> {
    Ok(traffic::read(client.get(PATH, LIMIT))?.completed())
}

/// Counters of the loggers that send entries, one set for each kind of logger, and those of [`PATH`].
const LOGS_PATH: &str = "/stats?format=json&filter=%5E%28access_logs%5C..%2A%7Chttp%5C..%2A%5C.downstream_rq_completed%29%24";
const LOGS: &str = "access_logs.";

/// What an Envoy counts of the access logs that it sends, since it started. `None`: it has no such counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Entries that were put into buffers.
    pub written: Option<u64>,
    /// Entries that were thrown away because a buffer was full.
    pub dropped: Option<u64>,
    /// Entries that could not be sent (Envoy 1.40).
    pub failed: Option<u64>,
    /// Requests that were answered, as of `completed_requests`.
    pub completed: Option<u64>,
}

pub(super) fn log_counters(client: &Client) -> Result<LogCounters, EnvoyAdminError> {
    let path = "/stats";
    let body = client.get(LOGS_PATH, LIMIT);
    let body = body.map_err(|source| EnvoyAdminError::Request { path, source })?;
    parse_logs(&body).map_err(|detail| EnvoyAdminError::Answer { path, detail })
}

pub(super) fn parse_logs(body: &[u8]) -> Result<LogCounters, String> {
    let answer: Answer = json(body).map_err(|error| harmless(&error.to_string()))?;
    let mut counters = LogCounters {
        completed: traffic::parse(body)?.completed(),
        ..LogCounters::default()
    };
    for Stat { name, value, .. } in answer.stats {
        let Some((value, name)) = value
            .and_then(|value| value.as_u64())
            .zip(name.strip_prefix(LOGS))
        else {
            continue;
        };
        let slot = match name.rsplit('.').next() {
            Some("logs_written") => &mut counters.written,
            Some("logs_dropped") => &mut counters.dropped,
            Some("grpc_entries_flush_failed") => &mut counters.failed,
            _ => continue,
        };
        *slot = Some(slot.unwrap_or(0).saturating_add(value));
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_all_loggers_are_added_up() {
        let text = br#"{"stats":[
            {"name":"access_logs.grpc_access_log.logs_written","value":7},
            {"name":"access_logs.open_telemetry_access_log.logs_written","value":5},
            {"name":"access_logs.grpc_access_log.logs_dropped","value":0},
            {"name":"access_logs.grpc_access_log.grpc_entries_flush_failed","value":2},
            {"name":"access_logs.grpc_access_log.logs_written","value":-1},
            {"name":"http.ingress.downstream_rq_completed","value":14}]}"#;
        let expected = LogCounters {
            written: Some(12),
            dropped: Some(0),
            failed: Some(2),
            completed: Some(14),
        };
        assert_eq!(parse_logs(text), Ok(expected));
        assert_eq!(parse_logs(br#"{"stats":[]}"#), Ok(LogCounters::default()));
        assert!(parse_logs(b"[]").is_err());
    }

    fn parse(body: &[u8]) -> Result<Option<u64>, String> {
        Ok(traffic::parse(body)?.completed())
    }

    #[test]
    fn requests_of_all_connection_managers_are_added_up_but_its_own() {
        let text = br#"{"stats":[
            {"name":"http.admin.downstream_rq_completed","value":7},
            {"name":"http.inbound_0.0.0.0_8080;.downstream_rq_completed","value":5},
            {"name":"http.outbound_http.downstream_rq_completed","value":30},
            {"name":"http.stats.downstream_rq_completed","value":4},
            {"name":"cluster.x.upstream_rq_completed","value":100},
            {"name":"http.odd.downstream_rq_completed","value":-3},
            {"histograms":{}}]}"#;
        assert_eq!(parse(text), Ok(Some(35)));
    }

    #[test]
    fn no_counter_is_not_zero_requests() {
        assert_eq!(parse(br#"{"stats":[]}"#), Ok(None));
        let own = br#"{"stats":[{"name":"http.admin.downstream_rq_completed","value":7}]}"#;
        assert_eq!(parse(own), Ok(None));
        assert!(parse(br#"{"stats":7}"#).is_err());
        assert!(parse(b"").is_err());
        let huge = format!(
            r#"{{"stats":[{{"name":"http.a.downstream_rq_completed","value":{}}},{{"name":"http.b.downstream_rq_completed","value":9}}]}}"#,
            u64::MAX
        );
        assert_eq!(parse(huge.as_bytes()), Ok(Some(u64::MAX)));
    }
}
