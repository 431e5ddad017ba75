//! `net`: who talks to whom, without a server and without its data directory.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{
    CliError, Signals,
    net_table::{self, Shown},
    print, say,
};
use crate::{
    api,
    config::cli::{NetArgs, NetPart},
    edge_series::{EdgeSeries, SeriesCut, StepRecorder},
    model::{DEFAULT_FREQUENCY_HZ, EdgeId, EdgeStep, EdgeTable, TaskKind, TaskSpec, WaitRules},
    probes::{
        CollectRequest, Collector as _, NetworkCollector, NetworkConfig, ProbeStatuses,
        TARGET_ENDED,
    },
    process::ProcessTable,
    task,
};

/// Watches until the duration is over, the target's last process has ended, or Ctrl-C; then prints.
pub fn run(args: &NetArgs) -> Result<(), CliError> {
    let spec = TaskSpec {
        kind: TaskKind::Network,
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        frequency_hz: DEFAULT_FREQUENCY_HZ,
        wakers: false,
        event_loop: None,
        requests: None,
        timed: args.timed,
        waits: WaitRules::default(),
    };
    task::validate(&spec).map_err(|error| CliError::Config(error.into()))?;
    let Seen { table, steps } = watch(args, spec)?;
    let text = if args.json {
        let result = Json {
            table: api::EdgeTable::from(&*table),
            series: has(args, NetPart::Series).then(|| all_series(&table, &steps)),
            connections: has(args, NetPart::Connections).then(|| {
                let ids = table.edges.iter().map(|edge| EdgeId::of(&edge.key));
                ids.map(|id| api::EdgeConnections::new(id, &table, true))
                    .collect()
            }),
        };
        serde_json::to_string_pretty(&result).context("encode the edges")? + "\n"
    } else {
        net_table::text(
            &table,
            Shown {
                idle_unix_pairs: args.all_sockets,
                own_pid: std::process::id(),
            },
        )
    };
    Ok(print(&text)?)
}

fn has(args: &NetArgs, part: NetPart) -> bool {
    args.with.contains(&part)
}

/// What was seen until the end.
struct Seen {
    table: Arc<EdgeTable>,
    /// Empty unless they were asked for.
    steps: Vec<EdgeStep>,
}

/// What `--json` prints: the table as the API has it.
#[derive(Serialize)]
struct Json {
    #[serde(flatten)]
    table: api::EdgeTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<api::EdgeSeries>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Vec<api::EdgeConnections>>,
}

/// The series of all edges, each as the API has it.
fn all_series(table: &EdgeTable, steps: &[EdgeStep]) -> Vec<api::EdgeSeries> {
    let all = table.edges.iter().map(|edge| {
        let cut = SeriesCut {
            edge: EdgeId::of(&edge.key),
            from_ms: None,
            to_ms: None,
            most: usize::MAX,
        };
        let mut series = EdgeSeries::default();
        for step in steps {
            series.add(step, &cut);
        }
        api::EdgeSeries::new(cut.edge, &series, table)
    });
    all.collect()
}

fn watch(args: &NetArgs, spec: TaskSpec) -> Result<Seen> {
    let mut config = NetworkConfig {
        denied: args.deny_probe.clone(),
        ..NetworkConfig::default()
    };
    if let Some(connections) = args.max_connections {
        config.connections = connections;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let table = runtime.block_on(async {
        // Before anything that takes time, so that a signal never ends the command without a word.
        let signals = Signals::new()?;
        let collector =
            NetworkCollector::new(ProcessTable::new(), ProbeStatuses::default(), config);
        collect(collector, spec, args, signals).await
    });
    // Programs that are still being loaded end with the process.
    runtime.shutdown_background();
    table
}

async fn collect(
    collector: NetworkCollector,
    spec: TaskSpec,
    args: &NetArgs,
    mut signals: Signals,
) -> Result<Seen> {
    let start = tokio::task::spawn_blocking(move || collector.start(&CollectRequest { spec }));
    let mut collection = tokio::select! {
        started = start => started.context("start to watch")??,
        () = signals.next() => bail!("stopped before it watched: nothing was counted"),
    };
    let end = tokio::time::sleep(args.duration.saturating_sub(collection.already));
    tokio::pin!(end);
    let mut newest = None;
    let mut recorder = StepRecorder::default();
    let mut steps = Vec::new();
    let mut ended = false;
    say(&collection.notes);
    eprintln!("watching");
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                if let Some(table) = chunk.edges.map(Arc::new) {
                    if has(args, NetPart::Series) {
                        let window = table.window.unwrap_or_default();
                        let counted_ns = window.to_ns.saturating_sub(window.from_ns);
                        steps.extend(recorder.step(&table, counted_ns / 1_000_000));
                    }
                    newest = Some(table);
                }
                say(&chunk.notes);
                if chunk.notes.iter().any(|note| note == TARGET_ENDED) {
                    collection.stop.stop();
                }
            }
            () = &mut end, if !ended => {
                ended = true;
                collection.stop.stop();
            }
            () = signals.next() => collection.stop.stop(),
        }
    }
    steps.extend(recorder.rest());
    let table = newest.context("the collection ended without a result")?;
    Ok(Seen { table, steps })
}
