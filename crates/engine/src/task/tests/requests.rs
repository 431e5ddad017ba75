//! Requests: one table that each newer one replaces, kept beside the edges.

use std::sync::Arc;

use profiler_model::{EdgeTable, Recording, RequestSpec, RequestTable, TaskSpec, Window};

use super::fake::{FakeCollector, eventually, open, spec};
use crate::store::{Append, SegmentKey, Stream};

/// A table that was made at this time.
fn table(to_ns: u64) -> RequestTable {
    RequestTable {
        window: Window { from_ns: 1, to_ns },
        ..RequestTable::default()
    }
}

fn requests() -> TaskSpec {
    TaskSpec {
        recording: Recording::Requests(RequestSpec::default()),
        ..spec(None)
    }
}

#[tokio::test]
async fn the_newest_table_is_the_result_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let task = engine.create(requests()).await.unwrap();
    assert_eq!(engine.requests(task.id).await.unwrap(), None);
    let mut session = collector.session().await;
    for to_ns in [5, 6, 7] {
        session
            .send_requests(EdgeTable::default(), table(to_ns))
            .await;
        eventually("the table is there", async || {
            let newest = engine.requests(task.id).await.unwrap();
            newest.as_deref() == Some(&table(to_ns))
        })
        .await;
    }
    session.end();
    eventually("the task has ended", async || {
        engine.get(task.id).unwrap().state.is_final()
    })
    .await;
    assert_eq!(
        engine.edges(task.id).await.unwrap().as_deref(),
        Some(&EdgeTable::default())
    );
    let segments = engine
        .inner()
        .store
        .run(move |store| store.segments(task.id, Stream::Requests))
        .await
        .unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].1.blobs, 1);
    engine.shutdown().await;

    let (engine, _now) = open(directory.path(), &collector);
    let stored = engine.requests(task.id).await.unwrap();
    assert_eq!(stored.as_deref(), Some(&table(7)));
}

#[tokio::test]
async fn a_damaged_table_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let task = engine.create(requests()).await.unwrap();
    let mut session = collector.session().await;
    session.end();
    eventually("the task has ended", async || {
        engine.get(task.id).unwrap().state.is_final()
    })
    .await;
    let key = SegmentKey {
        task: task.id,
        stream: Stream::Requests,
        segment: 0,
    };
    let damage = move |store: &mut crate::store::Store| {
        store.put(Append {
            key,
            bytes: b"no blob".to_vec(),
            from_ns: 0,
            to_ns: 0,
            end_unix_ns: 0,
            samples: 0,
        });
        store.commit().unwrap();
    };
    engine.inner().store.run(damage).await.unwrap();
    let found = engine.requests(task.id).await.unwrap().unwrap();
    assert!(found.is_damaged);
    assert!(found.operations.is_empty());
}
