//! Edges over time in the store: complete, in time, and there after a restart.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use profiler_analysis::edge_series::SeriesCut;
use profiler_model::{
    Address, Edge, EdgeId, EdgeKey, EdgeTable, Endpoint, SideMetrics, TaskState, Transfer, Window,
};

use crate::store::Stream;

use super::fake::{FakeCollector, ORIGIN_NS, SECOND_NS, eventually, of_edges, open};

/// An edge with its bytes written so far.
fn table(bytes: u64) -> EdgeTable {
    let end = Endpoint {
        pid: Some(1),
        start_ticks: Some(1),
        comm: "app".to_owned(),
        container: None,
        address: Address::Ip([10, 0, 0, 1].into()),
    };
    EdgeTable {
        edges: vec![Edge {
            key: EdgeKey {
                client: end.clone(),
                server: end,
                server_port: Some(80),
                original_destination: None,
            },
            client_port: None,
            client_name: None,
            namespaces: profiler_model::EdgeNamespaces::default(),
            server_name: None,
            client: Some(SideMetrics {
                write: Transfer { count: 1, bytes },
                ..SideMetrics::default()
            }),
            server: None,
        }],
        ..EdgeTable::default()
    }
}

#[tokio::test]
async fn steps_of_minutes_are_merged_cut_by_time_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, now) = open(directory.path(), &collector);
    let task = engine.create(of_edges(None)).await.unwrap();
    let session = collector.session().await;
    // One table each second, 10 bytes more each, over a bit more than a minute.
    for second in 1..=65 {
        now.store(ORIGIN_NS + second * SECOND_NS, Ordering::Relaxed);
        session.send_edges(table(second * 10)).await;
        eventually("the table is taken", async || {
            let newest = engine.newest_edges(task.id);
            newest.is_some_and(|newest| newest.edges[0].bytes() == second * 10)
        })
        .await;
    }
    FakeCollector::end_when_stopped(session);
    engine.stop(task.id).await.unwrap();
    let all = SeriesCut {
        edge: EdgeId::of(&table(0).edges[0].key),
        from_ms: None,
        to_ms: None,
        most: 3600,
    };
    let sum = |series: &profiler_analysis::edge_series::EdgeSeries| {
        let bytes = series.steps.iter().map(|step| step.delta.bytes());
        bytes.sum::<u64>()
    };
    eventually("both minutes are one blob each", async || {
        let segments = engine
            .inner()
            .store
            .run(move |store| store.segments(task.id, Stream::EdgeSteps))
            .await
            .unwrap();
        let blobs: Vec<u32> = segments.iter().map(|(_, segment)| segment.blobs).collect();
        engine.get(task.id).unwrap().state.is_final() && blobs == [1, 1]
    })
    .await;
    engine.shutdown().await;
    let (engine, _now) = open(directory.path(), &collector);
    let series = engine.edge_series(task.id, all).await.unwrap();
    assert_eq!((series.steps.len(), sum(&series)), (65, 650));
    assert_eq!((series.damaged, series.left_out), (0, 0));
    let cut = SeriesCut {
        from_ms: Some(59_500),
        to_ms: Some(62_000),
        ..all
    };
    let part = engine.edge_series(task.id, cut).await.unwrap();
    let spans: Vec<(u64, u64)> = part
        .steps
        .iter()
        .map(|step| (step.from_ms, step.to_ms))
        .collect();
    assert_eq!(
        spans,
        [(59_000, 60_000), (60_000, 61_000), (61_000, 62_000)]
    );
    assert_eq!(sum(&part), 30);
    let thin = engine.edge_series(task.id, SeriesCut { most: 10, ..all });
    let thin = thin.await.unwrap();
    assert_eq!((thin.steps.len(), sum(&thin)), (10, 650));
}

#[tokio::test]
async fn steps_and_the_end_are_of_the_time_in_which_was_counted() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    // Starting took a minute and a half after counting had begun.
    *collector.already.lock().unwrap() = Duration::from_secs(90);
    let (engine, now) = open(directory.path(), &collector);
    let task = engine.create(of_edges(Some(90))).await.unwrap();
    let mut session = collector.session().await;
    // So that it is asked to stop at once.
    eventually("it is over", async || session.is_stopped()).await;
    // Both tables come late: the clock has gone on.
    now.store(ORIGIN_NS + 200 * SECOND_NS, Ordering::Relaxed);
    for (second, bytes) in [(30, 300), (90, 900)] {
        session
            .send_edges(EdgeTable {
                window: Some(Window {
                    from_ns: ORIGIN_NS,
                    to_ns: ORIGIN_NS + second * SECOND_NS,
                }),
                ..table(bytes)
            })
            .await;
    }
    session.end();
    let task = super::fake::until(&engine, task.id, |task| task.state.is_final()).await;
    assert_eq!(task.state, TaskState::Finished);
    assert_eq!(task.ended_ns, Some(ORIGIN_NS + 90 * SECOND_NS));
    let all = SeriesCut {
        edge: EdgeId::of(&table(0).edges[0].key),
        from_ms: None,
        to_ms: None,
        most: 3600,
    };
    let series = engine.edge_series(task.id, all).await.unwrap();
    let steps = series.steps.iter();
    let steps: Vec<_> = steps
        .map(|step| (step.from_ms, step.to_ms, step.delta.bytes()))
        .collect();
    assert_eq!(steps, [(0, 30_000, 300), (30_000, 90_000, 600)]);
}
