//! What processes add to the requests that pass through them.

use profiler_model::{self as model, RequestValues};
use profiler_network::requests::shown_end;
use serde::Serialize;
use utoipa::ToSchema;

use super::edges::{EdgeEnd, end};

/// A process that requests go into and out of, as an Envoy.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestSidecar {
    /// Its port is null.
    process: EdgeEnd,
    /// Requests whose answer was seen whole.
    requests_in: u64,
    requests_out: u64,
    /// Time in the process for each request that came in, without what it waited for others: the sum of
    /// all times of requests in less that of all requests out. It needs no pairs. Null when more time was
    /// waited than taken, as with requests to several at once.
    #[schema(required)]
    mean_ns: Option<u64>,
    /// Requests in that nothing was found for: answered here, or not matched.
    unmatched_in: u64,
    unmatched_out: u64,
    /// Requests for which there was no room until their other half came.
    forgotten: u64,
    /// Pairs by what ties them together, the best evidence first; those without pairs are left out.
    pairs: Vec<RequestPairs>,
    /// All pairs but those that order alone decided.
    #[schema(required)]
    times: Option<RequestTimes>,
    /// `x-envoy-upstream-service-time` beside what was measured; null: no answer had it.
    #[schema(required)]
    upstream_header: Option<UpstreamHeader>,
    /// Each pair, of tasks that keep every request; otherwise none.
    matched: Vec<RequestPair>,
    /// Pairs for which there was no room.
    matched_left_out: u64,
}

/// A request that came in and the one that went out for it.
#[derive(Debug, Serialize, ToSchema)]
struct RequestPair {
    /// As in `pairs`.
    class: MatchClass,
    #[serde(rename = "in")]
    inner: RequestPlace,
    #[serde(rename = "out")]
    outer: RequestPlace,
}

/// Which of the samples it is: these fields say the same there.
#[derive(Debug, Serialize, ToSchema)]
struct RequestPlace {
    client: String,
    stream: u64,
}

impl From<model::RequestPlace> for RequestPlace {
    fn from(place: model::RequestPlace) -> Self {
        let model::RequestPlace { client, stream } = place;
        Self {
            client: shown_end(client),
            stream,
        }
    }
}

/// What ties a pair together: the process's own access log, the same ids, `fingerprint` (alike, and nothing else fits), or `order`
/// (several fit equally well, and the first was taken).
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum MatchClass {
    AccessLog,
    RequestId,
    TraceId,
    Fingerprint,
    Order,
}

impl From<model::MatchClass> for MatchClass {
    fn from(class: model::MatchClass) -> Self {
        match class {
            model::MatchClass::AccessLog => Self::AccessLog,
            model::MatchClass::RequestId => Self::RequestId,
            model::MatchClass::TraceId => Self::TraceId,
            model::MatchClass::Fingerprint => Self::Fingerprint,
            model::MatchClass::Order => Self::Order,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct RequestPairs {
    class: MatchClass,
    pairs: u64,
    /// Part of all pairs, 0 to 1.
    share: f64,
    times: RequestTimes,
}

/// Where the time of pairs went.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "units are part of the names in the API"
)]
struct RequestTimes {
    /// The time of the request that came in less that of the one that went out.
    inside_ns: RequestValues,
    /// From the arrival of the request until the process read it, as it was busy with others; of pairs for
    /// which that was measured.
    read_wait_ns: RequestValues,
    /// From reading the request to writing it to the upstream.
    to_upstream_ns: RequestValues,
    /// From there to reading the first byte of the answer.
    upstream_ns: RequestValues,
    /// The part of it for which the answer had arrived already.
    answer_wait_ns: RequestValues,
    /// From reading the first byte of the answer to writing one to the client.
    to_client_ns: RequestValues,
}

/// The header is in whole milliseconds, rounded down.
#[derive(Debug, Serialize, ToSchema)]
struct UpstreamHeader {
    pairs: u64,
    header_ms: u64,
    measured_ns: u64,
    /// Pairs that differ by not more than 2 ms.
    agreeing: u64,
}

impl From<&model::Sidecar> for RequestSidecar {
    fn from(sidecar: &model::Sidecar) -> Self {
        let model::Sidecar {
            process,
            requests_in,
            requests_out,
            time_in_ns: _,
            time_out_ns: _,
            unmatched_in,
            unmatched_out,
            forgotten,
            pairs,
            upstream_header,
            matched,
            matched_left_out,
        } = sidecar;
        let all = sidecar.pairs();
        let trusted = sidecar.trusted();
        Self {
            process: end(process, None, None),
            requests_in: *requests_in,
            requests_out: *requests_out,
            mean_ns: sidecar.mean_ns(),
            unmatched_in: *unmatched_in,
            unmatched_out: *unmatched_out,
            forgotten: *forgotten,
            pairs: model::MatchClass::ALL
                .into_iter()
                .filter_map(|class| Some((class, pairs.get(&class)?)))
                .map(|(class, times)| RequestPairs {
                    class: class.into(),
                    pairs: times.pairs,
                    share: share(times.pairs, all),
                    times: times.into(),
                })
                .collect(),
            times: (trusted.pairs > 0).then(|| (&trusted).into()),
            upstream_header: (upstream_header.pairs > 0).then_some(UpstreamHeader {
                pairs: upstream_header.pairs,
                header_ms: upstream_header.header_ms,
                measured_ns: upstream_header.measured_ns,
                agreeing: upstream_header.agreeing,
            }),
            matched: matched
                .iter()
                .map(|pair| RequestPair {
                    class: pair.class.into(),
                    inner: pair.inner.into(),
                    outer: pair.outer.into(),
                })
                .collect(),
            matched_left_out: *matched_left_out,
        }
    }
}

fn share(part: u64, all: u64) -> f64 {
    model::float(part) / model::float(all.max(1))
}

impl From<&model::SidecarTimes> for RequestTimes {
    fn from(times: &model::SidecarTimes) -> Self {
        let model::SidecarTimes {
            pairs: _,
            whole_ns: _,
            inside_ns,
            read_wait_ns,
            to_upstream_ns,
            upstream_ns,
            answer_wait_ns,
            to_client_ns,
        } = times;
        Self {
            inside_ns: inside_ns.into(),
            read_wait_ns: read_wait_ns.into(),
            to_upstream_ns: to_upstream_ns.into(),
            upstream_ns: upstream_ns.into(),
            answer_wait_ns: answer_wait_ns.into(),
            to_client_ns: to_client_ns.into(),
        }
    }
}
