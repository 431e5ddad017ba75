//! Cases in which a profiler of requests is easily wrong, against programs that count themselves: connections that are
//! older than the task, answers larger than what is captured, short connections, uploads. An answer may be
//! incomplete if it says so; it must not be wrong.
//!
//! The step `requests-truth` runs them in their short form, `cargo xtask bench truth` in the long one, which writes the
//! table of docs/truth.md.

mod estimates;
mod http;
mod http2;
mod judge;
mod stores;
mod tls;
mod unix;

use std::path::Path;

use anyhow::Result;

pub use judge::{Counted, Row, Truth, Verdict, View, judge};

/// How much is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// In the test command.
    Short,
    /// In the bench.
    Long,
}

impl Length {
    fn times(self, short: u64, long: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }
}

/// One case: makes its peers in a folder of its own, watches the ends and judges.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub run: fn(&Path, View, Length) -> Result<Row>,
    pub views: &'static [View],
}

const BOTH_ENDS: &[View] = &View::ALL;

/// Every case.
pub const CASES: &[Case] = &[
    Case {
        name: "upload of 8 MB in one write, read at 4 MB/s",
        run: http::upload,
        views: BOTH_ENDS,
    },
    Case {
        name: "answers in chunks",
        run: http::answers_in_chunks,
        views: BOTH_ENDS,
    },
    Case {
        name: "requests in chunks",
        run: http::requests_in_chunks,
        views: BOTH_ENDS,
    },
    Case {
        name: "heads longer than what is captured",
        run: http::long_heads,
        views: BOTH_ENDS,
    },
    Case {
        name: "short connections, four at once",
        run: http::short_connections,
        views: BOTH_ENDS,
    },
    Case {
        name: "gunicorn, chunks until the connection is closed",
        run: http::chunks_until_close,
        views: BOTH_ENDS,
    },
    Case {
        name: "MPTCP",
        run: http::over_mptcp,
        views: BOTH_ENDS,
    },
    Case {
        name: "gunicorn over a Unix socket",
        run: unix::http,
        views: BOTH_ENDS,
    },
    Case {
        name: "OpenSSL of nginx, short connections of two clients",
        run: tls::short_to_nginx,
        views: &[View::Server],
    },
    Case {
        name: "OpenSSL of HAProxy, short connections of two clients",
        run: tls::short_to_haproxy,
        views: &[View::Server],
    },
    Case {
        name: "OpenSSL of gunicorn, short connections of two clients",
        run: tls::short_to_gunicorn,
        views: &[View::Server],
    },
    Case {
        name: "TLS of Java",
        run: tls::java,
        views: &[View::Server],
    },
    Case {
        name: "OpenSSL joined late under load",
        run: tls::late,
        views: BOTH_ENDS,
    },
    Case {
        name: "HTTP/2 of Go joined late",
        run: http2::late_http2,
        views: BOTH_ENDS,
    },
    Case {
        name: "gRPC of tonic joined late, half of the calls fail",
        run: http2::late_grpc,
        views: BOTH_ENDS,
    },
    Case {
        name: "gRPC of grpcio joined late, half of the calls fail",
        run: http2::late_grpcio,
        views: BOTH_ENDS,
    },
    Case {
        name: "gRPC of grpcio, with percentiles",
        run: http2::fresh_grpcio,
        views: BOTH_ENDS,
    },
    Case {
        name: "gRPC of grpc-go joined late, half of the calls fail",
        run: http2::late_grpc_go,
        views: BOTH_ENDS,
    },
    Case {
        name: "HTTP/2: answers of 100 KB",
        run: http2::large_answers,
        views: BOTH_ENDS,
    },
    Case {
        name: "Redis: LRANGE above the captured bytes, ECHO between",
        run: stores::redis_large,
        views: BOTH_ENDS,
    },
    Case {
        name: "Redis: pipelines of 100",
        run: stores::redis_pipelines,
        views: BOTH_ENDS,
    },
    Case {
        name: "Redis over its Unix socket",
        run: unix::redis,
        views: BOTH_ENDS,
    },
    Case {
        name: "MariaDB joined late",
        run: stores::late_mariadb,
        views: BOTH_ENDS,
    },
    Case {
        name: "MariaDB: prepared statements joined late",
        run: stores::late_prepared,
        views: BOTH_ENDS,
    },
    Case {
        name: "PostgreSQL: answers of 20 rows of 100 bytes",
        run: stores::postgresql_large,
        views: BOTH_ENDS,
    },
    Case {
        name: "PostgreSQL over its Unix socket",
        run: unix::postgresql,
        views: BOTH_ENDS,
    },
    Case {
        name: "at 10 % of a CPU, HTTP/2 over four connections",
        run: estimates::of_few_connections,
        views: BOTH_ENDS,
    },
    Case {
        name: "at 10 % of a CPU, short connections",
        run: estimates::of_short_connections,
        views: BOTH_ENDS,
    },
    Case {
        name: "at 10 % of a CPU, short connections, large answers before small ones",
        run: estimates::of_short_connections_that_change,
        views: BOTH_ENDS,
    },
    Case {
        name: "at 10 % of a CPU, four connections, large answers before small ones",
        run: estimates::of_connections_that_change,
        views: BOTH_ENDS,
    },
    Case {
        name: "at 10 % of a CPU, answers after 100 ms beside four busy connections",
        run: estimates::of_slow_answers,
        views: &[View::Server],
    },
];
