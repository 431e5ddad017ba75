//! Requests as programs count them that take part, where a profiler is easily wrong: each case must be exact, or say
//! what is missing. The cases are in `profiler_tests::request_truth`; the bench runs them in their long form.

use std::collections::HashSet;

use profiler_tests::{
    assert_measured,
    cleanup::scratch_directory,
    request_truth::{CASES, Length, Verdict},
};

/// Runs every view of one case; those that are wrong and do not say so.
fn silent_views(name: &str) -> Vec<String> {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("no case {name:?}"));
    let mut silent = Vec::new();
    for view in case.views {
        let (folder, _guard) = scratch_directory("truth").unwrap();
        let row = (case.run)(&folder, *view, Length::Short).unwrap();
        println!(
            "{name}, {view}: {} of {}: {}",
            row.told, row.truth, row.verdict
        );
        if row.verdict == Verdict::Silent {
            silent.push(format!("{view}: told {}, truth {}", row.told, row.truth));
        }
    }
    silent
}

/// For cases in which everything is seen.
fn check_count(name: &str) {
    let silent = silent_views(name);
    assert!(silent.is_empty(), "{name}: {silent:#?}");
}

/// For cases in which connections are sampled: an estimate may miss by chance, and does not twice.
fn check_estimate(name: &str) {
    let silent = silent_views(name);
    assert_measured!(silent.is_empty(), "{name}: {silent:#?}");
}

/// A test for each case, and the names of all of them.
macro_rules! cases {
    ($check:ident; $($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                super::$check($name);
            }
        )*

        pub(super) const NAMES: &[&str] = &[$($name),*];
    };
}

#[test]
fn every_case_is_a_test() {
    let tested: HashSet<&str> = [exact::NAMES, alone::NAMES].concat().into_iter().collect();
    let cases: HashSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(cases, tested);
}

mod exact {
    cases! {
        check_count;
        bytes_of_answers_in_chunks: "answers in chunks",
        bytes_of_requests_in_chunks: "requests in chunks",
        heads_that_are_longer_than_what_is_captured: "heads longer than what is captured",
        short_connections_are_all_counted: "short connections, four at once",
        chunks_until_the_connection_is_closed: "gunicorn, chunks until the connection is closed",
        requests_over_mptcp: "MPTCP",
        requests_over_a_unix_socket: "gunicorn over a Unix socket",
        short_connections_over_tls: "OpenSSL of nginx, short connections of two clients",
        short_connections_over_tls_of_haproxy: "OpenSSL of HAProxy, short connections of two clients",
        short_connections_over_tls_of_python: "OpenSSL of gunicorn, short connections of two clients",
        what_java_encrypts_is_said: "TLS of Java",
        tls_joined_late_under_load: "OpenSSL joined late under load",
        http2_of_go_joined_late: "HTTP/2 of Go joined late",
        grpc_of_tonic_joined_late: "gRPC of tonic joined late, half of the calls fail",
        grpc_of_grpcio_joined_late: "gRPC of grpcio joined late, half of the calls fail",
        grpc_of_grpcio_with_percentiles: "gRPC of grpcio, with percentiles",
        grpc_of_grpc_go_joined_late: "gRPC of grpc-go joined late, half of the calls fail",
        http2_answers_above_the_captured_bytes: "HTTP/2: answers of 100 KB",
        redis_answers_above_the_captured_bytes: "Redis: LRANGE above the captured bytes, ECHO between",
        redis_pipelines: "Redis: pipelines of 100",
        redis_over_its_unix_socket: "Redis over its Unix socket",
        mariadb_joined_late: "MariaDB joined late",
        statements_that_were_prepared_before: "MariaDB: prepared statements joined late",
        postgresql_answers_above_the_captured_bytes: "PostgreSQL: answers of 20 rows of 100 bytes",
        postgresql_over_its_unix_socket: "PostgreSQL over its Unix socket",
    }
}

/// Cases that judge times, or how much may be read in a share of a CPU.
mod alone {
    cases! {
        check_estimate;
        uploads_take_as_long_as_for_the_client: "upload of 8 MB in one write, read at 4 MB/s",
        estimates_of_few_connections: "at 10 % of a CPU, HTTP/2 over four connections",
        estimates_of_short_connections: "at 10 % of a CPU, short connections",
        estimates_of_short_connections_that_change: "at 10 % of a CPU, short connections, large answers before small ones",
        estimates_of_connections_that_change: "at 10 % of a CPU, four connections, large answers before small ones",
        slow_answers_beside_busy_connections: "at 10 % of a CPU, answers after 100 ms beside four busy connections",
    }
}
