//! Tables of event loops in the store: the newest one, also while others of the task are removed.

use std::sync::Arc;

use profiler_model::{
    EventLoopTable, LoopRules, LoopThread, Recording, SampleKind, SampleSpec, TaskSpec,
};

use crate::store::Stream;

use super::fake::{FakeCollector, eventually, open, profile, spec};

fn table(turns: u64) -> EventLoopTable {
    EventLoopTable {
        threshold_ms: 20,
        threads: vec![LoopThread {
            pid: 1,
            tid: 2,
            turns,
            ..LoopThread::default()
        }],
        ..EventLoopTable::default()
    }
}

#[tokio::test]
async fn each_table_replaces_the_one_before_and_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let rules = LoopRules { threshold_ms: 20 };
    let task = engine
        .create(TaskSpec {
            recording: Recording::Samples(SampleSpec {
                event_loop: Some(rules),
                ..SampleKind::OnCpu.into()
            }),
            ..spec(None)
        })
        .await
        .unwrap();
    assert_eq!(engine.event_loops(task.id).await.unwrap(), None);
    let session = collector.session().await;
    for turns in [1, 5, 7] {
        session.send_loops(profile(0, 1, 0), table(turns)).await;
        eventually("the table is kept", async || {
            engine.event_loops(task.id).await.unwrap() == Some(table(turns))
        })
        .await;
    }
    // Chunks without a table leave it alone.
    session.send(profile(1, 1, 0)).await;
    FakeCollector::end_when_stopped(session);
    engine.stop(task.id).await.unwrap();
    eventually("the task has ended", async || {
        engine.get(task.id).unwrap().state.is_final()
    })
    .await;
    let segments = engine
        .inner()
        .store
        .run(move |store| store.segments(task.id, Stream::EventLoops))
        .await
        .unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].1.blobs, 1);
    engine.shutdown().await;
    let (engine, _now) = open(directory.path(), &collector);
    assert_eq!(engine.event_loops(task.id).await.unwrap(), Some(table(7)));
    let stored = engine.get(task.id).unwrap();
    assert_eq!(stored.sample_spec().unwrap().event_loop, Some(rules));
}
