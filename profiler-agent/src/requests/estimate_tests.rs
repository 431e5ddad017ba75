use std::net::Ipv4Addr;

use super::*;

/// What one connection does in each of ten seconds: requests, and bytes of each.
type Seconds = [(u64, u64); 10];

/// Repeatable, as good as random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Captures each second of each connection where `is_captured` says so; the estimate, and its variance.
fn estimate(
    connections: &[Seconds],
    mut is_captured: impl FnMut(usize, usize) -> bool,
) -> (u64, Option<u64>) {
    let (mut coverage, mut requests, mut bytes) =
        (Coverage::default(), Grouped::default(), Grouped::default());
    let mut seen = 0;
    for (number, seconds) in connections.iter().enumerate() {
        let port = 40_000 + u16::try_from(number).unwrap();
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (mut traffic, mut moved) = (Traffic::default(), Groups::default());
        for (second, (count, size)) in seconds.iter().enumerate() {
            traffic.moved += count * size;
            if !is_captured(number, second) {
                continue;
            }
            for one in 0..*count {
                let at_ns = second as u64 * 1_000_000_000 + one * 1_000_000_000 / count;
                requests.add(at_ns, client);
                moved.add_at(at_ns, *size);
            }
            traffic.captured += count * size;
            seen += count;
        }
        coverage.add(traffic);
        bytes.add_all(&moved, Some(client));
    }
    let all = coverage.factor().map_or(0, |factor| times(seen, factor));
    (all, coverage.variance(&requests, &bytes))
}

#[test]
fn what_was_captured_whole_is_exact() {
    let connections = [[(7, 100); 10], [(1, 5000); 10]];
    assert_eq!(estimate(&connections, |_, _| true), (80, Some(0)));
}

#[test]
fn one_connection_in_parts_stands_for_all_of_itself() {
    let connections = [[(1000, 300); 10]];
    let (all, variance) = estimate(&connections, |_, second| second % 2 == 0);
    assert_eq!(all, 10_000);
    // Ends of sums in floating point.
    assert!(variance <= Some(1), "{variance:?}");
    // Of the first two seconds nobody knows how the others were.
    let (all, variance) = estimate(&connections, |_, second| second < 2);
    assert_eq!((all, variance), (10_000, None));
}

#[test]
fn little_says_nothing_of_how_far_off_it_is() {
    // Three connections, two of which were never captured.
    let connections = [[(100, 300); 10]; 3];
    let (all, variance) = estimate(&connections, |number, _| number == 0);
    assert_eq!((all, variance), (3000, None));
    assert_eq!(estimate(&connections, |_, _| false), (0, None));
}

/// Draws what is captured many times, and looks how often the truth lies in the interval.
fn check(
    connections: usize,
    mut draw: impl FnMut(&mut Dice) -> Box<dyn FnMut(usize, usize) -> bool>,
) {
    const ROUNDS: u64 = 300;
    let mut dice = Dice(7);
    let mut held = 0;
    for _ in 0..ROUNDS {
        let all: Vec<Seconds> = (0..connections)
            .map(|_| std::array::from_fn(|_| (20 + dice.below(30), 200 + dice.below(2000))))
            .collect();
        let truth: u64 = all.iter().flatten().map(|(count, _)| count).sum();
        let captured = draw(&mut dice);
        let (estimate, variance) = estimate(&all, captured);
        let half = 1.96 * float(variance.unwrap()).sqrt();
        held += u64::from(float(estimate.abs_diff(truth)) <= half);
    }
    let percent = held * 100 / ROUNDS;
    assert!((88..=99).contains(&percent), "{percent} %");
}

#[test]
fn intervals_of_many_connections_hold_the_truth() {
    check(200, |dice| {
        let taken: Vec<bool> = (0..200).map(|_| dice.below(4) == 0).collect();
        Box::new(move |number, _| taken[number])
    });
}

#[test]
fn intervals_of_few_connections_hold_the_truth() {
    check(3, |dice| {
        let taken: Vec<bool> = (0..30).map(|_| dice.below(3) == 0).collect();
        // Each for some time.
        Box::new(move |number, second| {
            second == number || second == 9 - number || taken[number * 10 + second]
        })
    });
}
