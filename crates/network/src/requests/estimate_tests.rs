use super::*;

/// What all connections did in one span: requests, bytes of each, and how many of the requests were captured.
type Second = (u64, u64, u64);

/// Connections that have ended since the last report, and those that are open.
fn report(coverage: &mut Coverage, ended: Traffic, open: Traffic, span: usize) {
    coverage.forget_open();
    coverage.add(ended, true);
    coverage.add(open, false);
    coverage.report(span);
}

fn estimate(seconds: &[Second]) -> Option<u64> {
    let (mut spans, mut coverage, mut seen) =
        (Spans::default(), Coverage::default(), PerSpan::default());
    let mut open = Traffic::default();
    let mut sum = 0;
    for (second, (requests, size, captured)) in (1..).zip(seconds) {
        *seen.at(spans.last()) += captured;
        sum += captured;
        open.moved += requests * size;
        open.captured += captured * size;
        report(&mut coverage, Traffic::default(), open, spans.last());
        if spans.report(second * 1_000_000_000) {
            coverage.halve();
            seen.halve();
        }
    }
    assert_eq!(
        coverage.is_whole(),
        seconds.iter().all(|(all, _, captured)| all == captured)
    );
    coverage.factor(&seen).map(|factor| times(sum, factor))
}

#[test]
fn a_part_stands_for_all_of_its_span() {
    assert_eq!(estimate(&[(7, 100, 7), (1, 5000, 1)]), Some(8));
    assert_eq!(estimate(&[(1000, 300, 10); 10]), Some(10_000));
    // One change of the mix; large requests are captured whole, small ones hardly.
    assert_eq!(
        estimate(&[(2000, 20_000, 2000), (60_000, 200, 600)]),
        Some(62_000)
    );
    assert_eq!(estimate(&[(1000, 300, 0); 2]), None);
}

#[test]
fn spans_without_captured_bytes_go_with_the_one_before() {
    let like_before = [(10, 100, 10), (1000, 50, 10), (1000, 50, 0), (10, 100, 10)];
    assert_eq!(estimate(&like_before), Some(2020));
    // The first ones go with the one that follows.
    assert_eq!(estimate(&[(5, 100, 0), (5, 100, 5), (3, 10, 3)]), Some(13));
}

#[test]
fn an_edge_of_two_takes_the_bytes_of_both() {
    let traffic = |moved, captured| Traffic { moved, captured };
    let (mut one, mut other) = (Coverage::default(), Coverage::default());
    report(&mut one, traffic(10, 10), traffic(100, 50), 0);
    report(&mut other, Traffic::default(), traffic(40, 0), 1);
    one.merge(&other);
    // The connections of both are open, and one of them ends.
    report(&mut one, traffic(60, 20), traffic(120, 40), 2);
    let mut seen = PerSpan::default();
    (*seen.at(0), *seen.at(2)) = (6, 1);
    // 110 and 40 moved and 60 captured, then 40 and 10.
    assert_eq!(one.factor(&seen).map(|factor| times(7, factor)), Some(19));
}

#[test]
fn full_spans_are_merged_in_pairs() {
    let mut spans = Spans::default();
    let mut reports = PerSpan::default();
    for second in 1..=1000 {
        *reports.at(spans.last()) += 1_u64;
        if spans.report(second) {
            reports.halve();
        }
    }
    assert!((SPANS / 2..SPANS).contains(&spans.last()));
    assert_eq!(reports.0.iter().sum::<u64>(), 1000);
    // Of each second the span in which it was counted.
    let mut again = PerSpan::<u64>::default();
    for second in 1..=1000 {
        *again.at(spans.of(second)) += 1;
    }
    assert_eq!(again.0, reports.0);
    assert_eq!(spans.of(5000), spans.last());
}
