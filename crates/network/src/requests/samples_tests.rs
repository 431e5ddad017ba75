use core::net::Ipv4Addr;

use profiler_model::{Address, Endpoint, SampleRule, SeenBy};
use profiler_protocols::{Protocol, Status};

use super::*;
use crate::requests::{Drawn, observed_request::Moved};

const SECOND: u64 = 1_000_000_000;

fn edge() -> SharedEdge {
    let end = Endpoint {
        pid: Some(1),
        start_ticks: Some(1),
        comm: "app".to_owned(),
        container: None,
        address: Address::Ip(Ipv4Addr::LOCALHOST.into()),
    };
    SharedEdge::new(EdgeKey {
        client: end.clone(),
        server: end,
        server_port: Some(80),
        original_destination: None,
    })
}

/// One with this start and duration.
fn seen(begin_ns: u64, duration_ns: u64, outcome: Outcome) -> ObservedRequest {
    ObservedRequest {
        drawn: Drawn::ALL,
        cookie: 1,
        seen_by: SeenBy::Client,
        tls: false,
        client: ([127, 0, 0, 1], 4000).into(),
        begin: Moved {
            pid: 1,
            tid: Some(2),
            ready_ns: None,
        },
        answer: None,
        exchange: Exchange {
            outcome,
            status: Some(Status::Http(200)),
            end_ns: begin_ns + duration_ns,
            ..Exchange::new(Protocol::Http1, begin_ns)
        },
    }
}

fn rows(samples: &Samples) -> Vec<RequestSample> {
    let edge = edge();
    samples.rows(&HashMap::from([(&*edge, 0)]), 1_000_000)
}

fn durations(samples: &Samples, reason: SampleReason) -> Vec<u64> {
    let mut found: Vec<u64> = rows(samples)
        .iter()
        .filter(|row| row.reason == reason)
        .map(|row| row.exchange.duration_ns())
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn the_slowest_of_each_window_are_kept() {
    let mut samples = Samples::new(Keep::SlowAndFailing, Rules::default());
    for number in 0..100 {
        // Neither in order nor backwards.
        let duration = number * 37 % 100;
        samples.add(&edge(), seen(number, duration, Outcome::Ok));
    }
    assert_eq!(
        durations(&samples, SampleReason::Slow),
        [95, 96, 97, 98, 99]
    );
    for number in 0..10 {
        samples.add(&edge(), seen(15 * SECOND + number, number, Outcome::Ok));
    }
    assert_eq!(
        durations(&samples, SampleReason::Slow),
        [5, 6, 7, 8, 9, 95, 96, 97, 98, 99]
    );
}

#[test]
fn what_is_counted_late_is_in_the_window_of_its_end() {
    let mut samples = Samples::new(Keep::SlowAndFailing, Rules::default());
    samples.add(&edge(), seen(SECOND, 3 * SECOND, Outcome::Ok));
    for number in 0..5 {
        let begin = 11 * SECOND + number;
        samples.add(&edge(), seen(begin, 5 * SECOND + number, Outcome::Ok));
        samples.add(&edge(), seen(begin, 1, Outcome::ServerError));
    }
    // Of the first window, after the second has begun.
    samples.add(&edge(), seen(2 * SECOND, 4 * SECOND, Outcome::Ok));
    samples.add(&edge(), seen(3 * SECOND, 1, Outcome::ServerError));
    samples.add(&edge(), seen(35 * SECOND, 1, Outcome::Ok));
    samples.add(&edge(), seen(25 * SECOND, 2, Outcome::Ok));
    let slow = durations(&samples, SampleReason::Slow);
    let long = [0, 1, 2, 3, 4].map(|number| 5 * SECOND + number);
    assert_eq!(
        slow,
        [[1, 2, 3 * SECOND, 4 * SECOND].as_slice(), &long].concat()
    );
    assert_eq!(durations(&samples, SampleReason::Failed).len(), 6);
}

#[test]
fn the_first_failing_ones_are_kept() {
    let mut samples = Samples::new(Keep::SlowAndFailing, Rules::default());
    for number in 0..20 {
        samples.add(&edge(), seen(number, 1, Outcome::ServerError));
    }
    let found = rows(&samples);
    let failed: Vec<_> = found
        .iter()
        .filter(|row| row.reason == SampleReason::Failed)
        .collect();
    assert_eq!(failed.len(), FAILING);
    assert!(failed.iter().all(|row| row.begin_ns < 1_000_000 + 5));
}

#[test]
fn what_was_not_seen_whole_is_not_slow() {
    let mut samples = Samples::new(Keep::SlowAndFailing, Rules::default());
    samples.add(&edge(), seen(0, 9 * SECOND, Outcome::Unknown));
    assert_eq!(rows(&samples), []);
}

#[test]
fn what_a_rule_wants_is_kept_whatever_else_there_is() {
    let rule = SampleRule {
        min_duration_ns: 50,
        ..SampleRule::default()
    };
    let rules = Rules::compile(&[rule]).unwrap();
    let mut samples = Samples::new(Keep::SlowAndFailing, rules);
    for number in 0..100 {
        samples.add(&edge(), seen(number, number, Outcome::Ok));
    }
    let wanted = durations(&samples, SampleReason::Rule(0));
    assert_eq!(wanted, (50..100).collect::<Vec<_>>());
}

#[test]
fn all_are_kept_in_order_while_there_is_room() {
    let mut samples = Samples::new(Keep::All, Rules::default());
    for number in 0..MAX_ALL as u64 + 3 {
        samples.add(&edge(), seen(number, 1, Outcome::Unknown));
    }
    let found = rows(&samples);
    assert_eq!(found.len(), MAX_ALL);
    assert!(
        found
            .iter()
            .zip(0..)
            .all(|(row, number)| row.begin_ns == 1_000_000 + number)
    );
    assert_eq!(samples.left_out, 3);
}

#[test]
fn large_texts_use_up_the_room_sooner() {
    let mut samples = Samples::new(Keep::All, Rules::default());
    for number in 0..10_000 {
        let mut large = seen(number, 1, Outcome::Ok);
        large.exchange.path = Some("x".repeat(10_000));
        samples.add(&edge(), large);
    }
    assert!(samples.kept_bytes <= MAX_BYTES);
    assert!(samples.left_out > 7000, "{}", samples.left_out);
}

#[test]
fn the_oldest_go_when_there_is_no_room() {
    let rule = SampleRule {
        min_bytes: 1,
        ..SampleRule::default()
    };
    let rules = Rules::compile(&[rule]).unwrap();
    let mut samples = Samples::new(Keep::SlowAndFailing, rules);
    for number in 0..MAX_SAMPLES as u64 + 5 {
        let mut wanted = seen(number, 1, Outcome::Ok);
        wanted.exchange.request_bytes = 1;
        samples.add(&edge(), wanted);
    }
    let found = rows(&samples);
    assert_eq!(found.len(), MAX_SAMPLES);
    assert_eq!(found[0].begin_ns, 1_000_005);
    assert_eq!(samples.left_out, 5);
}

#[test]
fn samples_go_with_their_edge() {
    let other = SharedEdge::new(EdgeKey {
        server_port: Some(81),
        ..EdgeKey::clone(&edge())
    });
    let mut samples = Samples::new(Keep::SlowAndFailing, Rules::default());
    samples.add(&other, seen(0, 5, Outcome::Ok));
    samples.add(&other, seen(20 * SECOND, 6, Outcome::Ok));
    assert!(rows(&samples).iter().all(|row| row.edge.is_none()));
    samples.rename(&other, &edge());
    assert_eq!(rows(&samples).len(), 2);
    assert!(rows(&samples).iter().all(|row| row.edge == Some(0)));
}

#[test]
fn what_is_not_wanted_would_change_nothing() {
    let outcomes = [
        Outcome::Ok,
        Outcome::ServerError,
        Outcome::Broken,
        Outcome::Unknown,
    ];
    let new = || Samples::new(Keep::SlowAndFailing, Rules::default());
    let (mut all, mut wanted) = (new(), new());
    let (mut number, mut unwanted) = (7_u64, 0);
    for step in 0..5_000 {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        let outcome = outcomes[usize::try_from(number >> 40).unwrap() % outcomes.len()];
        // Some are late by one window or two.
        let late = (number >> 50) % 25 * SECOND;
        let begin = (step * SECOND / 50).saturating_sub(late);
        let seen = seen(begin, (number >> 33) % 50, outcome);
        if wanted.wants(&edge(), &seen) {
            wanted.add(&edge(), seen.clone());
        } else {
            unwanted += 1;
        }
        all.add(&edge(), seen);
    }
    assert!(unwanted > 1_000, "{unwanted}");
    assert_eq!(rows(&all), rows(&wanted));
}
