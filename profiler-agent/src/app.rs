//! Composition root of `serve`: builds every stage, spawns every task, and joins them at the end.
//!
//! ```text
//! kernel side --collector--> engine --changes--> pump --messages--> listeners (SSE)
//!      |                                          ^
//!      `--process events--> process table --------'       API server: engine, table, pump
//! ```

use std::{future::Future, os::fd::OwnedFd, sync::Arc, time::Duration};

use profiler_analysis::{diagnosis::DiagnosisRulesError, idle::IdleRulesError};
use profiler_host::{container_names, name_sources::NameSources, process::ProcessTable};
use profiler_model::{
    Recording, SampleKind, SampleSpec, Target, TaskId, TaskSpec, TaskState, overview::Overview,
};
use profiler_recording::{AbsentProbes, Collector, ProbeStatusSource};
use profiler_symbolize::{
    Renamer, SymbolPacks, SymbolizeConfig, SymbolizerService, start_debuginfod,
};
use tokio::{sync::broadcast::error::RecvError, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    access_log_socket::{AccessLogSocket, AccessLogSocketError, ReceivedAccessLogs},
    api::{
        self, ApiParts, ApiState, AuthError, Inspection, LivePump, NodeInfo, Reached, RouterError,
        Server, ServerError, Statistics, Token, Tokens,
    },
    config::{AuthConfig, ContinuousProfile, NetworkMode, OverviewMode, ServeConfig},
    recent_log::RecentLog,
    rule_files,
    telemetry::Totals,
};
use profiler_engine::{
    access_logs::{LogsCollector, LogsWatch},
    checkup::Checkups,
    memory_watch::keep_below,
    network_watch::NetworkWatch,
    overview::{OverviewConfig, OverviewWatch},
    task::{Engine, EngineConfig, TaskChange, TaskError},
};
use profiler_memory::Ceiling;
use profiler_recorder::{
    bpf::{enable_statistics, has_loop_helper, is_embedded},
    probes::{
        KindCollector, NetworkCollector, NetworkConfig, ProbeStatuses, ProcessEvents,
        SampleRecorder, SampleRecorderConfig,
    },
};
use profiler_server_tls::{ServerTls, TlsError};

/// Longest time for everything to end after a signal.
pub const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// The part of it that is left for work on other threads that blocks.
pub const LAST_WORK: Duration = Duration::from_millis(300);
const STOPPING: Duration = STOP_DEADLINE
    .saturating_sub(LAST_WORK)
    // Before it would be ended by force.
    .saturating_sub(Duration::from_millis(300));
/// How long open requests may take to end within that.
const DRAIN: Duration = Duration::from_secs(2);
/// Tasks that wait for a place; one more is refused.
const MAX_QUEUED: usize = 64;
/// Low enough to be always on, and no divisor of common timer rates.
const CONTINUOUS_FREQUENCY_HZ: u32 = 19;
/// Time before a continuous profile that failed is tried again.
const CONTINUOUS_RETRY: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    AccessLogs(#[from] AccessLogSocketError),
    #[error("open the results: {0}")]
    Engine(#[from] TaskError),
    #[error("start the thread that names stored frames: {0}")]
    Renamer(std::io::Error),
    #[error("start the thread that names containers: {0}")]
    Names(std::io::Error),
    #[error("start the thread that reads all pods: {0}")]
    Overview(std::io::Error),
    #[error(transparent)]
    Router(#[from] RouterError),
    #[error(transparent)]
    IdleRules(#[from] IdleRulesError),
    #[error(transparent)]
    DiagnosisRules(#[from] DiagnosisRulesError),
    #[error("the {name} ended unexpectedly{}", detail.as_deref().unwrap_or(""))]
    Ended {
        name: &'static str,
        detail: Option<String>,
    },
}

/// The kernel side as the rest sees it, with the process table that it feeds.
#[expect(
    missing_debug_implementations,
    reason = "holds trait objects without Debug"
)]
pub struct KernelSide {
    pub table: ProcessTable,
    pub collector: Arc<dyn Collector>,
    pub probes: Arc<dyn ProbeStatusSource>,
    /// Live fork, exec and exit events; without them the table follows by reading /proc.
    pub process_events: Option<ProcessEvents>,
    /// Keeps the kernel's BPF statistics on.
    pub statistics: Option<OwnedFd>,
    /// Symbol files, which the symbolizer looks into and the API adds to.
    pub symbols: SymbolPacks,
    pub node: NodeInfo,
    /// Programs can be loaded.
    pub can_profile: bool,
    /// Everything above was recorded elsewhere.
    pub demo_data: bool,
    /// The overview as it was then.
    pub overview: Option<Overview>,
}

impl KernelSide {
    /// Nothing in the kernel: every task fails with `reason`.
    pub fn absent(reason: &str) -> Self {
        let absent = Arc::new(AbsentProbes {
            reason: reason.to_owned(),
        });
        Self {
            table: ProcessTable::new(),
            collector: absent.clone(),
            probes: absent,
            process_events: None,
            statistics: None,
            symbols: SymbolPacks::none(),
            node: NodeInfo::read(),
            can_profile: false,
            demo_data: false,
            overview: None,
        }
    }

    /// Loads what this build and this kernel have. What they lack shows in the probes' states and
    /// as the reason of tasks that need it; it does not keep the agent from starting.
    pub fn load(config: &ServeConfig) -> std::io::Result<Self> {
        let statistics = config
            .bpf_stats
            .then(enable_statistics)
            .and_then(|enabled| {
                enabled
                    .inspect_err(
                        |error| tracing::warn!(%error, "turn on the kernel's BPF statistics"),
                    )
                    .ok()
            });
        let table = ProcessTable::new();
        let statuses = ProbeStatuses::default();
        let process_events = ProcessEvents::start(table.clone(), &statuses, &config.deny_probes)
            .inspect_err(|error| {
                tracing::warn!(%error, "no live process events; processes are followed by reading /proc");
            })
            .ok();
        let on_cpu = SampleRecorderConfig {
            denied: config.deny_probes.clone(),
            cpu_budget_percent: config.cpu_budget_percent,
            bpf_statistics: statistics.is_some(),
            unwind: config.unwind,
            wait_mode: config.off_cpu_mode,
            verify_every: 0,
        };
        let symbols = SymbolPacks::open(
            Some(config.data_dir.join("symbols")),
            config.symbol_dir.clone(),
            config.max_symbol_bytes,
        );
        if let Some(server) = &config.debuginfod {
            start_debuginfod(server, &symbols)?;
        }
        let symbolizer = SymbolizerService::start(SymbolizeConfig {
            packs: symbols.clone(),
            ..SymbolizeConfig::below(|bytes, parts| Ceiling::own().share(bytes, parts))
        })?;
        let collector = KindCollector {
            samples: SampleRecorder::new(table.clone(), symbolizer, statuses.clone(), on_cpu),
            network: NetworkCollector::new(
                table.clone(),
                statuses.clone(),
                NetworkConfig {
                    denied: config.deny_probes.clone(),
                    bpf_statistics: statistics.is_some(),
                    ..NetworkConfig::default()
                },
            ),
        };
        for name in statuses.unknown(&config.deny_probes) {
            let known = statuses.names().join(", ");
            tracing::warn!(%name, %known, "--deny-probe: no probe has this name, it denies nothing");
        }
        Ok(Self {
            table,
            collector: Arc::new(collector),
            probes: Arc::new(statuses),
            process_events,
            statistics,
            symbols,
            node: NodeInfo::read(),
            // The question for a helper is the smallest program.
            can_profile: is_embedded() && has_loop_helper().is_ok(),
            demo_data: false,
            overview: None,
        })
    }
}

/// What ended: its name and how.
type Ending = (&'static str, Result<(), AppError>);

/// A started agent.
#[expect(missing_debug_implementations, reason = "holds the API's state")]
pub struct App {
    engine: Engine,
    shutdown: CancellationToken,
    server: axum_server::Handle<std::net::SocketAddr>,
    tasks: JoinSet<Ending>,
    url: String,
    origin: api::Origin,
    process_events: Option<ProcessEvents>,
    _statistics: Option<OwnedFd>,
    _names: Option<NameSources>,
}

impl App {
    /// Builds all stages and spawns their tasks; the socket is bound when this returns. Needs a
    /// tokio runtime.
    pub fn start(config: ServeConfig, kernel: KernelSide) -> Result<Self, AppError> {
        // Everything that can be wrong with files and addresses comes before the store is opened.
        api::prepare_data_dir(&config.data_dir)?;
        let idle_rules = Arc::new(rule_files::idle(config.idle_rules.as_deref())?);
        let diagnosis_rules = Arc::new(rule_files::diagnosis(config.diagnosis_rules.as_deref())?);
        let tls = config
            .tls
            .as_ref()
            .map(profiler_server_tls::load)
            .transpose()?;
        let (tls, certificate) = tls
            .map(
                |ServerTls {
                     config,
                     certificate,
                 }| (config, certificate),
            )
            .unzip();
        let server = Server::bind(config.listen, tls)?;
        // Recorded data has none.
        let logs = config.access_logs.as_ref().filter(|_| !kernel.demo_data);
        let logs = logs.map(AccessLogSocket::bind).transpose()?;
        let mut access_logs = match logs {
            Some(socket) => socket.start(kernel.table.clone(), config.envoy_admin.asks())?,
            None => ReceivedAccessLogs::default(),
        };
        let collector: Arc<dyn Collector> = Arc::new(LogsCollector::new(
            access_logs.logs.clone(),
            kernel.table.clone(),
            Arc::clone(&kernel.collector),
        ));
        let always = config.profile == ContinuousProfile::Always;
        let engine = Engine::open(engine_config(&config, always), Arc::clone(&collector))?;
        if access_logs.logs.is_on() {
            let watch = LogsWatch::start(collector).map_err(AccessLogSocketError::Start)?;
            access_logs.watch = watch;
        }
        // Only now: a second agent on the same directory must not replace the first one's token.
        let tokens = tokens(&config)?;

        container_names::restore(&config.data_dir, kernel.table.names());
        let names = if kernel.demo_data {
            None
        } else {
            let started = NameSources::start(config.names.clone(), kernel.table.clone());
            Some(started.map_err(AppError::Names)?)
        };
        let shutdown = CancellationToken::new();
        let origin = server.origin();
        // A token that its user gave is a secret of his: it stays out of what is printed and logged.
        let shown = tokens
            .full_token()
            .filter(|_| !matches!(config.auth, AuthConfig::File(_)));
        let url = origin.url(shown);
        let renamer = Renamer::start(kernel.symbols.clone()).map_err(AppError::Renamer)?;
        let (network, watching) = if config.network == NetworkMode::Always {
            let collector = Arc::clone(&kernel.collector);
            let (network, watching) = NetworkWatch::start(collector, shutdown.clone());
            (network, Some(watching))
        } else {
            (NetworkWatch::off(), None)
        };
        let overview = if let Some(recorded) = kernel.overview {
            OverviewWatch::recorded(recorded)
        } else if config.overview == OverviewMode::On && !kernel.demo_data {
            let readings = OverviewConfig {
                period: OverviewConfig::PERIOD,
                first: OverviewConfig::FIRST,
                asks_envoys: config.envoy_admin.asks(),
            };
            OverviewWatch::start(kernel.table.clone(), readings, |_| {})
                .map_err(AppError::Overview)?
        } else {
            OverviewWatch::off()
        };
        let directory = kernel.table.names().clone();
        let kept_below = keep_below(
            Ceiling::own(),
            engine.clone(),
            renamer.clone(),
            network.is_on(),
            shutdown.clone(),
        );
        let state = ApiState::new(ApiParts {
            engine: engine.clone(),
            table: kernel.table.clone(),
            probes: kernel.probes,
            symbols: kernel.symbols,
            renamer,
            idle_rules,
            checkups: Checkups::new(engine.clone(), kernel.table, config.envoy_admin.asks()),
            diagnosis_rules,
            totals: Arc::new(Totals::default()),
            network,
            overview,
            access_logs,
            network_metrics_edges: config.network_metrics_edges,
            tokens,
            origin,
            reached: Reached::new(config.listen, certificate),
            arguments: config.arguments,
            capture: config.capture,
            node: kernel.node,
            can_profile: kernel.can_profile,
            demo_data: kernel.demo_data,
            max_running_tasks: config.max_tasks,
            cpu_budget_percent: config.cpu_budget_percent,
            inspection: Inspection::new(
                config.masked(),
                RecentLog::own(),
                Statistics {
                    always: kernel.statistics.is_some(),
                    enable: enable_statistics,
                },
            ),
            shutdown: shutdown.clone(),
        });
        let pump = LivePump::new(state.clone());
        let router = api::router(state)?;
        let handle = server.handle();

        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            (
                "server",
                server.run_apart(router).await.map_err(AppError::from),
            )
        });
        tasks.spawn(async {
            pump.run().await;
            ("event pump", Ok(()))
        });
        if names.is_some() {
            let folder = config.data_dir.clone();
            let saved = container_names::keep_saved(folder, directory, shutdown.clone());
            tasks.spawn(async move {
                saved.await;
                ("names on disk", Ok(()))
            });
        }
        tasks.spawn(async {
            kept_below.await;
            ("memory watch", Ok(()))
        });
        if always {
            let kept = keep_continuous_profile(engine.clone(), shutdown.clone());
            tasks.spawn(async {
                kept.await;
                ("continuous profile", Ok(()))
            });
        }
        if let Some(watching) = watching {
            tasks.spawn(async {
                watching.await;
                ("network collection", Ok(()))
            });
        }
        tracing::info!(address = %origin.address, data_dir = %config.data_dir.display(), "started");
        Ok(Self {
            engine,
            shutdown,
            server: handle,
            tasks,
            url,
            origin,
            process_events: kernel.process_events,
            _statistics: kernel.statistics,
            _names: names,
        })
    }

    /// The address for people, with the token in its fragment when the agent made it for this run.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn origin(&self) -> api::Origin {
        self.origin
    }

    /// Runs until `stop` completes or a stage ends, then stops everything within
    /// [`STOP_DEADLINE`]. An error is what ended by itself.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<(), AppError> {
        let ended = {
            tokio::pin!(stop);
            tokio::select! {
                () = &mut stop => Ok(()),
                Some(ended) = self.tasks.join_next() => Err(unexpected(ended)),
            }
        };
        // From now on requests are answered by `shutting_down` and streams end.
        self.shutdown.cancel();
        self.server.graceful_shutdown(Some(DRAIN));
        let process_events = self.process_events.take();
        let stopping = async {
            self.engine.shutdown().await;
            // Waits for its thread.
            let dropped = tokio::task::spawn_blocking(move || drop(process_events));
            if let Err(error) = dropped.await {
                tracing::error!(%error, "stop the process events");
            }
            while let Some(ended) = self.tasks.join_next().await {
                match ended {
                    Ok((name, Err(error))) => {
                        tracing::error!(name, %error, "failed while stopping");
                    }
                    Ok((name, Ok(()))) => tracing::debug!(name, "ended"),
                    Err(error) => tracing::error!(%error, "panicked while stopping"),
                }
            }
        };
        if timeout(STOPPING, stopping).await.is_err() {
            tracing::error!(deadline = ?STOP_DEADLINE, "not everything ended in time");
        }
        tracing::info!("stopped");
        ended
    }
}

fn engine_config(config: &ServeConfig, always: bool) -> EngineConfig {
    EngineConfig {
        data_dir: config.data_dir.clone(),
        // The continuous profile does not take a place from the user's tasks.
        max_running: config.max_tasks + usize::from(always),
        max_queued: MAX_QUEUED,
        retention: config.retention,
    }
}

fn tokens(config: &ServeConfig) -> Result<Tokens, AuthError> {
    let tokens = match &config.auth {
        AuthConfig::None => Tokens::none(),
        AuthConfig::Fresh => Tokens::new(Token::fresh(&config.data_dir)?),
        AuthConfig::File(path) => Tokens::new(Token::from_file(path)?),
    };
    match &config.read_only_token {
        Some(path) => tokens.with_read_only(path),
        None => Ok(tokens),
    }
}

fn unexpected(ended: Result<Ending, tokio::task::JoinError>) -> AppError {
    match ended {
        Ok((_, Err(error))) => error,
        Ok((name, Ok(()))) => AppError::Ended { name, detail: None },
        Err(error) => AppError::Ended {
            name: "agent",
            detail: Some(format!(": {error}")),
        },
    }
}

/// Keeps one low-rate profile of the whole node running: starts it, and again after a failure.
/// When a user stops it, it stays stopped until the agent starts again.
async fn keep_continuous_profile(engine: Engine, shutdown: CancellationToken) {
    let spec = TaskSpec {
        target: Target::All,
        duration_s: None,
        recording: Recording::Samples(SampleSpec {
            frequency_hz: CONTINUOUS_FREQUENCY_HZ,
            ..SampleKind::OnCpu.into()
        }),
    };
    loop {
        let mut changes = engine.subscribe();
        match engine.create(spec.clone()).await {
            Ok(task) => {
                let ended = tokio::select! {
                    () = shutdown.cancelled() => return,
                    ended = end_of(&engine, &mut changes, task.id) => ended,
                };
                let Some(TaskState::Failed { reason }) = ended else {
                    tracing::info!(task = %task.id, "the continuous profile was stopped by a user");
                    shutdown.cancelled().await;
                    return;
                };
                tracing::warn!(task = %task.id, reason, "the continuous profile failed");
            }
            Err(error) => tracing::warn!(%error, "start the continuous profile"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(CONTINUOUS_RETRY) => {}
        }
    }
}

/// Waits until a task is final; `None` when it was deleted.
async fn end_of(
    engine: &Engine,
    changes: &mut tokio::sync::broadcast::Receiver<TaskChange>,
    id: TaskId,
) -> Option<TaskState> {
    loop {
        let task = engine.get(id).ok()?;
        if task.state.is_final() {
            return Some(task.state.clone());
        }
        // Which change it was does not matter, nor does a missed one: the state is read again.
        if let Err(RecvError::Closed) = changes.recv().await {
            return None;
        }
    }
}
