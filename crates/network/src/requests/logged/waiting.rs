//! Requests that wait for what is known of their connection. Thousands wait when many connections are new, so that each is kept in less
//! than half of the room that it takes while it is counted.

use std::net::SocketAddr;

use profiler_model::SeenBy;
use profiler_protocols::{Exchange, Outcome, Protocol, Status, TraceIds};

use super::hops::HopId;
use crate::requests::{
    event::Drawn,
    observed_request::{Moved, ObservedRequest},
};

/// One end's view of a request on one hop, as an entry tells it.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The report before which it came.
    pub(super) since: u64,
    pub(super) hop: HopId,
    seen_by: SeenBy,
    pid: u32,
    client: SocketAddr,
    protocol: Protocol,
    status: Option<Status>,
    outcome: Outcome,
    begin_ns: u64,
    request_end_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    end_ns: u64,
    request_bytes: u64,
    response_bytes: u64,
    request_size_known: bool,
    response_size_known: bool,
    /// Method, route, path, authority and request id.
    texts: Texts<5>,
}

impl Waiting {
    /// Of a request that [`observed`] has made of what an entry has.
    pub(super) fn new(since: u64, hop: HopId, request: &ObservedRequest) -> Self {
        let exchange = &request.exchange;
        let texts = [
            &exchange.method,
            &exchange.route,
            &exchange.path,
            &exchange.authority,
            &exchange.trace.request_id,
        ];
        Self {
            since,
            hop,
            seen_by: request.seen_by,
            pid: request.begin.pid,
            client: request.client,
            protocol: exchange.protocol,
            status: exchange.status.clone(),
            outcome: exchange.outcome,
            begin_ns: exchange.begin_ns,
            request_end_ns: exchange.request_end_ns,
            first_byte_ns: exchange.first_byte_ns,
            end_ns: exchange.end_ns,
            request_bytes: exchange.request_bytes,
            response_bytes: exchange.response_bytes,
            request_size_known: exchange.request_size_known,
            response_size_known: exchange.response_size_known,
            texts: Texts::of(texts.map(Option::as_deref)),
        }
    }

    pub(super) fn request(self) -> ObservedRequest {
        let [method, route, path, authority, request_id] = self.texts.owned();
        let exchange = Exchange {
            method,
            route,
            path,
            authority,
            status: self.status,
            outcome: self.outcome,
            request_end_ns: self.request_end_ns,
            first_byte_ns: self.first_byte_ns,
            end_ns: self.end_ns,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            request_size_known: self.request_size_known,
            response_size_known: self.response_size_known,
            trace: TraceIds {
                request_id,
                ..TraceIds::default()
            },
            ..Exchange::new(self.protocol, self.begin_ns)
        };
        observed((self.seen_by, self.pid), self.client, exchange)
    }
}

/// A request of an entry, at an end of the process.
pub(super) fn observed(
    (seen_by, pid): (SeenBy, u32),
    client: SocketAddr,
    exchange: Exchange,
) -> ObservedRequest {
    let moved = Moved {
        pid,
        tid: None,
        ready_ns: None,
    };
    ObservedRequest {
        cookie: 0,
        seen_by,
        drawn: Drawn::ALL,
        tls: false,
        client,
        begin: moved,
        answer: Some(moved),
        exchange,
    }
}

/// Texts behind each other.
#[derive(Debug)]
struct Texts<const N: usize> {
    all: Box<str>,
    /// Bytes of each; `None`: there is none.
    lengths: [Option<u32>; N],
}

impl<const N: usize> Texts<N> {
    fn of(texts: [Option<&str>; N]) -> Self {
        Self {
            all: texts.into_iter().flatten().collect::<String>().into(),
            lengths: texts.map(|text| text.and_then(|text| u32::try_from(text.len()).ok())),
        }
    }

    fn owned(&self) -> [Option<String>; N] {
        let mut rest: &str = &self.all;
        self.lengths.map(|length| {
            let (text, behind) = rest.split_at_checked(length? as usize)?;
            rest = behind;
            Some(text.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_after_it_has_waited() {
        let mut exchange = Exchange::new(Protocol::Grpc, 7);
        exchange.method = Some("POST".to_owned());
        exchange.route = Some("/shop.v1.Cart/Añadir".to_owned());
        exchange.authority = Some(String::new());
        exchange.trace.request_id = Some("3f1c".to_owned());
        exchange.status = Some(Status::Grpc(14));
        exchange.outcome = Outcome::ServerError;
        exchange.request_end_ns = Some(8);
        exchange.first_byte_ns = Some(9);
        exchange.end_ns = 10;
        exchange.request_bytes = 11;
        exchange.response_bytes = 12;
        exchange.response_size_known = false;
        let client: SocketAddr = "[fd00::1]:4711".parse().unwrap();
        let before = observed((SeenBy::Client, 5), client, exchange);
        let after = Waiting::new(3, HopId(9), &before).request();
        assert_eq!(after.exchange, before.exchange);
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
        assert!(size_of::<Waiting>() * 2 < size_of::<ObservedRequest>());
    }
}
