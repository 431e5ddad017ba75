//! `/stats`: how many requests were answered.

use super::{EnvoyAdminError, client::Client, traffic};

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

#[cfg(test)]
mod tests {
    use super::*;

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
