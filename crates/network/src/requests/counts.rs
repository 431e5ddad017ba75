//! Requests of one operation, and what they stand for where some were not captured.

use std::collections::BTreeMap;

use profiler_protocols::Status;

use super::{
    estimate::{Coverage, PerSpan, times},
    operations::Counted,
    seen::Seen,
};
use profiler_model::{Outcomes, SeenBy, Tally, Timings};

/// Different statuses of one operation that are told apart.
pub(super) const MAX_STATUSES: usize = 24;
/// Client ports of one operation that are told apart while connections are sampled; with more the interval is not
/// known.
const MAX_SAMPLED_PORTS: usize = 8192;
/// With fewer it would promise too much.
const LEAST_SAMPLED_PORTS: usize = 10;
pub(super) const OTHER: &str = "other";

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Requests that were seen.
    tally: Tally,
    server_only: u64,
    pub(super) client: Timings,
    pub(super) server: Timings,
    /// The same by the span in which they ended.
    seen: PerSpan<u64>,
    /// Since some connections are not captured.
    sampled: Option<Box<Sampled>>,
}

/// Each request stands for as many as connections stood for its own.
#[derive(Clone, Debug, Default)]
struct Sampled {
    /// With those from before.
    tally: Tally,
    server_only: u64,
    /// By what decided that their connection was captured, and of how many connections one was captured then.
    parts: BTreeMap<(Draw, u32), u64>,
    /// There was no room for some of them.
    is_cut: bool,
}

/// What decides whether a connection is captured. All connections with the same client port are captured or none is, so
/// each port is one draw, however often it is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Draw {
    Port(u16),
    /// Unix sockets have no ports.
    Cookie(u64),
}

impl Draw {
    fn of(seen: &Seen) -> Self {
        match seen.client.port() {
            0 => Self::Cookie(seen.cookie),
            port => Self::Port(port),
        }
    }
}

impl Sampled {
    fn add(&mut self, draw: Draw, one_of: u32, requests: u64) {
        let key = (draw, one_of);
        if self.parts.len() < MAX_SAMPLED_PORTS || self.parts.contains_key(&key) {
            *self.parts.entry(key).or_default() += requests;
        } else {
            self.is_cut = true;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.is_cut |= other.is_cut;
        merge_tally(&mut self.tally, &other.tally);
        self.server_only += other.server_only;
        for ((draw, one_of), requests) in &other.parts {
            self.add(*draw, *one_of, *requests);
        }
    }

    /// Of the sum that draws stand for. `None`: not known, as few or none were captured when `fewest`, one in so many,
    /// were.
    ///
    /// Each draw has the same chance 1/n: of `y` requests that a captured one had, `n * (n - 1) * y^2` comes to the variance
    /// of the sum of all `n * y` (Horvitz and Thompson 1952, for independent draws). Where n changes meanwhile, those that
    /// are captured at the larger one are among those of the smaller: `y` requests at n and `z` at m > n bring
    /// `2 * m * (n - 1) * y * z` as well.
    fn variance(&self, fewest: u32) -> Option<u64> {
        let at_fewest = self.parts.keys().filter(|(_, one_of)| *one_of == fewest);
        if self.is_cut || (fewest > 1 && at_fewest.count() < LEAST_SAMPLED_PORTS) {
            return None;
        }
        // In their order, so that those of one draw stand together, the smaller n first.
        let parts: Vec<(Draw, u64, u64)> = self
            .parts
            .iter()
            .map(|((draw, one_of), requests)| (*draw, u64::from(*one_of), *requests))
            .collect();
        let mut variance: u64 = 0;
        for parts in parts.chunk_by(|one, next| one.0 == next.0) {
            // Sum of `(n - 1) * y` before the part.
            let mut before: u64 = 0;
            for (_draw, of, requests) in parts {
                let own = of.saturating_sub(1).saturating_mul(*requests);
                let with = own.saturating_add(before.saturating_mul(2));
                let part = of.saturating_mul(*requests).saturating_mul(with);
                variance = variance.saturating_add(part);
                before = before.saturating_add(own);
            }
        }
        Some(variance)
    }
}

impl Counts {
    pub(super) fn add(&mut self, seen: &Seen, counted: Counted, span: usize) {
        let timings = match seen.seen_by {
            SeenBy::Client => &mut self.client,
            SeenBy::Server => &mut self.server,
        };
        let exchange = &seen.exchange;
        timings.count += 1;
        // What nobody answers, as Kafka's records without acknowledgements, takes no time that could be told.
        if let Some(first) = exchange.first_byte_ns.filter(|_| seen.is_whole()) {
            timings.latency_ns.add(exchange.duration_ns());
            let until = first.saturating_sub(exchange.begin_ns);
            timings.first_byte_ns.add(until);
        }
        if counted == Counted::Here {
            let is_server = u64::from(seen.seen_by == SeenBy::Server);
            if seen.one_of > 1 {
                self.start_sampling();
            }
            self.server_only += is_server;
            add_to_tally(&mut self.tally, seen, 1);
            *self.seen.at(span) += 1;
            if let Some(sampled) = &mut self.sampled {
                let of = u64::from(seen.one_of);
                sampled.server_only += is_server * of;
                add_to_tally(&mut sampled.tally, seen, of);
                if seen.one_of > 1 {
                    sampled.add(Draw::of(seen), seen.one_of, 1);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let Self {
            tally,
            server_only,
            client,
            server,
            seen,
            sampled,
        } = other;
        if sampled.is_some() || self.sampled.is_some() {
            let others = other.stood_for();
            self.start_sampling().merge(&others);
        }
        self.seen.merge(seen);
        self.server_only += server_only;
        for (sum, more) in [(&mut self.client, client), (&mut self.server, server)] {
            sum.count += more.count;
            sum.latency_ns.merge(&more.latency_ns);
            sum.first_byte_ns.merge(&more.first_byte_ns);
        }
        merge_tally(&mut self.tally, tally);
    }

    pub(super) fn halve_spans(&mut self) {
        self.seen.halve();
    }

    fn start_sampling(&mut self) -> &mut Sampled {
        let (tally, server_only) = (&self.tally, self.server_only);
        self.sampled.get_or_insert_with(|| {
            Box::new(Sampled {
                tally: tally.clone(),
                server_only,
                ..Sampled::default()
            })
        })
    }

    /// What its requests stand for by the chance of their connections.
    fn stood_for(&self) -> Sampled {
        match &self.sampled {
            Some(sampled) => sampled.as_ref().clone(),
            None => Sampled {
                tally: self.tally.clone(),
                server_only: self.server_only,
                ..Sampled::default()
            },
        }
    }

    /// An estimate of all requests, and of those that only the server's end counts. `coverage`: the bytes of the edge,
    /// if all of them are known.
    ///
    /// The chance of connections gives an estimate with an interval if enough of them were captured. Otherwise the
    /// bytes give the better estimate, without an interval.
    pub(super) fn estimate(&self, coverage: Option<&Coverage>, fewest: u32) -> (Tally, u64) {
        let is_all = fewest <= 1 && self.sampled.is_none();
        if is_all || coverage.is_some_and(Coverage::is_whole) {
            return (self.tally.clone(), self.server_only);
        }
        let sampled = self.stood_for();
        let variance = sampled.variance(fewest);
        if variance.is_none()
            && let Some(factor) = coverage.and_then(|coverage| coverage.factor(&self.seen))
        {
            let tally = Tally {
                variance,
                ..scaled(&self.tally, factor)
            };
            // Rounding must not leave a rest where all of them are the server's.
            let server_only = match self.tally.count.saturating_sub(self.server_only) {
                0 => tally.count,
                _ => times(self.server_only, factor),
            };
            return (tally, server_only);
        }
        let tally = Tally {
            variance,
            ..sampled.tally
        };
        (tally, sampled.server_only)
    }
}

/// A request that stands for so many.
fn add_to_tally(tally: &mut Tally, seen: &Seen, of: u64) {
    let exchange = &seen.exchange;
    tally.count += of;
    tally.seen += 1;
    tally.outcomes.add(exchange.outcome, of);
    if let Some(status) = &exchange.status {
        add_status(&mut tally.statuses, &status_name(status), of);
    }
    if exchange.request_size_known {
        tally.request_bytes.add(exchange.request_bytes);
    }
    if exchange.response_size_known {
        tally.response_bytes.add(exchange.response_bytes);
    }
    if let Some(messages) = exchange.messages {
        let (to_server, to_client) = (messages.to_server, messages.to_client);
        tally.streams += of;
        tally.messages_to_server = tally
            .messages_to_server
            .saturating_add(to_server.saturating_mul(of));
        tally.messages_to_client = tally
            .messages_to_client
            .saturating_add(to_client.saturating_mul(of));
    }
}

/// Of each request so many; sizes stay those of what was seen.
fn scaled(tally: &Tally, factor: f64) -> Tally {
    let each = |number: u64| times(number, factor);
    let Outcomes {
        ok,
        client_error,
        server_error,
        broken,
        unknown,
    } = tally.outcomes;
    let outcomes = Outcomes {
        ok: each(ok),
        client_error: each(client_error),
        server_error: each(server_error),
        broken: each(broken),
        unknown: each(unknown),
    };
    let statuses = tally.statuses.iter();
    Tally {
        // The sum of the others, each rounded.
        count: outcomes.errors() + outcomes.ok + outcomes.unknown,
        outcomes,
        statuses: statuses
            .map(|(status, number)| (status.clone(), each(*number)))
            .collect(),
        streams: each(tally.streams),
        messages_to_server: each(tally.messages_to_server),
        messages_to_client: each(tally.messages_to_client),
        ..tally.clone()
    }
}

fn merge_tally(sum: &mut Tally, more: &Tally) {
    let Tally {
        count,
        seen,
        // Made of the connections of both.
        variance: _,
        outcomes,
        statuses,
        request_bytes,
        response_bytes,
        streams,
        messages_to_server,
        messages_to_client,
    } = more;
    sum.count += count;
    sum.seen += seen;
    sum.outcomes.merge(*outcomes);
    for (status, times) in statuses {
        add_status(&mut sum.statuses, status, *times);
    }
    sum.request_bytes.merge(request_bytes);
    sum.response_bytes.merge(response_bytes);
    sum.streams += streams;
    sum.messages_to_server = sum.messages_to_server.saturating_add(*messages_to_server);
    sum.messages_to_client = sum.messages_to_client.saturating_add(*messages_to_client);
}

fn add_status(statuses: &mut BTreeMap<String, u64>, status: &str, times: u64) {
    let has_room = statuses.len() < MAX_STATUSES || statuses.contains_key(status);
    let name = if has_room { status } else { OTHER };
    *statuses.entry(name.to_owned()).or_default() += times;
}

/// A status as the API has it: `404`, `grpc 14`, `NXDOMAIN`, `ok`.
pub fn status_name(status: &Status) -> String {
    match status {
        Status::Http(code) => code.to_string(),
        Status::Grpc(number) => format!("grpc {number}"),
        Status::Code(code) => code.clone(),
        Status::Fine => "ok".to_owned(),
    }
}
