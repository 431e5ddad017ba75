use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use profiler_model::{Clock, LossKind, Selection, TaskId, TaskState};

use crate::task::{TaskChange, TaskError};

use super::fake::{FakeCollector, ORIGIN_NS, SECOND_NS, detail, open, profile, spec, until};

#[tokio::test]
async fn a_task_runs_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, now) = open(directory.path(), &collector);
    let mut changes = engine.subscribe();
    let created = engine.create(spec(Some(1))).await.unwrap();
    assert_eq!(
        (created.id, &created.state),
        (TaskId(1), &TaskState::Queued)
    );
    let session = collector.session().await;
    session.send(profile(0, SECOND_NS / 2, 40)).await;
    session.send_note("the CPU budget lowered the rate").await;
    let running = until(&engine, created.id, |task| {
        task.samples == 40 && task.notes.len() == 2
    })
    .await;
    assert_eq!(running.state, TaskState::Running);
    assert_eq!(running.clock, Some(Clock::CpuClock));
    assert_eq!(running.effective_frequency_hz, Some(49));
    now.store(ORIGIN_NS + SECOND_NS, Ordering::Relaxed);
    FakeCollector::end_when_stopped(session);
    let finished = until(&engine, created.id, |task| task.state.is_final()).await;
    assert_eq!(finished.state, TaskState::Finished);
    assert_eq!(finished.samples, 45);
    assert_eq!(finished.losses.get(LossKind::TickMissed), 2);
    assert_eq!(finished.ended_ns, Some(ORIGIN_NS + SECOND_NS));
    assert_eq!(
        finished.notes,
        [
            "no hardware counters: sampling by cpu-clock",
            "the CPU budget lowered the rate"
        ]
    );
    let result = engine
        .profile(created.id, Selection::default())
        .await
        .unwrap();
    assert_eq!(result.total_count(), 45);
    assert_eq!(result.losses.get(LossKind::TickMissed), 2);

    // The last change is published after the task can be read as finished.
    let mut states = Vec::new();
    let mut starts = Vec::new();
    while states.last() != Some(&"finished") {
        let change = tokio::time::timeout(Duration::from_mins(1), changes.recv()).await;
        if let TaskChange::Updated(task) = change.unwrap().unwrap() {
            states.push(task.state.name());
            starts.push((task.state.name(), task.started_ns));
        }
    }
    // It runs while its programs are loaded, and has a start once they are attached.
    starts.dedup();
    assert_eq!(
        starts,
        [
            ("queued", None),
            ("running", None),
            ("running", Some(ORIGIN_NS)),
            ("finished", Some(ORIGIN_NS))
        ]
    );
    // At least once a second while it runs, besides the changes of state.
    assert!(
        states.iter().filter(|state| **state == "running").count() >= 3,
        "{states:?}"
    );
    states.dedup();
    assert_eq!(states, ["queued", "running", "finished"]);
}

#[tokio::test]
async fn the_result_so_far_can_be_read_and_cut() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let empty = engine.profile(id, Selection::default()).await.unwrap();
    assert_eq!(empty.total_count(), 0);
    assert_eq!(empty.origin_ns, ORIGIN_NS);
    let session = collector.session().await;
    for second in 0..200 {
        session
            .send(profile(
                second * SECOND_NS,
                (second + 1) * SECOND_NS,
                1 + second % 2,
            ))
            .await;
    }
    until(&engine, id, |task| task.samples == 300).await;
    let cut = |from: Option<u64>, to: Option<u64>, pids: Vec<u32>| Selection {
        from_ns: from.map(|second| second * SECOND_NS),
        to_ns: to.map(|second| second * SECOND_NS),
        pids,
        tids: Vec::new(),
        except_tids: Vec::new(),
        containers: Vec::new(),
    };
    for (selection, expected) in [
        (Selection::default(), (300, 0, 200)),
        (cut(Some(59), Some(62), vec![]), (5, 59, 62)),
        (cut(Some(150), None, vec![]), (75, 150, 200)),
        (cut(None, Some(61), vec![10]), (91, 0, 61)),
        (cut(None, None, vec![11]), (0, 0, 200)),
        (cut(Some(900), None, vec![]), (0, 0, 0)),
    ] {
        let part = engine.profile(id, selection.clone()).await.unwrap();
        let got = (
            part.total_count(),
            part.from_ns / SECOND_NS,
            part.to_ns / SECOND_NS,
        );
        assert_eq!(got, expected, "{selection:?}");
    }
    FakeCollector::end_when_stopped(session);
    engine.shutdown().await;
}

#[tokio::test]
async fn stopping_keeps_the_result_and_waits_for_the_last_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(Some(3600))).await.unwrap().id;
    let session = collector.session().await;
    session.send(profile(0, SECOND_NS, 7)).await;
    FakeCollector::end_when_stopped(session);
    let stopped = engine.stop(id).await.unwrap();
    assert_eq!(
        (&stopped.state, stopped.samples),
        (&TaskState::Cancelled, 12)
    );
    // Stopping again changes nothing.
    assert_eq!(engine.stop(id).await.unwrap(), stopped);
    assert!(matches!(
        engine.stop(TaskId(99)).await,
        Err(TaskError::NotFound { id: TaskId(99) })
    ));
}

#[tokio::test]
async fn more_tasks_than_places_wait_and_too_many_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(engine.create(spec(None)).await.unwrap().id);
    }
    let error = engine.create(spec(None)).await.unwrap_err();
    assert_eq!(
        detail(error),
        "too many tasks: 2 running and 1 queued; stop one or wait"
    );
    let (second, first) = (collector.session().await, collector.session().await);
    assert_eq!(collector.started(), 0);
    assert_eq!(engine.get(ids[2]).unwrap().state, TaskState::Queued);
    let newest_first: Vec<TaskId> = engine.list().iter().map(|task| task.id).collect();
    assert_eq!(newest_first, [ids[2], ids[1], ids[0]]);

    FakeCollector::end_when_stopped(first);
    FakeCollector::end_when_stopped(second);
    engine.stop(ids[0]).await.unwrap();
    let third = collector.session().await;
    until(&engine, ids[2], |task| task.state == TaskState::Running).await;
    // The first two ran at once and only one was stopped.
    assert_eq!(engine.get(ids[1]).unwrap().state, TaskState::Running);
    FakeCollector::end_when_stopped(third);
    engine.stop(ids[1]).await.unwrap();
    engine.stop(ids[2]).await.unwrap();
}

#[tokio::test]
async fn a_queued_task_is_cancelled_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    for _ in 0..2 {
        engine.create(spec(None)).await.unwrap();
    }
    let id = engine.create(spec(None)).await.unwrap().id;
    let stopped = engine.stop(id).await.unwrap();
    assert_eq!(
        (&stopped.state, stopped.started_ns),
        (&TaskState::Cancelled, None)
    );
    // Its place in the queue is free again.
    engine.create(spec(None)).await.unwrap();
}

#[tokio::test]
async fn only_final_tasks_can_be_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let session = collector.session().await;
    until(&engine, id, |task| task.state == TaskState::Running).await;
    let error = engine.delete(id).await.unwrap_err();
    assert_eq!(
        detail(error),
        "task 1 is running: stop it before deleting it"
    );
    FakeCollector::end_when_stopped(session);
    engine.stop(id).await.unwrap();
    let mut changes = engine.subscribe();
    engine.delete(id).await.unwrap();
    loop {
        match changes.try_recv().unwrap() {
            TaskChange::Deleted(deleted) => break assert_eq!(deleted, id),
            TaskChange::Updated(_) => {}
        }
    }
    assert_eq!(detail(engine.get(id).unwrap_err()), "no task 1");
    assert!(matches!(
        engine.delete(id).await,
        Err(TaskError::NotFound { .. })
    ));
    assert_eq!(engine.create(spec(None)).await.unwrap().id, TaskId(2));
}

#[tokio::test]
async fn failures_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let failed = |reason: &str| TaskState::Failed {
        reason: reason.to_owned(),
    };

    *collector.refuse.lock().unwrap() = Some("permission denied (needs CAP_BPF)".to_owned());
    let id = engine.create(spec(Some(1))).await.unwrap().id;
    let task = until(&engine, id, |task| task.state.is_final()).await;
    assert_eq!(task.state, failed("cpu: permission denied (needs CAP_BPF)"));
    assert_eq!(task.started_ns, None);

    collector.panic.store(true, Ordering::Relaxed);
    let id = engine.create(spec(Some(1))).await.unwrap().id;
    let task = until(&engine, id, |task| task.state.is_final()).await;
    assert_eq!(
        task.state,
        failed("internal error while starting the collection")
    );
    collector.panic.store(false, Ordering::Relaxed);

    let id = engine.create(spec(Some(3600))).await.unwrap().id;
    let mut session = collector.session().await;
    session.send(profile(0, SECOND_NS, 3)).await;
    session.end();
    let task = until(&engine, id, |task| task.state.is_final()).await;
    let TaskState::Failed { reason } = &task.state else {
        panic!("{:?}", task.state);
    };
    // How long it took depends on the machine.
    assert!(
        reason.starts_with("the collection ended by itself after ")
            && reason.ends_with(" s of 3600 s; the result up to then is kept"),
        "{reason}"
    );
    assert_eq!(
        engine
            .profile(id, Selection::default())
            .await
            .unwrap()
            .total_count(),
        3
    );

    let error = engine.create(spec(Some(0))).await.unwrap_err();
    assert!(matches!(
        error,
        TaskError::InvalidSpec {
            field: "duration_s",
            ..
        }
    ));
}

#[tokio::test]
async fn an_inconsistent_chunk_is_left_out_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(None)).await.unwrap().id;
    let session = collector.session().await;
    let mut broken = profile(0, SECOND_NS, 3);
    broken.samples[0].stack = 7;
    session.send(broken).await;
    session.send(profile(0, SECOND_NS, 2)).await;
    let task = until(&engine, id, |task| task.samples == 2).await;
    assert_eq!(task.losses.get(LossKind::RecordUndecodable), 1);
    assert!(
        task.notes[1].contains("refers to a missing thread or stack"),
        "{:?}",
        task.notes
    );
}
