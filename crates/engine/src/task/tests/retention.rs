use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use profiler_model::{Selection, TaskId, TaskState};

use crate::{
    store::{Segment, SegmentKey, Store, Stream},
    task::retention::{Removal, Retention, plan},
};

use super::fake::{
    FakeCollector, ORIGIN_NS, SECOND_NS, config, open, profile, spec, until, with_store,
};

#[tokio::test]
async fn a_finished_task_goes_when_it_is_too_old() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, now) = open(directory.path(), &collector);
    let id = engine.create(spec(Some(60))).await.unwrap().id;
    FakeCollector::end_when_stopped(collector.session().await);
    engine.stop(id).await.unwrap();
    now.store(ORIGIN_NS + 3600 * SECOND_NS, Ordering::Relaxed);
    engine.retain().await;
    engine.get(id).unwrap();
    now.store(ORIGIN_NS + 3600 * SECOND_NS + 1, Ordering::Relaxed);
    engine.retain().await;
    assert!(engine.get(id).is_err());
    let left = engine
        .inner()
        .store
        .run(|store| store.all_segments())
        .await
        .unwrap();
    assert!(left.is_empty());
}

#[tokio::test]
async fn a_task_without_end_loses_its_old_minutes_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let session = collector.session().await;
    for minute in 0..5 {
        let from = minute * 60 * SECOND_NS;
        session.send(profile(from, from + 60 * SECOND_NS, 10)).await;
    }
    until(&engine, id, |task| task.samples == 50).await;
    // The first two minutes ended more than an hour ago.
    now.store(ORIGIN_NS + (3600 + 121) * SECOND_NS, Ordering::Relaxed);
    engine.retain().await;
    let task = engine.get(id).unwrap();
    assert_eq!((task.samples, &task.state), (30, &TaskState::Running));
    assert_eq!(
        task.notes[1],
        "older minutes were removed by the retention limits"
    );
    let result = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!(
        (result.total_count(), result.from_ns),
        (30, 120 * SECOND_NS)
    );
    // However old it is, the minute that is being written stays.
    now.store(ORIGIN_NS + 90_000 * SECOND_NS, Ordering::Relaxed);
    engine.retain().await;
    assert_eq!(engine.get(id).unwrap().samples, 10);
    session
        .send(profile(300 * SECOND_NS, 301 * SECOND_NS, 1))
        .await;
    until(&engine, id, |task| task.samples == 11).await;
    FakeCollector::end_when_stopped(session);
    engine.shutdown().await;
}

#[tokio::test]
async fn results_beyond_the_size_limit_go_oldest_first() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let store = Store::open(directory.path()).unwrap();
    // Three tasks with results of 288 bytes take 3,936; a fourth makes it more, also when one has ended before its result
    // is in the store, as on a busy machine.
    let mut config = config(directory.path());
    config.retention.bytes = 4500;
    let (engine, now) = with_store(config, store, &collector);
    for number in 1..=4 {
        now.store(ORIGIN_NS + number * SECOND_NS, Ordering::Relaxed);
        let id = engine.create(spec(Some(60))).await.unwrap().id;
        FakeCollector::end_when_stopped(collector.session().await);
        engine.stop(id).await.unwrap();
        // On a busy machine the task ends after the answer.
        until(&engine, id, |task| task.state.is_final()).await;
        engine.retain().await;
    }
    let left: Vec<u64> = engine.list().iter().map(|task| task.id.0).collect();
    assert_eq!(left, [4, 3, 2]);
}

#[tokio::test]
async fn the_plan_removes_nothing_that_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, now) = open(directory.path(), &collector);
    // 1 finished; 2 runs without end; 3 runs with an end.
    let mut playing = Vec::new();
    for duration in [Some(60), None, Some(60)] {
        let id = engine.create(spec(duration)).await.unwrap().id;
        let session = collector.session().await;
        if id == TaskId(1) {
            FakeCollector::end_when_stopped(session);
            now.store(ORIGIN_NS + 100, Ordering::Relaxed);
            engine.stop(id).await.unwrap();
        } else {
            playing.push(session);
        }
    }
    let tasks = engine.list();
    let key = |task: u64, segment| SegmentKey {
        task: TaskId(task),
        stream: Stream::Profile,
        segment,
    };
    let ends = |end_ns| Segment {
        end_unix_ns: ORIGIN_NS + end_ns,
        bytes: 10_000,
        ..Segment::default()
    };
    let segments = [
        (key(1, 0), ends(90)),
        (key(2, 0), ends(50)),
        (key(2, 1), ends(150)),
        (key(2, 2), ends(200)),
        (key(3, 0), ends(10)),
        // A task whose record cannot be read.
        (key(9, 0), ends(120)),
    ];
    let age = |_, end_ns| (ORIGIN_NS + 200).saturating_sub(end_ns);
    let plan = |age_ns, bytes| {
        let age_limit = Duration::from_nanos(age_ns);
        let retention = Retention {
            age: age_limit,
            bytes,
        };
        plan(&tasks, &segments, age, retention)
    };
    let segment = |task, segment| Removal::Segment(key(task, segment));
    assert_eq!(plan(1000, 1 << 20), []);
    assert_eq!(plan(200, 60_000), [segment(2, 0)]);
    assert_eq!(plan(200, 50_000), [segment(2, 0), Removal::Task(TaskId(1))]);
    assert_eq!(
        plan(90, 1 << 20),
        [segment(2, 0), Removal::Task(TaskId(1))][..2]
    );
    let all = [
        segment(2, 0),
        Removal::Task(TaskId(1)),
        segment(9, 0),
        segment(2, 1),
    ];
    assert_eq!(plan(1000, 0), all);
    assert_eq!(plan(0, 1 << 20), all);
}
