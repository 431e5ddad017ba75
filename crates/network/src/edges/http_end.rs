//! Requests of HTTP/1 that the kernel counted at one end of a connection.

use profiler_common::{
    http::{
        ANSWERED, ASKED, AT_CLIENT, AT_SERVER, CLASSES, END, HttpCounts, NONE, TOOK_UNIT_NS,
        UNSURE, bucket_from_ns, class_of,
    },
    network::{Connection, DIRECTION_CLIENT, DIRECTION_SERVER},
};
use profiler_model::{Outcomes, SeenBy, Spread};

/// First digit of the statuses of upgrades, which the decoders count as what follows them.
const UPGRADE: u32 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpEnd {
    pub seen_by: SeenBy,
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
        let is_sure = http & UNSURE == 0;
        let seen_by = match (http & END, connection.direction) {
            (AT_CLIENT, _) => SeenBy::Client,
            (AT_SERVER, _) => SeenBy::Server,
            (NONE, DIRECTION_CLIENT) if !is_sure => SeenBy::Client,
            (NONE, DIRECTION_SERVER) if !is_sure => SeenBy::Server,
            _ => return None,
        };
        let mut end = Self {
            seen_by,
            outcomes: Outcomes::default(),
            latency_ns: Spread::default(),
            is_sure,
        };
        if http & ANSWERED != 0 && class_of(http) != UPGRADE {
            end.outcomes.add_class(class_of(http), 1);
            end.latency_ns
                .add(u64::from(connection.http_took) * TOOK_UNIT_NS);
        }
        let has_ended = connection.header.kind != 0;
        end.outcomes.broken += u64::from(has_ended && http & ASKED != 0);
        Some(end)
    }

    /// Adds the requests before the last one.
    pub(super) fn add(&mut self, counts: &HttpCounts) {
        for (class, times) in (0..).zip(counts.answers) {
            if class != UPGRADE {
                self.outcomes.add_class(class, u64::from(times));
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

const _: () = assert!(CLASSES == 6);

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
        assert_eq!((answered.seen_by, answered.is_sure), (SeenBy::Server, true));
        assert_eq!(answered.outcomes.client_error, 1);
        assert_eq!(
            (answered.latency_ns.count, answered.latency_ns.sum),
            (1, 640)
        );
        let asked = end(AT_CLIENT | ASKED, false);
        assert_eq!((asked.seen_by, asked.outcomes.all()), (SeenBy::Client, 0));
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
        assert_eq!((unread.seen_by, unread.is_sure), (SeenBy::Server, false));
    }

    #[test]
    fn requests_before_the_last_one_are_added() {
        let mut counts = HttpCounts {
            sum_ns: 3_000,
            least_ns: 1_024,
            greatest_ns: 1_976,
            answers: [1, 7, 1, 0, 0, 0],
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
