use core::net::Ipv4Addr;

use profiler_protocols::{Exchange, Outcome, Protocol, TraceIds};

use super::*;
use crate::requests::{Drawn, observed_request::Moved};

const PID: u32 = 300;
const MS: u64 = 1_000_000;

/// The proxy is the server of the one edge, and the client of the other.
fn edge(seen_by: SeenBy) -> EdgeKey {
    let end = |pid, last| Endpoint {
        pid: Some(pid),
        start_ticks: Some(9),
        comm: "envoy".to_owned(),
        container: None,
        address: Address::Ip(Ipv4Addr::new(10, 0, 0, last).into()),
    };
    let (client, server) = match seen_by {
        SeenBy::Server => (end(1, 1), end(PID, 2)),
        SeenBy::Client => (end(PID, 2), end(3, 3)),
    };
    EdgeKey {
        client,
        server,
        server_port: Some(80),
        original_destination: None,
    }
}

/// One request into or out of the proxy, from and to a time in milliseconds.
#[derive(Clone)]
struct Request {
    seen_by: SeenBy,
    ms: (u64, u64),
    path: u64,
    id: Option<&'static str>,
    trace: Option<&'static str>,
    tid: u32,
    stream: u64,
    upstream_ms: Option<u64>,
}

fn came(from: u64, to: u64) -> Request {
    Request {
        seen_by: SeenBy::Server,
        ms: (from, to),
        path: 1,
        id: None,
        trace: None,
        tid: PID,
        stream: 1,
        upstream_ms: None,
    }
}

fn went(from: u64, to: u64) -> Request {
    Request {
        seen_by: SeenBy::Client,
        ..came(from, to)
    }
}

impl Request {
    fn id(self, id: &'static str) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    fn trace(self, trace: &'static str) -> Self {
        Self {
            trace: Some(trace),
            ..self
        }
    }

    fn path(self, path: u64) -> Self {
        Self { path, ..self }
    }

    fn stream(self, stream: u64) -> Self {
        Self { stream, ..self }
    }

    fn tid(self, tid: u32) -> Self {
        Self { tid, ..self }
    }

    fn seen(&self) -> ObservedRequest {
        let (from, to) = (self.ms.0 * MS, self.ms.1 * MS);
        // The answer begins 1 ms before it ends; what is read had arrived 0.25 ms before.
        let read = |at: u64| Some(at - MS / 4);
        let is_server = self.seen_by == SeenBy::Server;
        let moved = |ready_ns| Moved {
            pid: PID,
            tid: Some(self.tid),
            ready_ns,
        };
        ObservedRequest {
            drawn: Drawn::ALL,
            cookie: 1,
            seen_by: self.seen_by,
            tls: false,
            client: ([10, 0, 0, 1], 4000).into(),
            begin: moved(read(from).filter(|_| is_server)),
            answer: Some(moved(read(to - MS).filter(|_| !is_server))),
            exchange: Exchange {
                method: Some("GET".to_owned()),
                path_hash: Some(self.path),
                outcome: Outcome::Ok,
                request_end_ns: Some(from),
                first_byte_ns: Some(to - MS),
                end_ns: to,
                trace: TraceIds {
                    request_id: self.id.map(str::to_owned),
                    trace_id: self.trace.map(str::to_owned),
                    span_id: None,
                },
                upstream_service_ms: self.upstream_ms,
                stream: self.stream,
                ..Exchange::new(Protocol::Http1, from)
            },
        }
    }
}

fn take(sidecars: &mut Sidecars, request: &Request) {
    let seen = request.seen();
    sidecars.add(&seen);
    sidecars.name(&edge(request.seen_by), &seen);
}

/// What is known after all of them.
fn sidecar(requests: &[Request]) -> Sidecar {
    let mut sidecars = Sidecars::default();
    for request in requests {
        take(&mut sidecars, request);
    }
    sidecars.pair(true);
    let mut rows = sidecars.rows();
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// Those of pairs.
const CLASSES: [MatchClass; 4] = [
    MatchClass::RequestId,
    MatchClass::TraceId,
    MatchClass::Fingerprint,
    MatchClass::Order,
];

/// Pairs by class, in the order of [`CLASSES`], then what is left of in and out.
#[track_caller]
fn check(requests: &[Request], pairs: [u64; 4], left: (u64, u64)) -> Sidecar {
    let found = sidecar(requests);
    let of = |class| found.pairs.get(&class).map_or(0, |times| times.pairs);
    assert_eq!(CLASSES.map(of), pairs, "{found:#?}");
    assert_eq!(
        (found.unmatched_in, found.unmatched_out),
        left,
        "{found:#?}"
    );
    found
}

#[test]
fn the_time_of_a_pair_is_split() {
    let found = check(
        &[came(10, 40).id("a"), went(14, 33).id("a")],
        [1, 0, 0, 0],
        (0, 0),
    );
    let times = &found.pairs[&MatchClass::RequestId];
    assert_eq!(times.read_wait_ns.sum, MS / 4);
    assert_eq!(times.to_upstream_ns.sum, 4 * MS);
    assert_eq!(times.upstream_ns.sum, 18 * MS);
    assert_eq!(times.answer_wait_ns.sum, MS / 4);
    assert_eq!(times.to_client_ns.sum, 7 * MS);
    assert_eq!(times.inside_ns.sum, 11 * MS);
    assert_eq!(times.whole_ns.sum, 30 * MS + MS / 4);
    assert_eq!(found.process.pid, Some(PID));
    assert_eq!(found.process.comm, "envoy");
}

#[test]
fn means_need_no_pairs() {
    // Nothing ties these together, and they overlap.
    let requests = [
        came(10, 30),
        came(11, 31),
        went(12, 28).path(7),
        went(13, 27).path(8),
    ];
    let found = check(&requests, [0, 0, 0, 0], (2, 2));
    assert_eq!(found.mean_ns(), Some(5 * MS));
}

#[test]
fn a_process_that_waits_for_several_at_once_has_no_mean() {
    let requests = [came(10, 20), went(11, 19).path(3), went(11, 19).path(4)];
    assert_eq!(sidecar(&requests).mean_ns(), None);
}

#[test]
fn ids_tell_what_order_would_get_wrong() {
    // The later one overtakes.
    let requests = [
        came(10, 90).id("a"),
        came(11, 40).id("b"),
        went(12, 38).id("b"),
        went(15, 80).id("a"),
    ];
    let found = check(&requests, [2, 0, 0, 0], (0, 0));
    assert_eq!(
        found.pairs[&MatchClass::RequestId].inside_ns.sum,
        (80 - 65 + 29 - 26) * MS
    );
}

#[test]
fn the_trace_ties_where_there_is_no_id() {
    let requests = [
        came(10, 40).trace("t"),
        came(10, 40).trace("u"),
        went(12, 38).trace("u").path(9),
        went(13, 37).trace("t").path(9),
    ];
    check(&requests, [0, 2, 0, 0], (0, 0));
}

#[test]
fn what_is_alike_on_one_thread_and_alone_belongs_together() {
    let requests = [
        came(10, 40).path(1),
        came(10, 40).path(2),
        went(12, 38).path(2),
        went(13, 37).path(1),
    ];
    check(&requests, [0, 0, 2, 0], (0, 0));
    let other_thread = [came(10, 40), went(12, 38).tid(PID + 1)];
    check(&other_thread, [0, 0, 0, 0], (1, 1));
}

#[test]
fn several_that_fit_equally_well_are_told_as_order() {
    let requests = [came(10, 40), came(11, 41), went(12, 35), went(13, 36)];
    let found = check(&requests, [0, 0, 0, 2], (0, 0));
    // Whichever belongs to which, the sum is the same.
    assert_eq!(
        found.pairs[&MatchClass::Order].inside_ns.sum,
        (60 - 46) * MS
    );
    assert_eq!(found.trusted().pairs, 0);
}

#[test]
fn one_after_the_other_nothing_is_tied() {
    let requests = [came(10, 20), went(11, 19), came(30, 40), went(31, 39)];
    check(&requests, [0, 0, 2, 0], (0, 0));
}

#[test]
fn a_request_that_comes_back_from_the_application_is_the_inner_one() {
    // In to the application, which asks through the same proxy, with the same id.
    let requests = [
        came(10, 90).id("a"),
        went(12, 88).id("a"),
        came(30, 70).id("a"),
        went(33, 66).id("a"),
    ];
    let found = check(&requests, [2, 0, 0, 0], (0, 0));
    let inside = &found.pairs[&MatchClass::RequestId].inside_ns;
    assert_eq!(
        (inside.least, inside.greatest),
        (Some(4 * MS), Some(7 * MS))
    );
}

#[test]
fn a_request_that_is_sent_again_is_no_pair() {
    let by_id = [
        came(10, 90).id("a"),
        went(12, 30).id("a"),
        went(40, 80).id("a"),
    ];
    check(&by_id, [0, 0, 0, 0], (1, 2));
    let alike = [came(10, 90), went(12, 30), went(40, 80)];
    check(&alike, [0, 0, 0, 0], (1, 2));
}

#[test]
fn what_is_answered_here_has_no_other_half() {
    let requests = [
        came(10, 12).id("a"),
        came(20, 30).id("b"),
        went(21, 29).id("b"),
    ];
    check(&requests, [1, 0, 0, 0], (1, 0));
}

#[test]
fn a_request_that_outlives_the_one_that_came_in_does_not_belong_to_it() {
    check(
        &[came(10, 20).id("a"), went(12, 25).id("a")],
        [0, 0, 0, 0],
        (1, 1),
    );
}

#[test]
fn the_header_is_held_against_what_was_measured() {
    let said = |upstream_ms, id| Request {
        upstream_ms: Some(upstream_ms),
        ..came(10, 40).id(id)
    };
    let requests = [
        said(18, "a"),
        went(14, 33).id("a"),
        said(90, "b"),
        went(14, 33).id("b"),
    ];
    let header = check(&requests, [2, 0, 0, 0], (0, 0)).upstream_header;
    assert_eq!((header.pairs, header.agreeing), (2, 1));
    assert_eq!(header.header_ms, 108);
    assert_eq!(header.measured_ns, 36 * MS);
}

#[test]
fn the_other_half_may_come_with_the_next_report() {
    let mut sidecars = Sidecars::default();
    take(&mut sidecars, &came(10, 40).id("a"));
    sidecars.pair(false);
    take(&mut sidecars, &went(14, 33).id("a"));
    sidecars.pair(false);
    sidecars.pair(false);
    let rows = sidecars.rows();
    assert_eq!(rows[0].pairs[&MatchClass::RequestId].pairs, 1);
    assert_eq!(sidecars.waiting, 0);
}

#[test]
fn a_request_that_has_just_ended_makes_others_less_certain() {
    let mut sidecars = Sidecars::default();
    for request in [came(10, 40), came(13, 50)] {
        take(&mut sidecars, &request);
    }
    sidecars.pair(false);
    // The first that went out belongs to the last that came.
    take(&mut sidecars, &came(11, 45));
    for request in [went(12, 39), went(14, 38), went(15, 48)] {
        take(&mut sidecars, &request);
    }
    sidecars.pair(false);
    sidecars.pair(true);
    let row = sidecars.rows().remove(0);
    let of = |class| row.pairs.get(&class).map_or(0, |times| times.pairs);
    assert_eq!(CLASSES.map(of), [0, 0, 1, 2], "{row:#?}");
    assert_eq!((row.unmatched_in, row.unmatched_out), (0, 0));
}

#[test]
fn what_waits_in_vain_is_dropped_and_counted() {
    let mut sidecars = Sidecars::default();
    take(&mut sidecars, &went(14, 33));
    for _ in 0..6 {
        sidecars.pair(false);
    }
    assert_eq!(sidecars.waiting, 0);
    // No request came into it, so it is not a sidecar.
    assert!(sidecars.rows().is_empty());
    take(&mut sidecars, &came(50, 60));
    assert_eq!(sidecars.rows()[0].unmatched_out, 1);
}

#[test]
fn pairs_are_kept_one_by_one_where_every_request_is() {
    let matched = |keep| {
        let mut sidecars = Sidecars::new(keep);
        for request in [came(10, 40).stream(7), went(14, 33).stream(9)] {
            take(&mut sidecars, &request);
        }
        sidecars.pair(true);
        sidecars.rows().remove(0).matched
    };
    let places: Vec<_> = matched(Keep::All)
        .iter()
        .map(|pair| (pair.class, pair.inner.stream, pair.outer.stream))
        .collect();
    assert_eq!(places, [(MatchClass::Fingerprint, 7, 9)]);
    assert!(matched(Keep::SlowAndFailing).is_empty());
}

#[test]
fn halves_beyond_the_room_are_counted() {
    let mut sidecars = Sidecars::default();
    for number in 0..MAX_HALVES as u64 + 7 {
        take(&mut sidecars, &came(10 + number, 40 + number));
    }
    take(&mut sidecars, &went(14, 33).path(5));
    assert_eq!(sidecars.rows()[0].forgotten, 7);
}

#[test]
fn pairs_of_many_at_once_are_right_by_their_paths() {
    // 64 at a time for some seconds: what order gets wrong.
    let mut requests = Vec::new();
    for number in 0..4000_u64 {
        let begin = 10 + number;
        let took = 40 + number * 7919 % 60;
        requests.push(came(begin, begin + took + 3).path(number));
        requests.push(went(begin + 1, begin + 1 + took).path(number));
    }
    let found = check(&requests, [0, 0, 4000, 0], (0, 0));
    let inside = &found.pairs[&MatchClass::Fingerprint].inside_ns;
    assert_eq!(
        (inside.least, inside.greatest),
        (Some(3 * MS), Some(3 * MS))
    );
}
