use std::{path::Path, time::Instant};

use profiler_model::{Clock, ProfileBuilder, Target, TaskKind, TaskSpec};
use profiler_recording::{CollectError, Collection, Collector, Part, StopHandle};
use tokio::sync::mpsc;

use super::*;
use crate::{
    checkup::{CheckupState, KINDS},
    task::{EngineConfig, Retention},
};

/// Collections that begin, or fail for a kind, and end when they are asked to.
struct Collections {
    fails: Option<TaskKind>,
}

impl Collector for Collections {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        if self.fails == Some(spec.kind()) {
            return Err(CollectError::Probe {
                probe: "test",
                reason: "not here".to_owned(),
            });
        }
        let (sender, chunks) = mpsc::channel(4);
        let (stop, stopped) = StopHandle::new();
        let origin_ns = wall_ns();
        tokio::runtime::Handle::current().spawn(async move {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let profile = ProfileBuilder::new(origin_ns, 20_000_000, Clock::CpuClock).finish();
            let samples = Part::Samples(profile.into());
            drop(sender.send(samples.into()).await);
        });
        Ok(Collection {
            origin_ns,
            clock: Some(Clock::CpuClock),
            effective_frequency_hz: Some(99),
            already: Duration::ZERO,
            notes: Vec::new(),
            chunks,
            stop,
        })
    }
}

fn open(folder: &Path, fails: Option<TaskKind>) -> Checkups {
    let config = EngineConfig {
        data_dir: folder.to_owned(),
        max_running: 3,
        max_queued: 2,
        retention: Retention {
            age: Duration::from_hours(1),
            bytes: 1 << 30,
        },
    };
    let engine = Engine::open(config, Arc::new(Collections { fails })).unwrap();
    Checkups::new(engine, ProcessTable::new(), false)
}

fn request() -> CheckupRequest {
    CheckupRequest {
        target: Target::Pids(vec![std::process::id()]),
        duration_s: 1,
        frequency_hz: 99,
        tls: false,
        access_log: false,
    }
}

/// Does not end by itself in a test.
fn long_request() -> CheckupRequest {
    CheckupRequest {
        duration_s: 60,
        ..request()
    }
}

async fn ended(checkups: &Checkups, id: &str) -> Checkup {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let checkup = checkups.get(id).await.unwrap();
        if checkup.state != CheckupState::Running {
            return checkup;
        }
        assert!(Instant::now() < deadline, "{checkup:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_up_runs_observes_outlives_the_agent_and_goes_away_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let checkups = open(folder.path(), None);
    let began = Instant::now();
    let created = checkups.create(&request()).await.unwrap();
    assert_eq!(created.state, CheckupState::Running);
    assert_eq!(
        created
            .tasks
            .iter()
            .map(|task| task.kind)
            .collect::<Vec<_>>(),
        KINDS
    );
    let running = checkups.delete(&created.id).await;
    assert!(
        matches!(running, Err(CheckupError::NotFinal { .. })),
        "{running:?}"
    );

    let finished = ended(&checkups, &created.id).await;
    assert_eq!(finished.state, CheckupState::Finished);
    assert!(finished.observed);
    let keeper = finished.tasks[0].id;
    let record = checkups.engine.observed(keeper).await.unwrap().unwrap();
    let own = record.observed.processes.iter();
    let mut own = own.filter(|process| process.key.pid == std::process::id());
    let own = own.next().expect("the own process was observed");
    // Beside compilers it may have begun when most of its second was over.
    let window = Duration::from_nanos(own.to_ns - own.from_ns);
    assert!(!window.is_zero() && window < began.elapsed(), "{window:?}");
    assert!(!own.threads.is_empty());

    // A second one has a name of its own.
    let second = checkups.create(&request()).await.unwrap();
    assert_ne!(second.id, created.id);
    ended(&checkups, &second.id).await;
    checkups.engine.shutdown().await;
    drop(checkups);

    let checkups = open(folder.path(), None);
    let list = checkups.list().await.unwrap();
    let ids: Vec<&str> = list.iter().map(|checkup| checkup.id.as_str()).collect();
    assert_eq!(ids, [second.id.as_str(), created.id.as_str()]);
    assert!(list.iter().all(|checkup| checkup.observed));
    let again = checkups.engine.observed(keeper).await.unwrap();
    assert_eq!(again, Some(record));

    checkups.delete(&created.id).await.unwrap();
    assert_eq!(checkups.list().await.unwrap().len(), 1);
    assert!(checkups.engine.observed(keeper).await.is_err());
    let gone = checkups.delete(&created.id).await;
    assert!(
        matches!(gone, Err(CheckupError::NotFound { .. })),
        "{gone:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_observed_until_the_agent_ends_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let checkups = open(folder.path(), None);
    let long = long_request();
    let created = checkups.create(&long).await.unwrap();
    let begun = || checkups.engine.list().iter().all(|task| has_begun(task));
    while !begun() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    checkups.engine.shutdown().await;
    drop(checkups);

    let checkups = open(folder.path(), None);
    let kept = checkups.get(&created.id).await.unwrap();
    assert_ne!(kept.state, CheckupState::Running);
    assert!(kept.observed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_fails_leaves_the_others() {
    for (fails, state) in [
        (TaskKind::Requests, CheckupState::Finished),
        (TaskKind::OffCpu, CheckupState::Finished),
        (TaskKind::OnCpu, CheckupState::Failed),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let checkups = open(folder.path(), Some(fails));
        let created = checkups.create(&request()).await.unwrap();
        let checkup = ended(&checkups, &created.id).await;
        assert_eq!(checkup.state, state, "{fails:?} fails");
        assert!(checkup.observed, "{fails:?} fails");
        let failed = checkup.tasks.iter().filter(|task| matches!(&task.state, TaskState::Failed { reason } if reason.contains("not here")));
        assert_eq!(failed.map(|task| task.kind).collect::<Vec<_>>(), [fails]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_for_all_of_its_tasks_none_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let checkups = open(folder.path(), None);
    let long = long_request();
    // Three run; of the next three only two can wait.
    let first = checkups.create(&long).await.unwrap();
    let refused = checkups.create(&long).await;
    let is_full = matches!(refused, Err(CheckupError::Task(TaskError::TooMany { .. })));
    assert!(is_full, "{refused:?}");
    assert_eq!(checkups.list().await.unwrap().len(), 1);
    assert_eq!(checkups.engine.list().len(), 3);
    for task in &first.tasks {
        checkups.engine.stop(task.id).await.unwrap();
    }
    assert_eq!(
        ended(&checkups, &first.id).await.state,
        CheckupState::Cancelled
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_no_task_takes_is_refused_with_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let checkups = open(folder.path(), None);
    for (request, wanted) in [
        (
            CheckupRequest {
                duration_s: 0,
                ..request()
            },
            "duration_s",
        ),
        (
            CheckupRequest {
                frequency_hz: 100_000,
                ..request()
            },
            "frequency_hz",
        ),
        (
            CheckupRequest {
                target: Target::NetworkNamespace("/run/netns/x".into()),
                ..request()
            },
            "target.network_namespace",
        ),
    ] {
        let refused = checkups.create(&request).await;
        let Err(CheckupError::Task(TaskError::InvalidSpec { field, .. })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(field, wanted);
    }
    assert!(checkups.engine.list().is_empty());
}
