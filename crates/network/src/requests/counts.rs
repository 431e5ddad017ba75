//! Requests of one operation, and what they stand for where some were not captured.

use std::collections::BTreeMap;

use profiler_protocols::Status;

use super::{
    draws::Draws,
    estimate::{Coverage, PerSpan, times},
    observed_request::ObservedRequest,
    operations::Counted,
};
use profiler_model::{Outcomes, SeenBy, Tally, Timings};

/// Distinct statuses of one operation that are counted.
pub(super) const MAX_STATUSES: usize = 24;
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
    draws: Draws,
}

impl Sampled {
    fn merge(&mut self, other: &Self) {
        merge_tally(&mut self.tally, &other.tally);
        self.server_only += other.server_only;
        self.draws.merge(&other.draws);
    }
}

impl Counts {
    pub(super) fn add(&mut self, seen: &ObservedRequest, counted: Counted, span: usize) {
        let timings = match seen.seen_by {
            SeenBy::Client => &mut self.client,
            SeenBy::Server => &mut self.server,
        };
        let exchange = &seen.exchange;
        timings.count += 1;
        // A request without an answer, as Kafka's records without acknowledgements, takes no measurable time.
        if let Some(first) = exchange.first_byte_ns.filter(|_| seen.is_whole()) {
            timings.latency_ns.add(exchange.duration_ns());
            let until = first.saturating_sub(exchange.begin_ns);
            timings.first_byte_ns.add(until);
        }
        if counted == Counted::Here {
            let is_server = u64::from(seen.seen_by == SeenBy::Server);
            if seen.drawn.one_of() > 1 {
                self.start_sampling();
            }
            self.server_only += is_server;
            add_to_tally(&mut self.tally, seen, 1);
            *self.seen.at(span) += 1;
            if let Some(sampled) = &mut self.sampled {
                let of = u64::from(seen.drawn.one_of());
                sampled.server_only += is_server * of;
                add_to_tally(&mut sampled.tally, seen, of);
                if seen.drawn.one_of() > 1 {
                    sampled.draws.add(seen);
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

    /// `None`: all of its requests were captured for certain.
    pub(super) fn draws(&self) -> Option<&Draws> {
        self.sampled.as_ref().map(|sampled| &sampled.draws)
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
        let variance = sampled.draws.variance(fewest);
        let by_bytes = coverage.and_then(|coverage| coverage.factor(&self.seen));
        if variance.is_none()
            && let Some(factor) = by_bytes
        {
            let tally = Tally {
                variance: None,
                ..scaled(&self.tally, factor)
            };
            // Rounding must not leave a rest where all of them are the server's.
            let server_only = match self.tally.count.saturating_sub(self.server_only) {
                0 => tally.count,
                _ => times(self.server_only, factor),
            };
            return (tally, server_only);
        }
        let mut tally = Tally {
            variance,
            ..sampled.tally
        };
        // What was drawn may have missed a burst, which shows in the bytes that went by at that time.
        let by_bytes = by_bytes.map(|factor| times(self.tally.count, factor));
        if by_bytes > tally.interval().1 {
            tally.variance = None;
        }
        (tally, sampled.server_only)
    }
}

/// A request that stands for several.
fn add_to_tally(tally: &mut Tally, seen: &ObservedRequest, of: u64) {
    let exchange = &seen.exchange;
    tally.count += of;
    tally.seen += 1;
    tally.outcomes.add(exchange.outcome, of);
    if let Some(status) = &exchange.status {
        let digits = match status {
            Status::Http(code) => three_digits(*code),
            Status::Grpc(_) | Status::Code(_) | Status::Fine => None,
        };
        let digits = digits
            .as_ref()
            .and_then(|digits| str::from_utf8(digits).ok());
        match digits {
            // Without a text of its own for each request.
            Some(name) => add_status(&mut tally.statuses, name, of),
            None => add_status(&mut tally.statuses, &status_name(status), of),
        }
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

/// Multiplies each request; sizes stay those of what was seen.
pub(super) fn scaled(tally: &Tally, factor: f64) -> Tally {
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
    if let Some(known) = statuses.get_mut(status) {
        *known += times;
        return;
    }
    let has_room = statuses.len() < MAX_STATUSES;
    let name = if has_room { status } else { OTHER };
    *statuses.entry(name.to_owned()).or_default() += times;
}

/// A number as it is written, if it has three digits.
fn three_digits(number: u16) -> Option<[u8; 3]> {
    if !(100..1000).contains(&number) {
        return None;
    }
    let digits = [number / 100, number / 10 % 10, number % 10].map(|digit| {
        let [low, _] = digit.to_le_bytes();
        b'0' + low
    });
    Some(digits)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_three_digits_is_its_name() {
        for code in [
            0,
            7,
            42,
            99,
            100,
            101,
            200,
            404,
            599,
            999,
            1000,
            25_500,
            u16::MAX,
        ] {
            let digits = three_digits(code);
            let name = digits.map(|digits| String::from_utf8(digits.to_vec()).unwrap());
            let expected = status_name(&Status::Http(code));
            assert_eq!(name, Some(expected).filter(|name| name.len() == 3));
        }
    }

    #[test]
    fn beyond_some_statuses_others_are_one() {
        let mut statuses = BTreeMap::new();
        for _ in 0..2 {
            for code in 200..202 + u64::try_from(MAX_STATUSES).unwrap() {
                add_status(&mut statuses, &code.to_string(), 1);
            }
        }
        assert_eq!(statuses.len(), MAX_STATUSES + 1);
        assert_eq!((statuses["200"], statuses[OTHER]), (2, 4));
    }
}
