//! Runs the collections of a check-up in this process and reads the counters beside them.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use profiler_host::process::ProcessTable;
use profiler_model::{
    CheckupRecord, EdgeTable, EventLoopTable, LossKind, Losses, PodNames, Profile, ProfileBuilder,
    RequestTable, TaskSpec,
};
use profiler_recording::{Chunk, Collection, Collector, Part, Requests, StopHandle};
use profiler_symbolize::{SymbolPacks, SymbolizeConfig, SymbolizerService};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};

use crate::cli::naming::named_table;
use crate::{config::cli::DiagnoseArgs, terminal};
use profiler_engine::checkup::{CheckupRequest, Observer, pod_of, specs};
use profiler_recorder::probes::{
    KindCollector, NetworkCollector, NetworkConfig, ProbeStatuses, SampleRecorder,
    SampleRecorderConfig,
};

/// Everything that was seen.
pub(super) struct Gathered {
    pub(super) on_cpu: Profile,
    pub(super) pod: Option<Arc<PodNames>>,
    pub(super) off_cpu: Option<Profile>,
    pub(super) edges: Option<EdgeTable>,
    pub(super) requests: Option<RequestTable>,
    pub(super) event_loops: Option<EventLoopTable>,
    pub(super) record: CheckupRecord,
    /// What failed or was lost, as sentences.
    pub(super) limits: Vec<String>,
}

/// Watches until the duration is over or a signal asks to end; what was seen until then counts.
pub(super) fn gather(args: &DiagnoseArgs, request: &CheckupRequest) -> Result<Gathered> {
    let symbolize = SymbolizeConfig {
        packs: SymbolPacks::open(None, args.symbol_dir.clone(), 0),
        ..SymbolizeConfig::default()
    };
    let table = named_table(&args.names)?;
    let collector = Arc::new(KindCollector {
        samples: SampleRecorder::new(
            table.clone(),
            SymbolizerService::start(symbolize).context("start the symbolizer")?,
            ProbeStatuses::default(),
            SampleRecorderConfig {
                denied: args.deny_probe.clone(),
                ..SampleRecorderConfig::default()
            },
        ),
        network: NetworkCollector::new(
            table.clone(),
            ProbeStatuses::default(),
            NetworkConfig {
                denied: args.deny_probe.clone(),
                ..NetworkConfig::default()
            },
        ),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the runtime")?;
    let gathered = runtime.block_on(watch(args, request, collector, table));
    // Programs that are still being loaded end with the process.
    runtime.shutdown_background();
    gathered
}

async fn watch(
    args: &DiagnoseArgs,
    request: &CheckupRequest,
    collector: Arc<KindCollector>,
    table: ProcessTable,
) -> Result<Gathered> {
    // Before anything that takes time, so that a signal never ends the command without a word.
    let mut signals = Signals::new()?;
    let (stop, mut stopped) = watch::channel(false);
    let stop = Arc::new(stop);
    let [on_cpu, off_cpu, requests] = specs(request);
    let begin = |spec| start(Arc::clone(&collector), spec, Arc::clone(&stop));
    let (on_cpu, off_cpu, requests) = (begin(on_cpu), begin(off_cpu), begin(requests));
    let mut limits = Vec::new();
    let on_cpu = tokio::select! {
        begun = on_cpu => begun.context("start to sample")??,
        () = signals.next() => bail!("stopped before it sampled: nothing was seen"),
    };
    let names = table.names().clone();
    let observer = Observer::start(request.target.clone(), table, args.envoy_admin.asks())
        .context("start to observe")?;
    terminal::err_line(format_args!(
        "watching for {}",
        humantime::format_duration(args.duration)
    ));
    let interrupted = tokio::select! {
        () = tokio::time::sleep(args.duration) => false,
        // Its target has ended, which its notes say.
        () = until_stopped(&mut stopped) => false,
        () = signals.next() => true,
    };
    // Fails only when no receiver is left.
    let _nobody_left = stop.send(true);
    let record = tokio::task::spawn_blocking(move || observer.finish());
    if interrupted {
        limits.push(format!(
            "It was stopped before the {} were over.",
            humantime::format_duration(args.duration)
        ));
    }
    let on_cpu = on_cpu.await.context("sample")?;
    limits.extend(on_cpu.sentences("On-CPU samples"));
    let event_loops = on_cpu.event_loops;
    let on_cpu = on_cpu
        .profile
        .context("the sampling ended without a result")?;
    let off_cpu = part(off_cpu, "Waits", &mut limits).await;
    let requests = part(requests, "Requests and connections", &mut limits).await;
    let (edges, requests) = requests.map_or((None, None), |kept| (kept.edges, kept.requests));
    Ok(Gathered {
        pod: pod_of(&on_cpu, &names),
        on_cpu,
        off_cpu: off_cpu.and_then(|kept| kept.profile),
        edges,
        requests,
        event_loops,
        record: record.await.context("observe")?,
        limits,
    })
}

type Begun = JoinHandle<Kept>;

/// Starts a collection, and keeps what it hands out until it is stopped and has ended.
fn start(
    collector: Arc<KindCollector>,
    spec: TaskSpec,
    stop: Arc<watch::Sender<bool>>,
) -> JoinHandle<Result<Begun>> {
    tokio::spawn(async move {
        let started = tokio::task::spawn_blocking(move || collector.start(&spec)).await;
        let collection = started.context("internal error")??;
        Ok(tokio::spawn(keep(collection, stop)))
    })
}

/// The result of a part that may fail.
async fn part(
    begun: JoinHandle<Result<Begun>>,
    what: &str,
    limits: &mut Vec<String>,
) -> Option<Kept> {
    let failed = |error: anyhow::Error| format!("{what} are not known: {error:#}.");
    let kept = match begun.await {
        Ok(Ok(begun)) => begun.await.map_err(|error| failed(error.into())),
        Ok(Err(error)) => Err(failed(error)),
        Err(error) => Err(failed(error.into())),
    };
    match kept {
        Ok(kept) => {
            limits.extend(kept.sentences(what));
            Some(kept)
        }
        Err(limit) => {
            limits.push(limit);
            None
        }
    }
}

/// What a collection handed out.
#[derive(Default)]
struct Kept {
    profile: Option<Profile>,
    edges: Option<EdgeTable>,
    requests: Option<RequestTable>,
    event_loops: Option<EventLoopTable>,
    notes: Vec<String>,
}

impl Kept {
    /// Remarks and losses, as sentences.
    fn sentences(&self, what: &str) -> Vec<String> {
        let mut sentences: Vec<String> = self
            .notes
            .iter()
            .map(|note| format!("{what}: {note}."))
            .collect();
        let none = Losses::default();
        let losses = self
            .profile
            .as_ref()
            .map_or(&none, |profile| &profile.losses);
        let lost = losses.iter().filter(|(_, count)| *count > 0);
        sentences.extend(lost.map(|(kind, count): (LossKind, u64)| {
            format!("{what}: lost: {} {count}: {}.", kind.name(), kind.meaning())
        }));
        sentences
    }
}

async fn keep(mut collection: Collection, stop: Arc<watch::Sender<bool>>) -> Kept {
    let mut stopped = stop.subscribe();
    let mut kept = Kept {
        notes: std::mem::take(&mut collection.notes),
        ..Kept::default()
    };
    let mut builder: Option<ProfileBuilder> = None;
    let mut is_stopped = false;
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                if chunk.target_ended {
                    let _nobody_left = stop.send(true);
                }
                take(chunk, &mut kept, &mut builder);
            }
            () = until_stopped(&mut stopped), if !is_stopped => {
                is_stopped = true;
                StopHandle::stop(&collection.stop);
            }
        }
    }
    kept.profile = builder.map(ProfileBuilder::finish);
    kept
}

/// Waits until it is asked to stop, or until no sender is left.
async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stopped| *stopped).await);
}

fn take(chunk: Chunk, kept: &mut Kept, builder: &mut Option<ProfileBuilder>) {
    for note in chunk.notes {
        if !kept.notes.contains(&note) {
            kept.notes.push(note);
        }
    }
    let profile = match chunk.part {
        // The whole table so far, as that of event loops.
        Part::Edges(edges) => {
            kept.edges = Some(edges);
            return;
        }
        Part::Requests(Requests {
            edges,
            table,
            at_sockets: _,
        }) => {
            kept.edges = Some(edges);
            kept.requests = Some(table);
            return;
        }
        Part::Samples(part) => {
            if part.event_loop.is_some() {
                kept.event_loops = part.event_loop;
            }
            part.profile
        }
    };
    builder
        .get_or_insert_with(|| {
            ProfileBuilder::new(profile.origin_ns, profile.bucket_ns, profile.clock)
        })
        .merge(&profile);
}

/// What asks the command to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listen for SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
