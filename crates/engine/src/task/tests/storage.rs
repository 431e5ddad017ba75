//! What the engine makes of damaged results and of a disk that refuses writes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use profiler_model::{EdgeTable, LossKind, Selection, TaskId, TaskState};

use crate::{
    store::{Append, SegmentKey, Store, Stream, tests::failing_store},
    task::registry::WRITTEN_NOTE,
};

use super::fake::{
    FakeCollector, SECOND_NS, config, detail, eventually, of_edges, open, profile, spec, until,
    with_store,
};

#[tokio::test]
async fn a_damaged_chunk_is_left_out_counted_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let session = collector.session().await;
    session.send(profile(0, SECOND_NS, 3)).await;
    session
        .send(profile(60 * SECOND_NS, 61 * SECOND_NS, 4))
        .await;
    until(&engine, id, |task| task.samples == 7).await;
    let key = SegmentKey {
        task: id,
        stream: Stream::Profile,
        segment: 0,
    };
    let damage = Append {
        key,
        bytes: b"PAB1 and then nonsense".to_vec(),
        from_ns: 0,
        to_ns: 1,
        end_unix_ns: 1,
        samples: 0,
    };
    assert!(
        engine
            .inner()
            .store
            .run(move |store| store.append(damage))
            .await
            .unwrap()
    );
    let result = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!(result.total_count(), 7);
    assert_eq!(result.losses.get(LossKind::StoredChunkDamaged), 1);
    let note = "1 stored chunks are damaged and left out of the result";
    assert!(
        engine
            .get(id)
            .unwrap()
            .notes
            .iter()
            .any(|text| text == note)
    );

    // Rewriting the segment keeps the count.
    drop(session);
    engine.shutdown().await;
    let (engine, _now) = open(directory.path(), &collector);
    eventually("segments are merged", async || {
        engine
            .inner()
            .store
            .run(move |store| store.blobs(key).unwrap().len())
            .await
            .unwrap()
            == 1
    })
    .await;
    let result = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!(result.total_count(), 7);
    assert_eq!(result.losses.get(LossKind::StoredChunkDamaged), 1);
}

#[tokio::test]
async fn minutes_are_rewritten_when_they_are_complete() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let session = collector.session().await;
    for second in 0..125 {
        session
            .send(profile(second * SECOND_NS, (second + 1) * SECOND_NS, 2))
            .await;
    }
    until(&engine, id, |task| task.samples == 250).await;
    let blobs = async || {
        let segments = engine
            .inner()
            .store
            .run(move |store| store.segments(id, Stream::Profile))
            .await;
        segments
            .unwrap()
            .iter()
            .map(|(_, segment)| segment.blobs)
            .collect::<Vec<_>>()
    };
    eventually("full minutes are merged", async || {
        blobs().await == [1, 1, 5]
    })
    .await;
    let result = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!((result.total_count(), result.stacks.len()), (250, 1));
    assert_eq!(result.losses.get(LossKind::TickMissed), 125);
    FakeCollector::end_when_stopped(session);
    engine.stop(id).await.unwrap();
    // The last chunk of the fake belongs to the first minute, which was rewritten already.
    eventually("the last minute is merged", async || {
        blobs().await == [2, 1, 1]
    })
    .await;
    assert_eq!(
        engine
            .profile(id, Selection::default())
            .await
            .unwrap()
            .total_count(),
        255
    );
}

#[tokio::test]
async fn a_full_disk_is_noted_and_the_result_can_still_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let full = Arc::new(AtomicBool::new(false));
    let store: Store = failing_store(directory.path(), &full);
    let (engine, _now) = with_store(config(directory.path()), store, &collector);
    let id = engine.create(spec(Some(3600))).await.unwrap().id;
    let session = collector.session().await;
    session.send(profile(0, SECOND_NS, 3)).await;
    until(&engine, id, |task| task.samples == 3).await;
    full.store(true, Ordering::Relaxed);
    session.send(profile(SECOND_NS, 2 * SECOND_NS, 4)).await;
    let failing = |note: &String| {
        note.starts_with("could not write to the data directory (")
            && note.contains("No space left on device")
            && note.ends_with("); the result was kept in memory")
    };
    until(&engine, id, |task| {
        task.samples == 7 && task.notes.iter().any(failing)
    })
    .await;
    let refused = detail(engine.create(spec(None)).await.unwrap_err());
    assert!(refused.contains("No space left on device"), "{refused}");
    FakeCollector::end_when_stopped(session);
    let task = engine.stop(id).await.unwrap();
    assert_eq!((&task.state, task.samples), (&TaskState::Cancelled, 12));
    assert!(
        task.losses.get(LossKind::StoreWriteFailed) >= 2,
        "{:?}",
        task.losses
    );
    assert_eq!(engine.list().len(), 1);

    // With room again everything that waited is written.
    full.store(false, Ordering::Relaxed);
    eventually("the store works again", async || {
        engine.create(spec(None)).await.is_ok()
    })
    .await;
    let result = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!(result.total_count(), 12);
    FakeCollector::end_when_stopped(collector.session().await);
    engine.shutdown().await;
    let (engine, _now) = open(directory.path(), &collector);
    let result = engine
        .profile(TaskId(1), Selection::default())
        .await
        .unwrap();
    assert_eq!(result.total_count(), 12);
}

/// The table of a network task with this number of lost events, which makes each table distinct.
fn edges(lost_events: u64) -> EdgeTable {
    EdgeTable {
        lost_events,
        ..EdgeTable::default()
    }
}

#[tokio::test]
async fn the_last_edges_of_a_full_disk_are_written_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let full = Arc::new(AtomicBool::new(false));
    let store: Store = failing_store(directory.path(), &full);
    let (engine, _now) = with_store(config(directory.path()), store, &collector);
    let id = engine.create(of_edges(Some(3600))).await.unwrap().id;
    let mut session = collector.session().await;
    let newest = async || engine.edges(id).await.unwrap().unwrap().lost_events;
    session.send_edges(edges(1)).await;
    eventually("the first table is there", async || {
        engine.newest_edges(id).is_some()
    })
    .await;
    full.store(true, Ordering::Relaxed);
    session.send_edges(edges(2)).await;
    session.send_edges(edges(3)).await;
    session.end();
    let waits = |note: &String| note.ends_with("; the result was kept in memory");
    let task = until(&engine, id, |task| task.state.is_final()).await;
    assert!(task.notes.iter().any(waits), "{:?}", task.notes);
    until(&engine, id, |task| {
        task.losses.get(LossKind::StoreWriteFailed) > 0
    })
    .await;

    // It is written without any request.
    full.store(false, Ordering::Relaxed);
    let later = |note: &String| note == WRITTEN_NOTE;
    let task = until(&engine, id, |task| task.notes.iter().any(later)).await;
    assert!(task.losses.is_empty(), "{:?}", task.losses);
    assert_eq!(newest().await, 3);
    engine.shutdown().await;
    let (engine, _now) = open(directory.path(), &collector);
    let stored = engine.edges(id).await.unwrap().unwrap();
    assert_eq!(stored.lost_events, 3);
    let task = engine.get(id).unwrap();
    assert!(task.notes.iter().any(later), "{:?}", task.notes);
    assert!(task.losses.is_empty(), "{:?}", task.losses);
}
