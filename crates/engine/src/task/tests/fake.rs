//! A collector that the test plays, and an engine around it.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use profiler_clock::{ClockReader, Clocks};
use profiler_model::{
    Clock, EdgeSpec, Frame, FrameSpace, Function, LossKind, ModuleKind, NameSource, ProcessKey,
    Profile, ProfileBuilder, ProfileProcess, ProfileThread, Recording, SampleKind, SampleRow,
    Target, Task, TaskId, TaskSpec, ThreadState,
};
use profiler_recording::{
    Chunk, CollectError, Collection, Collector, Part, Requests, Samples, StopHandle,
};
use tokio::sync::mpsc;

use crate::{
    store::Store,
    task::{Engine, EngineConfig, Retention, TaskError},
};

pub(super) const ORIGIN_NS: u64 = 1_700_000_000_000_000_000;
pub(super) const SECOND_NS: u64 = 1_000_000_000;

fn samples(profile: Profile) -> Samples {
    Samples {
        effective_frequency_hz: 49,
        ..profile.into()
    }
}

/// The collecting side of one started collection.
pub(super) struct Session {
    chunks: Option<mpsc::Sender<Chunk>>,
    pub(super) stopped: Arc<AtomicBool>,
}

impl Session {
    async fn send_chunk(&self, chunk: impl Into<Chunk>) {
        let chunks = self.chunks.as_ref().unwrap();
        chunks.send(chunk.into()).await.unwrap();
    }

    pub(super) async fn send(&self, profile: Profile) {
        self.send_chunk(Part::Samples(samples(profile))).await;
    }

    pub(super) async fn send_loops(&self, profile: Profile, table: profiler_model::EventLoopTable) {
        let samples = Samples {
            event_loop: Some(table),
            ..samples(profile)
        };
        self.send_chunk(Part::Samples(samples)).await;
    }

    pub(super) async fn send_note(&self, note: &str) {
        let chunk = Chunk {
            part: Part::Samples(samples(profile(0, 0, 0))),
            target_ended: false,
            notes: vec![note.to_owned()],
        };
        self.send_chunk(chunk).await;
    }

    pub(super) async fn send_edges(&self, table: profiler_model::EdgeTable) {
        self.send_chunk(Part::Edges(table)).await;
    }

    pub(super) async fn send_requests(
        &self,
        edges: profiler_model::EdgeTable,
        table: profiler_model::RequestTable,
    ) {
        let at_sockets = Vec::new();
        self.send_chunk(Part::Requests(Requests {
            edges,
            table,
            at_sockets,
        }))
        .await;
    }

    /// Closes the channel, as a collector does after its last chunk.
    pub(super) fn end(&mut self) {
        self.chunks = None;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(super) struct FakeCollector {
    sessions: Mutex<Vec<Session>>,
    /// The next start fails with this text.
    pub(super) refuse: Mutex<Option<String>>,
    pub(super) panic: AtomicBool,
    /// For how long the next collections say that they have run already.
    pub(super) already: Mutex<Duration>,
}

impl Collector for FakeCollector {
    fn start(&self, _spec: &TaskSpec) -> Result<Collection, CollectError> {
        if let Some(reason) = self.refuse.lock().unwrap().take() {
            return Err(CollectError::Probe {
                probe: "cpu",
                reason,
            });
        }
        assert!(
            !self.panic.load(Ordering::Relaxed),
            "a bug in the collector"
        );
        let (sender, chunks) = mpsc::channel(4);
        let (stop, stopped) = StopHandle::new();
        self.sessions.lock().unwrap().push(Session {
            chunks: Some(sender),
            stopped,
        });
        Ok(Collection {
            origin_ns: ORIGIN_NS,
            already: *self.already.lock().unwrap(),
            clock: Some(Clock::CpuClock),
            effective_frequency_hz: Some(99),
            notes: vec!["no hardware counters: sampling by cpu-clock".to_owned()],
            chunks,
            stop,
        })
    }
}

impl FakeCollector {
    /// Waits for the next collection to start and takes its collecting side.
    pub(super) async fn session(&self) -> Session {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(session) = self.sessions.lock().unwrap().pop() {
                return session;
            }
            assert!(Instant::now() < deadline, "no collection was started");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) fn started(&self) -> usize {
        self.sessions.lock().unwrap().len()
    }

    /// Plays the collecting side to its end once it is asked to stop.
    pub(super) fn end_when_stopped(mut session: Session) {
        tokio::spawn(async move {
            while !session.is_stopped() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            session
                .send(profile(9 * SECOND_NS, 9 * SECOND_NS + 1, 5))
                .await;
            session.end();
        });
    }
}

/// Opens an engine on `directory` with a clock that the test moves.
pub(super) fn open(directory: &Path, collector: &Arc<FakeCollector>) -> (Engine, Arc<AtomicU64>) {
    let store = Store::open(directory).unwrap();
    with_store(config(directory), store, collector)
}

pub(super) fn with_store(
    config: EngineConfig,
    store: Store,
    collector: &Arc<FakeCollector>,
) -> (Engine, Arc<AtomicU64>) {
    let now = Arc::new(AtomicU64::new(ORIGIN_NS));
    let reader = Arc::clone(&now);
    let clock: ClockReader = Arc::new(move || reader.load(Ordering::Relaxed));
    let clocks = Clocks::new(Arc::clone(&clock), clock);
    let collector: Arc<FakeCollector> = Arc::clone(collector);
    (
        Engine::with_store(config, collector, store, clocks).unwrap(),
        now,
    )
}

pub(super) fn config(directory: &Path) -> EngineConfig {
    EngineConfig {
        data_dir: directory.to_owned(),
        max_running: 2,
        max_queued: 1,
        retention: Retention {
            age: Duration::from_hours(1),
            bytes: 1 << 30,
        },
    }
}

pub(super) fn spec(duration_s: Option<u64>) -> TaskSpec {
    TaskSpec {
        target: Target::All,
        duration_s,
        recording: Recording::Samples(SampleKind::OnCpu.into()),
    }
}

pub(super) fn of_edges(duration_s: Option<u64>) -> TaskSpec {
    TaskSpec {
        recording: Recording::Edges(EdgeSpec::default()),
        ..spec(duration_s)
    }
}

/// `count` samples in the range from `from_ns` to `to_ns` after the origin.
pub(super) fn profile(from_ns: u64, to_ns: u64, count: u64) -> Profile {
    let mut builder = ProfileBuilder::new(ORIGIN_NS, 100_000_000, Clock::CpuClock);
    if count > 0 {
        let module = builder.module("/usr/bin/work", &[1; 20], ModuleKind::Elf);
        let name = builder.string("spin");
        let frame = builder.frame(Frame {
            space: FrameSpace::User,
            module,
            offset: 64,
            functions: vec![Function {
                name,
                file: 0,
                line: 0,
            }],
            source: NameSource::ElfSymbol,
        });
        let stack = builder.stack(vec![frame]);
        let comm = builder.string("work");
        let key = ProcessKey {
            pid: 10,
            start_ticks: 5,
        };
        let process = builder.process(ProfileProcess {
            key,
            comm,
            exe: 0,
            container: 0,
        });
        let thread = builder.thread(ProfileThread {
            process,
            tid: 10,
            name: comm,
        });
        let bucket = u32::try_from(from_ns / 100_000_000).unwrap();
        builder.sample(SampleRow {
            thread,
            stack,
            cpu: 0,
            bucket,
            count,
            state: ThreadState::OnCpu,
            waker: None,
            total_ns: count * 10_101_010,
        });
        builder.losses().add(LossKind::TickMissed, 1);
    }
    builder.cover(from_ns, to_ns);
    builder.finish()
}

/// Waits until the task holds.
pub(super) async fn until(engine: &Engine, id: TaskId, holds: impl Fn(&Task) -> bool) -> Arc<Task> {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let task = engine.get(id).unwrap();
        if holds(&task) {
            return task;
        }
        assert!(
            Instant::now() < deadline,
            "waited in vain, the task is {task:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until retention, a merge or another background step has done its work.
pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn detail(error: TaskError) -> String {
    error.to_string()
}
