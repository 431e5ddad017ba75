//! Steps and series of made-up tables.

use profiler_model::{Address, EdgeKey, Endpoint, SideMetrics, Transfer};

use super::*;

fn key(port: u16) -> EdgeKey {
    let end = Endpoint {
        pid: Some(1),
        start_ticks: Some(1),
        comm: String::new(),
        container: None,
        address: Address::Ip([10, 0, 0, 1].into()),
    };
    EdgeKey {
        client: end.clone(),
        server: end,
        server_port: Some(port),
        original_destination: None,
    }
}

/// Edges by port, each with its bytes written so far.
fn table(edges: &[(u16, u64)]) -> Arc<EdgeTable> {
    let edges = edges.iter().map(|(port, bytes)| Edge {
        key: key(*port),
        client_port: None,
        client_name: None,
        namespaces: profiler_model::EdgeNamespaces::default(),
        server_name: None,
        client: Some(SideMetrics {
            open: 1,
            write: Transfer {
                count: 1,
                bytes: *bytes,
            },
            ..SideMetrics::default()
        }),
        server: None,
    });
    Arc::new(EdgeTable {
        edges: edges.collect(),
        ..EdgeTable::default()
    })
}

fn cut(port: u16) -> SeriesCut {
    SeriesCut {
        edge: EdgeId::of(&key(port)),
        from_ms: None,
        to_ms: None,
        most: 100,
    }
}

fn bytes(series: &EdgeSeries) -> Vec<(u64, u64, u64)> {
    let steps = series.steps.iter();
    steps
        .map(|step| (step.from_ms, step.to_ms, step.delta.bytes()))
        .collect()
}

/// Steps of an edge 1 that grows, pauses while another works, and grows again.
fn steps() -> Vec<EdgeStep> {
    let mut recorder = StepRecorder::default();
    let tables = [
        (1000, table(&[(1, 10)])),
        (2000, table(&[(1, 10), (2, 5)])),
        // Nothing changed: no step.
        (3000, table(&[(1, 10), (2, 5)])),
        (4000, table(&[(1, 17), (2, 5)])),
        (5000, table(&[(1, 20), (2, 5)])),
    ];
    let made = tables
        .iter()
        .filter_map(|(now_ms, table)| recorder.step(table, *now_ms));
    made.collect()
}

#[test]
fn a_series_has_each_span_once_and_adds_up() {
    let mut series = EdgeSeries::default();
    for step in steps() {
        series.add(&step, &cut(1));
    }
    assert_eq!(
        bytes(&series),
        [
            (0, 1000, 10),
            (1000, 2000, 0),
            (2000, 3000, 0),
            (3000, 4000, 7),
            (4000, 5000, 3)
        ]
    );
    series.thin(2);
    assert_eq!(bytes(&series), [(0, 3000, 10), (3000, 5000, 10)]);
}

#[test]
fn a_cut_takes_every_step_that_it_touches() {
    let mut series = EdgeSeries::default();
    for step in steps() {
        let cut = SeriesCut {
            from_ms: Some(3500),
            to_ms: Some(4000),
            ..cut(1)
        };
        series.add(&step, &cut);
    }
    assert_eq!(bytes(&series), [(3000, 4000, 7)]);
}

#[test]
fn too_many_edges_at_once_come_late_and_nothing_is_lost() {
    let all: Vec<(u16, u64)> = (1..=2500).map(|port| (port, u64::from(port))).collect();
    let full = table(&all);
    let mut recorder = StepRecorder::default();
    let mut sum = 0;
    let mut late = Vec::new();
    for second in 1..=4 {
        let Some(step) = recorder.step(&full, second * 1000) else {
            continue;
        };
        assert!(step.edges.len() <= MAX_EDGES);
        assert!(step.edges.is_sorted_by_key(|(id, _)| *id));
        late.push(step.late);
        sum += step
            .edges
            .iter()
            .map(|(_, delta)| delta.bytes())
            .sum::<u64>();
    }
    assert_eq!(late, [1500, 500, 0]);
    assert_eq!(sum, (1..=2500).sum::<u64>());
}

#[test]
fn an_edge_that_was_folded_and_comes_back_counts_from_zero() {
    let mut recorder = StepRecorder::default();
    recorder.step(&table(&[(1, 100)]), 1000).unwrap();
    assert_eq!(recorder.step(&table(&[]), 2000), None);
    let back = recorder.step(&table(&[(1, 30)]), 3000).unwrap();
    assert_eq!(back.edges[0].1.bytes(), 30);
    assert_eq!(back.from_ms, 2000);
}

#[test]
fn the_ring_is_bounded_in_time_and_in_bytes() {
    let mut ring = StepRing::default();
    for step in steps() {
        ring.push(&step, 2000, 1 << 20);
    }
    // Those that ended before 3000 are gone.
    assert_eq!(
        bytes(&ring.series(&cut(1))),
        [(3000, 4000, 7), (4000, 5000, 3)]
    );
    let mut small = StepRing::default();
    for step in steps() {
        small.push(&step, u64::MAX, 1);
    }
    assert!(small.steps.is_empty() && small.bytes == 0);
}
