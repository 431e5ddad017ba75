//! The two requests of an entry: the one that came in, and the one that went out for it.

use profiler_access_logs::{Address, Entry, HttpVersion, text};
use profiler_protocols::{Exchange, Outcome, Protocol, Status, outcome_of_grpc, outcome_of_status};

/// Bytes of a text that is kept.
const TEXT_BYTES: usize = 256;
/// Where Envoy says that a response comes from the upstream.
const VIA_UPSTREAM: &[u8] = b"via_upstream";
/// The client did not wait for the end.
const CLIENT_GONE: &str = "DC";

#[derive(Debug)]
pub(super) struct Halves {
    /// As the client's end of the proxy saw it.
    pub(super) inner: Exchange,
    /// The last attempt, as the upstream's end saw it; `None`: there was none.
    pub(super) outer: Option<Exchange>,
}

impl Halves {
    /// Without what [`add_texts`] adds. `epoch_ns` is when the clock of exchanges was 0.
    pub(super) fn of(entry: &Entry, epoch_ns: u64) -> Self {
        let start = entry
            .start_unix_ns
            .unwrap_or(epoch_ns)
            .saturating_sub(epoch_ns);
        let timing = &entry.timing;
        let at = |offset: Option<u64>| offset.map(|offset| start.saturating_add(offset));
        let end_ns = at(timing.last_downstream_tx_ns.or(timing.duration_ns)).unwrap_or(start);
        // Filled where it is: to move an exchange takes as long as to count it.
        let mut inner = Exchange::new(protocol(entry), start);
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
        let outer = at(timing.first_upstream_tx_ns)
            .filter(|_| entry.addresses.upstream_remote != Address::Absent);
        let outer = outer.map(|begin_ns| {
            let is_answered = is_of_upstream(entry);
            let (status, outcome) = if is_answered {
                (inner.status.clone(), of_answer(entry))
            } else {
                (None, Outcome::Broken)
            };
            let whole = is_answered.then_some(timing.last_upstream_rx_ns).flatten();
            // Calls of gRPC are passed on as such; else the entry does not tell what is spoken.
            let mut outer = Exchange::new(call(entry).unwrap_or(Protocol::Http), begin_ns);
            outer.status = status;
            outer.outcome = if whole.is_none() {
                Outcome::Broken
            } else {
                outcome
            };
            outer.request_end_ns = at(timing.last_upstream_tx_ns);
            outer.first_byte_ns = at(timing.first_upstream_rx_ns);
            outer.end_ns = at(whole).unwrap_or(end_ns).max(begin_ns);
            // Filters may change bodies, and entries have only what the client sent and got.
            outer.request_size_known = false;
            outer.response_size_known = false;
            outer.method.clone_from(&inner.method);
            outer.route.clone_from(&inner.route);
            outer
        });
        Self { inner, outer }
    }
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
