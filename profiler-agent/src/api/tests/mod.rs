//! The API as clients see it: in process for what a handler decides, over sockets for what the
//! connection decides.

mod access;
mod access_logs;
mod canary;
mod checkups;
mod description;
mod diagnosis;
mod edge_series;
mod edges;
mod errors;
mod imports;
mod live;
mod masking;
mod node;
mod openapi;
mod overview;
mod refusals;
mod requests;
mod results;
mod security;
mod sockets;
mod symbols;
mod time;

use std::{
    sync::Arc,
    time::Duration,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, header},
};
use profiler_analysis::{diagnosis::DiagnosisRules, idle::IdleRules};
use profiler_host::process::ProcessTable;
use profiler_model::{
    Clock, Frame, FrameSpace, Function, LossKind, Losses, ModuleKind, NameSource, ProcessKey,
    Profile, ProfileBuilder, ProfileProcess, ProfileThread, Recording, SampleRow, TaskSpec,
    ThreadState,
};
use profiler_recording::{
    Chunk, CollectError, Collection, Collector, Part, ProbeState, ProbeStatus, ProbeStatusSource,
    ProgramStats, Requests, Samples, StopHandle,
};
use profiler_symbolize::{Renamer, SymbolPacks};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{ApiParts, ApiState, LivePump, NodeInfo, Origin, Reached, Token, Tokens, router};
use crate::{
    access_log_socket::ReceivedAccessLogs,
    config::{ArgumentPolicy, CapturePolicy},
    telemetry::Totals,
};
use profiler_engine::{
    checkup::Checkups,
    network_watch::NetworkWatch,
    overview::OverviewWatch,
    task::{Engine, EngineConfig, Retention},
};

const NS_PER_MS: u64 = 1_000_000;
/// Room for symbol files, small enough to be exceeded.
const SYMBOL_ROOM: u64 = 4 << 20;

/// A profile of process 1 "app" with rows of (pid, tid, bucket of 100 ms, samples).
pub(super) fn sample_profile(rows: &[(u32, u32, u32, u64)]) -> Profile {
    let mut builder = ProfileBuilder::new(1_000, 100 * NS_PER_MS, Clock::CpuClock);
    let module = builder.module("/bin/app", &[1, 2], ModuleKind::Elf);
    let name = builder.string("hot<script>alert(1)</script>");
    let frame = builder.frame(Frame {
        space: FrameSpace::User,
        module,
        offset: 16,
        functions: vec![Function {
            name,
            file: 0,
            line: 0,
        }],
        source: NameSource::ElfSymbol,
    });
    let stack = builder.stack(vec![frame]);
    let (comm, exe) = (builder.string("app"), builder.string("/bin/app"));
    let mut last = 0;
    for (pid, tid, bucket, count) in rows {
        let key = ProcessKey {
            pid: *pid,
            start_ticks: 5,
        };
        let process = builder.process(ProfileProcess {
            key,
            comm,
            exe,
            container: 0,
        });
        let name = builder.string(&format!("thread-{tid}"));
        let thread = builder.thread(ProfileThread {
            process,
            tid: *tid,
            name,
        });
        let row = SampleRow {
            thread,
            stack,
            cpu: 0,
            bucket: *bucket,
            count: *count,
            state: ThreadState::OnCpu,
            waker: None,
            total_ns: *count * 10 * NS_PER_MS,
        };
        builder.sample(row);
        last = last.max(u64::from(*bucket) + 1);
    }
    builder.losses().add(LossKind::RingBufferFull, 2);
    builder.cover(0, last * 100 * NS_PER_MS);
    builder.finish()
}

/// Frequency at which the fake collector has a hundred times as many samples.
const MANY_HZ: u32 = 4999;

/// Hands out one chunk at once and then nothing until it is stopped; refuses pid 99.
#[derive(Debug)]
struct FakeCollector;

impl Collector for FakeCollector {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        if spec.target == profiler_model::Target::Pids(vec![99]) {
            return Err(CollectError::NoSuchProcess { pid: 99 });
        }
        let (sender, chunks) = mpsc::channel(4);
        let frequency_hz = spec.samples().map(|samples| samples.frequency_hz);
        let many = frequency_hz == Some(MANY_HZ);
        let times = if many { 100 } else { 1 };
        let edges = edges::table_with_connection();
        let part = match &spec.recording {
            Recording::Edges(_) => Part::Edges(edges),
            Recording::Requests(_) => Part::Requests(Requests {
                edges,
                table: requests::table(),
                at_sockets: Vec::new(),
            }),
            Recording::Samples(samples) => {
                let profile = sample_profile(&[(1, 1, 0, 3 * times), (1, 2, 1, 5 * times)]);
                Part::Samples(Samples {
                    effective_frequency_hz: samples.frequency_hz,
                    ..profile.into()
                })
            }
        };
        let chunk = Chunk {
            part,
            target_ended: false,
            notes: vec!["a remark".into()],
        };
        sender.try_send(chunk).unwrap();
        let (stop, flag) = StopHandle::new();
        // Closes the channel once asked to stop, as the real collector does.
        std::thread::spawn(move || {
            while !flag.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
            drop(sender);
        });
        Ok(Collection {
            origin_ns: u64::try_from(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap()
                    .as_nanos(),
            )
            .unwrap(),
            already: Duration::ZERO,
            clock: Some(Clock::CpuClock),
            effective_frequency_hz: frequency_hz,
            notes: Vec::new(),
            chunks,
            stop,
        })
    }
}

struct FakeProbes;

impl ProbeStatusSource for FakeProbes {
    fn probes(&self) -> Vec<ProbeStatus> {
        vec![ProbeStatus {
            name: "on_cpu".into(),
            state: ProbeState::Denied,
            reason: Some("perf_event_open: permission denied".into()),
            minimum_kernel: "5.15".into(),
        }]
    }

    fn programs(&self) -> Vec<ProgramStats> {
        vec![ProgramStats {
            name: "sample".into(),
            run_count: Some(7),
            run_time_ns: Some(1_500_000_000),
            verified_instructions: None,
        }]
    }

    fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        losses.add(LossKind::ProcessEventDropped, 4);
        losses
    }
}

/// An agent without a socket, and what keeps it alive.
struct Api {
    router: Router,
    state: ApiState,
    token: String,
    /// The one that may only look.
    read_only: String,
    shutdown: CancellationToken,
    data: tempfile::TempDir,
}

#[derive(Clone)]
struct Setup {
    network: NetworkWatch,
    overview: OverviewWatch,
    access_logs: ReceivedAccessLogs,
    arguments: ArgumentPolicy,
    capture: CapturePolicy,
    max_running: usize,
    max_queued: usize,
    can_profile: bool,
    enable_statistics: fn() -> std::io::Result<std::os::fd::OwnedFd>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            network: NetworkWatch::off(),
            overview: OverviewWatch::off(),
            access_logs: ReceivedAccessLogs::default(),
            arguments: ArgumentPolicy::Masked,
            capture: CapturePolicy::default(),
            max_running: 8,
            max_queued: 8,
            can_profile: true,
            enable_statistics: node::pretend,
        }
    }
}

impl Api {
    fn new() -> Self {
        Self::with(
            Setup::default(),
            Origin {
                address: ([127, 0, 0, 1], 7117).into(),
                tls: false,
            },
        )
    }

    fn with(setup: Setup, origin: Origin) -> Self {
        let data = tempfile::tempdir().unwrap();
        let token = Token::fresh(data.path()).unwrap();
        let read_only = data.path().join("read-only");
        let tokens = Tokens::new(token.clone())
            .with_read_only(&read_only)
            .unwrap();
        let config = EngineConfig {
            data_dir: data.path().to_owned(),
            max_running: setup.max_running,
            max_queued: setup.max_queued,
            retention: Retention {
                age: Duration::from_hours(1),
                bytes: 1 << 30,
            },
        };
        let engine = Engine::open(config, Arc::new(FakeCollector)).unwrap();
        let shutdown = CancellationToken::new();
        let folder = data.path().join("symbols");
        let symbols = SymbolPacks::open(Some(folder), None, SYMBOL_ROOM);
        let table = ProcessTable::new();
        let state = ApiState::new(ApiParts {
            checkups: Checkups::new(engine.clone(), table.clone(), false),
            engine,
            table,
            probes: Arc::new(FakeProbes),
            renamer: Renamer::start(symbols.clone()).unwrap(),
            symbols,
            idle_rules: Arc::new(IdleRules::new(None).unwrap()),
            diagnosis_rules: Arc::new(DiagnosisRules::new(None).unwrap()),
            totals: Arc::new(Totals::default()),
            network: setup.network,
            overview: setup.overview,
            access_logs: setup.access_logs,
            network_metrics_edges: 2,
            tokens,
            origin,
            reached: Reached::default(),
            arguments: setup.arguments,
            capture: setup.capture,
            node: NodeInfo::read(),
            can_profile: setup.can_profile,
            demo_data: false,
            max_running_tasks: setup.max_running,
            cpu_budget_percent: None,
            inspection: node::inspection(setup.enable_statistics),
            shutdown: shutdown.clone(),
        });
        tokio::spawn(LivePump::new(state.clone()).run());
        let router = router(state.clone()).unwrap();
        Self {
            router,
            state,
            token: token.reveal().to_owned(),
            read_only: Token::from_file(&read_only).unwrap().reveal().to_owned(),
            shutdown,
            data,
        }
    }

    fn data_dir(&self) -> &std::path::Path {
        self.data.path()
    }

    /// A request as the page sends it, with the token.
    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Response<Body> {
        self.send(self.request("GET", path).body(Body::empty()).unwrap())
            .await
    }

    async fn get_json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        json(response).await
    }

    async fn send_empty(&self, method: &str, path: &str) -> Response<Body> {
        self.send(self.request(method, path).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: impl Into<Body>) -> Response<Body> {
        let request = self
            .request("POST", path)
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Creates a task that runs until stopped; returns its id once it has samples.
    async fn running_task(&self) -> String {
        let body = r#"{"kind":"on_cpu","target":{"all":true},"duration_s":null}"#;
        let response = self.post("/api/v1/tasks", body).await;
        assert_eq!(response.status(), 201);
        let task = json(response).await;
        let id = task["id"].as_str().unwrap().to_owned();
        self.wait_for(&id, |task| task["samples"] == 8).await;
        id
    }

    /// Waits until the pump has counted the samples of a running task.
    async fn wait_for_totals(&self) {
        for _ in 0..1000 {
            if self.state.parts.totals.samples() == 8 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} samples were counted", self.state.parts.totals.samples());
    }

    async fn wait_for(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/v1/tasks/{id}");
        for _ in 0..1000 {
            let task = self.get_json(&path).await;
            if holds(&task) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!(
            "task {id} did not get there: {}",
            self.get_json(&path).await
        );
    }
}

async fn bytes(response: Response<Body>) -> Vec<u8> {
    axum::body::to_bytes(response.into_body(), 64 << 20)
        .await
        .unwrap()
        .to_vec()
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(bytes(response).await).unwrap()
}

async fn json(response: Response<Body>) -> Value {
    serde_json::from_slice(&bytes(response).await).unwrap()
}

/// Asserts status, media type and the whole body of an error.
async fn check_problem(response: Response<Body>, expected: Value) {
    assert_eq!(
        u64::from(response.status().as_u16()),
        expected["status"].as_u64().unwrap()
    );
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "application/problem+json"
    );
    assert_eq!(json(response).await, expected);
}

fn is_final(task: &Value) -> bool {
    let state = task["state"].as_str().unwrap();
    ["finished", "failed", "cancelled"].contains(&state)
}
