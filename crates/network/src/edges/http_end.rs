//! Requests of HTTP that the kernel counted at one end of a connection.

use profiler_common::{
    http::{
        ANSWERED, ASKED, AT_CLIENT, AT_SERVER, BROKEN, END, HTTP2, HttpCounts, NONE, PASSED_OVER,
        TOOK_UNIT_NS, UNDECIDED, UNSURE, bucket_from_ns, class_of,
    },
    network::{Connection, DIRECTION_CLIENT, DIRECTION_SERVER},
};
use profiler_model::{Outcomes, SeenBy, Spread};
use profiler_protocols::Protocol;

/// First digit of the statuses of upgrades, which the decoders count as what follows them.
const UPGRADE: u32 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpEnd {
    /// `None`: either.
    pub seen_by: Option<SeenBy>,
    /// [`Protocol::Http1`], or [`Protocol::Http2`] for calls of gRPC as well. `None`: what it speaks could not be read, and nothing was
    /// counted.
    pub protocol: Option<Protocol>,
    pub outcomes: Outcomes,
    /// Of requests that were answered, nanoseconds.
    pub latency_ns: Spread,
    /// No request is known to be missing.
    pub is_sure: bool,
}

impl HttpEnd {
    /// The last request of a connection. `None`: it speaks something else, as far as that is known.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let http = connection.http;
        let mut is_sure = http & UNSURE == 0;
        let mut seen_by = match connection.direction {
            DIRECTION_CLIENT => Some(SeenBy::Client),
            DIRECTION_SERVER => Some(SeenBy::Server),
            _ => None,
        };
        let mut protocol = Some(if http & HTTP2 == 0 {
            Protocol::Http1
        } else {
            Protocol::Http2
        });
        match http & END {
            AT_CLIENT => seen_by = Some(SeenBy::Client),
            AT_SERVER => seen_by = Some(SeenBy::Server),
            NONE if !is_sure => protocol = None,
            // A request of HTTP/1 would have shown; one of HTTP/2 may have begun within what was passed over.
            UNDECIDED if http & PASSED_OVER != 0 => {
                is_sure = false;
                protocol = Some(Protocol::Http2);
            }
            _ => return None,
        }
        let mut end = Self {
            seen_by,
            protocol,
            outcomes: Outcomes::default(),
            latency_ns: Spread::default(),
            is_sure,
        };
        if http & ANSWERED != 0 && class_of(http) != UPGRADE {
            end.outcomes.add_class(class_of(http), 1);
            end.latency_ns
                .add(u64::from(connection.http_took) * TOOK_UNIT_NS);
        }
        if connection.header.kind != 0 {
            end.close(connection);
        }
        Some(end)
    }

    /// The connection has ended: so have the requests that were under way.
    fn close(&mut self, connection: &Connection) {
        let http = connection.http;
        if http & HTTP2 == 0 {
            self.outcomes.broken += u64::from(http & ASKED != 0);
            return;
        }
        let open = u64::from(connection.http_took);
        // The end of some may have been missed.
        if self.is_sure {
            self.outcomes.broken += open;
        } else {
            self.outcomes.unknown += open;
        }
    }

    /// Adds the requests that are over; of HTTP/1 those before the last one.
    pub(super) fn add(&mut self, counts: &HttpCounts) {
        for (class, times) in (0..).zip(counts.answers) {
            let times = u64::from(times);
            match class {
                UPGRADE => {}
                BROKEN => self.outcomes.broken += times,
                _ => self.outcomes.add_class(class, times),
            }
        }
        let times = (0..).zip(counts.times);
        let times = times.map(|(bucket, times)| (bucket_from_ns(bucket), u64::from(times)));
        self.latency_ns.merge(&Spread::of_buckets(
            counts.sum_ns,
            counts.least_ns,
            counts.greatest_ns,
            times,
        ));
    }

    /// Adds what another connection counted at the same end.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.outcomes.merge(other.outcomes);
        self.latency_ns.merge(&other.latency_ns);
        self.is_sure &= other.is_sure;
    }
}

#[cfg(test)]
mod tests {
    use profiler_common::{header::RecordHeader, http::COUNTED};

    use super::*;

    /// Bits of a status's first digit, which only the kernel side sets.
    const NOT_FOUND: u32 = 4 << 8;
    const SWITCHING: u32 = 1 << 8;

    fn connection(http: u32, has_ended: bool) -> Connection {
        Connection {
            header: RecordHeader {
                kind: u32::from(has_ended),
                ..RecordHeader::default()
            },
            http,
            http_took: 10,
            direction: DIRECTION_SERVER,
            ..Connection::default()
        }
    }

    #[test]
    fn the_last_request_is_counted_by_how_far_it_came() {
        let end = |http, has_ended| HttpEnd::of(&connection(http, has_ended)).unwrap();
        let answered = end(AT_SERVER | ANSWERED | NOT_FOUND, false);
        let seen_by = Some(SeenBy::Server);
        assert_eq!((answered.seen_by, answered.is_sure), (seen_by, true));
        assert_eq!(answered.outcomes.client_error, 1);
        assert_eq!(
            (answered.latency_ns.count, answered.latency_ns.sum),
            (1, 640)
        );
        let asked = end(AT_CLIENT | ASKED, false);
        let seen_by = Some(SeenBy::Client);
        assert_eq!((asked.seen_by, asked.outcomes.all()), (seen_by, 0));
        let broken = end(AT_CLIENT | ASKED, true);
        assert_eq!((broken.outcomes.broken, broken.latency_ns.count), (1, 0));
        let upgraded = end(AT_SERVER | ANSWERED | SWITCHING, true);
        assert_eq!(upgraded.outcomes.all(), 0);
    }

    #[test]
    fn what_speaks_something_else_counts_nothing_unless_it_could_not_be_read() {
        assert_eq!(HttpEnd::of(&connection(0, true)), None);
        assert_eq!(HttpEnd::of(&connection(NONE, true)), None);
        let unread = HttpEnd::of(&connection(NONE | UNSURE, true)).unwrap();
        assert_eq!((unread.protocol, unread.is_sure), (None, false));
        assert_eq!(unread.seen_by, Some(SeenBy::Server));
        let tried = HttpEnd::of(&connection(PASSED_OVER, false)).unwrap();
        assert_eq!(
            (tried.protocol, tried.is_sure),
            (Some(Protocol::Http2), false)
        );
    }

    #[test]
    fn streams_that_were_open_at_the_end_are_broken_as_those_that_were_reset() {
        let mut counts = HttpCounts::default();
        counts.answers[usize::try_from(BROKEN).unwrap()] = 1;
        counts.answers[0] = 4;
        let outcomes = |unsure, has_ended| {
            let http = AT_CLIENT | HTTP2 | COUNTED | unsure;
            let mut end = HttpEnd::of(&connection(http, has_ended)).unwrap();
            end.add(&counts);
            assert_eq!(end.protocol, Some(Protocol::Http2));
            (end.outcomes.broken, end.outcomes.unknown)
        };
        // Ten are under way.
        assert_eq!((outcomes(0, false), outcomes(0, true)), ((1, 4), (11, 4)));
        assert_eq!(outcomes(UNSURE, true), (1, 14));
    }

    #[test]
    fn requests_before_the_last_one_are_added() {
        let mut counts = HttpCounts {
            sum_ns: 3_000,
            least_ns: 1_024,
            greatest_ns: 1_976,
            answers: [1, 7, 1, 0, 0, 0, 0, 0],
            ..HttpCounts::default()
        };
        let bucket = profiler_common::http::time_bucket;
        counts.times[bucket(1_024)] = 1;
        counts.times[bucket(1_976)] = 1;
        let http = AT_SERVER | COUNTED | ANSWERED | NOT_FOUND;
        let mut end = HttpEnd::of(&connection(http, true)).unwrap();
        end.add(&counts);
        let outcomes = Outcomes {
            ok: 1,
            unknown: 1,
            client_error: 1,
            ..Outcomes::default()
        };
        assert_eq!(end.outcomes, outcomes);
        let latency = &end.latency_ns;
        assert_eq!((latency.count, latency.sum), (3, 3_640));
        assert_eq!((latency.least, latency.greatest), (Some(640), Some(1_976)));
    }
}
