use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use profiler_model::{Selection, TaskId, TaskState};

use crate::{
    store::{Store, Stream},
    task::TaskError,
};

use super::fake::{FakeCollector, SECOND_NS, eventually, open, profile, spec, until};

const STOPPED: &str = "the agent was stopped while this task ran; the result up to then is kept";
const NEVER_STARTED: &str = "the agent was stopped before this task started";
const DIRECTORY_VARIABLE: &str = "PROFILER_TEST_KILLED_WRITER";
const CHUNK_NS: u64 = SECOND_NS / 10;

fn failed(reason: &str) -> TaskState {
    TaskState::Failed {
        reason: reason.to_owned(),
    }
}

#[tokio::test]
async fn results_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    let id = engine.create(spec(Some(60))).await.unwrap().id;
    let session = collector.session().await;
    session.send(profile(0, SECOND_NS, 7)).await;
    FakeCollector::end_when_stopped(session);
    let task = engine.stop(id).await.unwrap();
    let result = engine.profile(id, Selection::default()).await.unwrap();
    engine.shutdown().await;
    assert!(matches!(
        engine.create(spec(None)).await,
        Err(TaskError::Store(_))
    ));

    let (engine, _now) = open(directory.path(), &collector);
    assert_eq!(engine.get(id).unwrap(), task);
    assert_eq!(
        engine.profile(id, Selection::default()).await.unwrap(),
        result
    );
    assert_eq!(engine.create(spec(None)).await.unwrap().id, TaskId(2));
}

#[tokio::test]
async fn shutdown_keeps_results_and_ends_what_runs_and_waits() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(directory.path(), &collector);
    for _ in 0..3 {
        engine.create(spec(None)).await.unwrap();
    }
    for _ in 0..2 {
        let session = collector.session().await;
        session.send(profile(0, SECOND_NS, 7)).await;
        FakeCollector::end_when_stopped(session);
    }
    engine.shutdown().await;

    let (engine, _now) = open(directory.path(), &collector);
    for id in [TaskId(1), TaskId(2)] {
        let task = engine.get(id).unwrap();
        assert_eq!((&task.state, task.samples), (&failed(STOPPED), 12));
        assert_eq!(
            engine
                .profile(id, Selection::default())
                .await
                .unwrap()
                .total_count(),
            12
        );
    }
    assert_eq!(engine.get(TaskId(3)).unwrap().state, failed(NEVER_STARTED));
}

#[test]
fn a_runtime_that_vanishes_leaves_a_store_that_opens() {
    let directory = tempfile::tempdir().unwrap();
    let collector = Arc::new(FakeCollector::default());
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    first.block_on(async {
        let (engine, _now) = open(directory.path(), &collector);
        let id = engine.create(spec(None)).await.unwrap().id;
        let session = collector.session().await;
        for second in 0..130 {
            session
                .send(profile(second * SECOND_NS, (second + 1) * SECOND_NS, 1))
                .await;
        }
        until(&engine, id, |task| task.samples == 130).await;
    });
    drop(first);

    runtime().block_on(async {
        // The directory is free once the store's thread has seen that everybody is gone.
        eventually("the directory is released", async || {
            Store::open(directory.path()).is_ok()
        })
        .await;
        let (engine, _now) = open(directory.path(), &collector);
        let task = engine.get(TaskId(1)).unwrap();
        // The task's end may be seen before the runtime's, so the reason is one of two.
        assert!(matches!(task.state, TaskState::Failed { .. }), "{task:?}");
        // The last second may not have been written.
        assert!((129..=130).contains(&task.samples), "{}", task.samples);
        let result = engine
            .profile(TaskId(1), Selection::default())
            .await
            .unwrap();
        let kept = result.total_count();
        assert!((129..=130).contains(&kept), "{kept}");
        assert_eq!(result.to_ns, kept * SECOND_NS);
    });
}

#[tokio::test]
async fn a_kill_loses_at_most_the_last_second() {
    let directory = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let sent = run_writer_and_kill_it(directory.path(), 12 + round);
        let collector = Arc::new(FakeCollector::default());
        let (engine, _now) = open(directory.path(), &collector);
        let id = TaskId(round);
        let task = engine.get(id).unwrap();
        assert_eq!(task.state, failed(STOPPED));
        // One more may have been on its way when the line about the one before was read.
        let chunks_per_second = SECOND_NS / CHUNK_NS;
        assert!(
            (sent.saturating_sub(chunks_per_second)..=sent + 1).contains(&task.samples),
            "sent {sent}, kept {}",
            task.samples
        );
        let result = engine.profile(id, Selection::default()).await.unwrap();
        assert_eq!(result.total_count(), task.samples);
        assert_eq!(
            result.to_ns,
            task.samples * CHUNK_NS,
            "chunks are missing in between"
        );
        assert!(
            task.losses
                .iter()
                .all(|(kind, _)| kind.name() == "tick_missed")
        );
        assert_eq!(engine.list().len() as u64, round);
        // What the crash left in small pieces is put together.
        eventually("segments are merged", async || {
            let store = engine.inner().store.clone();
            store
                .run(move |s| s.segments(id, Stream::Profile)[0].1.blobs)
                .await
                .unwrap()
                == 1
        })
        .await;
        engine.shutdown().await;
    }
}

/// Starts this test program again as a writer and kills it after `chunks` chunks.
/// Returns how many it had sent.
fn run_writer_and_kill_it(directory: &Path, chunks: u64) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "task::tests::crash::writer_that_is_killed",
            "--nocapture",
        ])
        .env(DIRECTORY_VARIABLE, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut sent = 0;
    while sent < chunks {
        let line = lines.next().expect("the writer died by itself").unwrap();
        if let Some(number) = line.strip_prefix("sent ") {
            sent = number.parse().unwrap();
        }
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        if let Some(number) = line.strip_prefix("sent ") {
            sent = number.parse().unwrap();
        }
    }
    sent
}

#[tokio::test]
#[ignore = "not a test: started and killed by a_kill_loses_at_most_the_last_second"]
async fn writer_that_is_killed() {
    let directory = std::env::var(DIRECTORY_VARIABLE).unwrap();
    let collector = Arc::new(FakeCollector::default());
    let (engine, _now) = open(Path::new(&directory), &collector);
    engine.create(spec(None)).await.unwrap();
    let session = collector.session().await;
    println!();
    for number in 0..600 {
        session
            .send(profile(number * CHUNK_NS, (number + 1) * CHUNK_NS, 1))
            .await;
        println!("sent {}", number + 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
