//! The two requests of an entry: the one that came in, and the one that went out for it.

use std::net::SocketAddr;

use profiler_access_logs::{Address, Entry, HttpVersion, text};
use profiler_model::SeenBy;
use profiler_protocols::{Exchange, Outcome, Protocol, Status, outcome_of_grpc, outcome_of_status};

use super::waiting::observed;
use crate::requests::observed_request::ObservedRequest;

/// Bytes of a text that is kept.
const TEXT_BYTES: usize = 256;
/// Where Envoy says that a response comes from the upstream.
const VIA_UPSTREAM: &[u8] = b"via_upstream";
/// The client did not wait for the end.
const CLIENT_GONE: &str = "DC";

/// The requests of one entry after the other, in the same memory: to move a request takes as long as to count it.
#[derive(Debug)]
pub(super) struct Halves {
    /// As the client's end of the proxy saw it.
    pub(super) inner: ObservedRequest,
    outer: ObservedRequest,
    has_outer: bool,
}

impl Default for Halves {
    fn default() -> Self {
        let of = |seen_by| {
            let nowhere = SocketAddr::from(([0; 4], 0));
            observed((seen_by, 0), nowhere, Exchange::new(Protocol::Http, 0))
        };
        Self {
            inner: of(SeenBy::Server),
            outer: of(SeenBy::Client),
            has_outer: false,
        }
    }
}

impl Halves {
    /// The last attempt, as the upstream's end saw it; `None`: there was none.
    pub(super) fn outer(&mut self) -> Option<&mut ObservedRequest> {
        self.has_outer.then_some(&mut self.outer)
    }

    /// Takes the requests of an entry of a process, without what [`add_texts`] adds and where the client is. `epoch_ns` is when the clock of
    /// exchanges was 0.
    pub(super) fn read(&mut self, entry: &Entry, pid: u32, epoch_ns: u64) {
        let start = entry
            .start_unix_ns
            .unwrap_or(epoch_ns)
            .saturating_sub(epoch_ns);
        let timing = &entry.timing;
        let at = |offset: Option<u64>| offset.map(|offset| start.saturating_add(offset));
        let end_ns = at(timing.last_downstream_tx_ns.or(timing.duration_ns)).unwrap_or(start);
        let inner = begun(&mut self.inner, pid, protocol(entry), start);
        inner.method = kept(&text(&entry.request.method));
        inner.route = entry.route().map(|mut route| {
            route.truncate(route.floor_char_boundary(TEXT_BYTES));
            route
        });
        inner.status = status(entry);
        inner.outcome = outcome(entry);
        inner.request_end_ns = at(timing.last_downstream_rx_ns);
        inner.first_byte_ns = at(timing.first_downstream_tx_ns);
        inner.end_ns = end_ns;
        inner.request_bytes = entry.sizes.received;
        inner.response_bytes = entry.sizes.sent;
        let sent = at(timing.first_upstream_tx_ns)
            .filter(|_| entry.addresses.upstream_remote != Address::Absent);
        self.has_outer = sent.is_some();
        let Some(begin_ns) = sent else {
            return;
        };
        let is_answered = is_of_upstream(entry);
        let whole = is_answered.then_some(timing.last_upstream_rx_ns).flatten();
        // Calls of gRPC are passed on as such; else the entry does not tell what is spoken.
        let protocol = call(entry).unwrap_or(Protocol::Http);
        let outer = begun(&mut self.outer, pid, protocol, begin_ns);
        outer.status = is_answered.then(|| inner.status.clone()).flatten();
        outer.outcome = whole.map_or(Outcome::Broken, |_| of_answer(entry));
        outer.request_end_ns = at(timing.last_upstream_tx_ns);
        outer.first_byte_ns = at(timing.first_upstream_rx_ns);
        outer.end_ns = at(whole).unwrap_or(end_ns).max(begin_ns);
        // Filters may change bodies, and entries have only what the client sent and got.
        outer.request_size_known = false;
        outer.response_size_known = false;
        outer.method.clone_from(&inner.method);
        outer.route.clone_from(&inner.route);
    }
}

/// A request whose exchange has just begun, over another one of an entry. What no entry has stays as it is.
fn begun(
    request: &mut ObservedRequest,
    pid: u32,
    protocol: Protocol,
    begin_ns: u64,
) -> &mut Exchange {
    request.begin.pid = pid;
    if let Some(answer) = &mut request.answer {
        answer.pid = pid;
    }
    let exchange = &mut request.exchange;
    exchange.protocol = protocol;
    exchange.begin_ns = begin_ns;
    exchange.path = None;
    exchange.authority = None;
    exchange.trace.request_id = None;
    exchange
}

/// Adds the texts of either request of an entry that nothing is counted by: most requests are not kept, and need none.
pub(super) fn add_texts(exchange: &mut Exchange, entry: &Entry, raw_paths: bool) {
    exchange.path = raw_paths.then(|| entry.masked_path(TEXT_BYTES)).flatten();
    exchange.authority = kept(&text(&entry.request.authority));
    exchange.trace.request_id = request_id(entry);
}

/// `x-request-id`, as far as it is kept.
pub(super) fn request_id(entry: &Entry) -> Option<String> {
    kept(&text(&entry.request.id))
}

fn kept(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| bounded(text))
}

fn protocol(entry: &Entry) -> Protocol {
    call(entry).unwrap_or(match entry.request.version {
        HttpVersion::Http10 | HttpVersion::Http11 => Protocol::Http1,
        HttpVersion::Http2 => Protocol::Http2,
        HttpVersion::Http3 | HttpVersion::Unknown => Protocol::Http,
    })
}

/// gRPC, if that is known.
fn call(entry: &Entry) -> Option<Protocol> {
    entry.response.grpc_status.map(|_| Protocol::Grpc)
}

fn status(entry: &Entry) -> Option<Status> {
    let of_call = entry.response.grpc_status.map(Status::Grpc);
    of_call.or(entry.response.status.map(Status::Http))
}

fn outcome(entry: &Entry) -> Outcome {
    let is_gone = entry
        .response
        .flags
        .iter()
        .any(|flag| flag.short_name == CLIENT_GONE);
    if is_gone {
        Outcome::Broken
    } else {
        of_answer(entry)
    }
}

fn of_answer(entry: &Entry) -> Outcome {
    if let Some(status) = entry.response.grpc_status {
        return outcome_of_grpc(status);
    }
    entry
        .response
        .status
        .map_or(Outcome::Broken, outcome_of_status)
}

/// Whether the upstream has answered that it failed.
pub(super) fn is_failure_of_upstream(entry: &Entry) -> bool {
    is_of_upstream(entry) && of_answer(entry) == Outcome::ServerError
}

/// Whether the upstream has answered: a response may as well be Envoy's own.
pub(super) fn is_of_upstream(entry: &Entry) -> bool {
    let details = &*entry.response.details;
    entry.response.status.is_some()
        && entry.timing.first_upstream_rx_ns.is_some()
        && (details.is_empty() || details == VIA_UPSTREAM)
}

/// A text that is not longer than what is kept.
pub(super) fn bounded(text: &str) -> String {
    within(text, TEXT_BYTES)
}

/// At most so many bytes of a text.
pub(super) fn within(text: &str, bytes: usize) -> String {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use profiler_access_logs::{Request, Response, Timing, Upstream};

    use super::*;

    /// A call that was answered, with everything that an entry has.
    fn call_of_grpc() -> Entry {
        Entry {
            start_unix_ns: Some(100),
            timing: Timing {
                last_downstream_rx_ns: Some(1),
                first_upstream_tx_ns: Some(2),
                last_upstream_tx_ns: Some(3),
                first_upstream_rx_ns: Some(4),
                last_upstream_rx_ns: Some(5),
                first_downstream_tx_ns: Some(6),
                last_downstream_tx_ns: Some(7),
                duration_ns: Some(8),
            },
            request: Request {
                version: HttpVersion::Http2,
                method: Bytes::from_static(b"POST"),
                authority: Bytes::from_static(b"cart"),
                path: Bytes::from_static(b"/shop.Cart/Get"),
                id: Bytes::from_static(b"1-2-3"),
            },
            response: Response {
                status: Some(200),
                grpc_status: Some(14),
                ..Response::default()
            },
            upstream: Upstream {
                attempts: 1,
                ..Upstream::default()
            },
            addresses: profiler_access_logs::Addresses {
                upstream_remote: Address::Socket(SocketAddr::from(([10, 0, 0, 1], 80))),
                ..profiler_access_logs::Addresses::default()
            },
            ..Entry::default()
        }
    }

    #[test]
    fn nothing_of_an_entry_stays_for_the_next() {
        let mut refused = Entry {
            start_unix_ns: Some(200),
            ..Entry::default()
        };
        refused.response.status = Some(404);
        let mut unanswered = call_of_grpc();
        unanswered.response = Response::default();
        unanswered.timing.first_upstream_rx_ns = None;
        for (pid, entry) in [(7, &refused), (0, &unanswered), (8, &call_of_grpc())] {
            let mut used = Halves::default();
            used.read(&call_of_grpc(), 5, 50);
            for half in [&mut used.inner, &mut used.outer] {
                add_texts(&mut half.exchange, &call_of_grpc(), true);
                half.exchange.protocol = Protocol::Http1;
            }
            let mut fresh = Halves::default();
            for halves in [&mut used, &mut fresh] {
                halves.read(entry, pid, 60);
            }
            assert_eq!(format!("{:?}", used.inner), format!("{:?}", fresh.inner));
            assert_eq!(
                format!("{:?}", used.outer()),
                format!("{:?}", fresh.outer())
            );
        }
    }
}
