//! `net`: who talks to whom, without a server and without its data directory.

use std::{sync::Arc, time::Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::{CliError, net_table, print};
use crate::{
    api,
    config::cli::NetArgs,
    edge_series::{EdgeSeries, SeriesCut, StepRecorder},
    model::{EdgeId, EdgeStep, EdgeTable, Target, TaskKind, TaskSpec, WaitRules},
    probes::{
        CollectRequest, Collection, Collector as _, NetworkCollector, NetworkConfig, ProbeStatuses,
    },
    process::ProcessTable,
    task,
};

/// The engine wants a rate of every task; nothing is sampled here.
const NO_FREQUENCY: u32 = 1;

/// Watches until the duration is over or Ctrl-C, then prints.
pub fn run(args: &NetArgs) -> Result<(), CliError> {
    let spec = TaskSpec {
        kind: TaskKind::Network,
        target: target(args),
        duration_s: Some(args.duration.as_secs()),
        frequency_hz: NO_FREQUENCY,
        wakers: false,
        timed: args.timed,
        waits: WaitRules::default(),
    };
    task::validate(&spec).map_err(|error| CliError::Config(error.into()))?;
    let Seen { table, steps } = watch(args, spec)?;
    let text = if args.json {
        let result = Json {
            table: api::EdgeTable::from(&*table),
            series: args.series.then(|| all_series(&table, &steps)),
        };
        serde_json::to_string_pretty(&result).context("encode the edges")? + "\n"
    } else {
        net_table::text(&table)
    };
    Ok(print(&text)?)
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

fn target(args: &NetArgs) -> Target {
    let given = &args.target;
    if let Some(id) = &given.container {
        Target::Container(id.clone())
    } else if let Some(path) = &given.netns {
        Target::NetworkNamespace(path.clone())
    } else if given.pid.is_empty() {
        Target::All
    } else {
        Target::Pids(given.pid.clone())
    }
}

fn watch(args: &NetArgs, spec: TaskSpec) -> Result<Seen> {
    let mut config = NetworkConfig {
        denied: args.deny_probe.clone(),
        ..NetworkConfig::default()
    };
    if let Some(connections) = args.max_connections {
        config.connections = connections;
    }
    let collector = NetworkCollector::new(ProcessTable::new(), ProbeStatuses::default(), config);
    let collection = collector.start(&CollectRequest { spec })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(collect(collection, args))
}

async fn collect(mut collection: Collection, args: &NetArgs) -> Result<Seen> {
    let end = tokio::time::sleep(args.duration);
    tokio::pin!(end);
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listen for SIGTERM")?;
    let mut newest = None;
    let mut recorder = StepRecorder::default();
    let mut steps = Vec::new();
    let began = Instant::now();
    let mut ended = false;
    eprintln!("watching");
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                let Some(table) = chunk.edges.map(Arc::new) else { continue };
                if args.series {
                    let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    steps.extend(recorder.step(&table, now_ms));
                }
                newest = Some(table);
            }
            () = &mut end, if !ended => {
                ended = true;
                collection.stop.stop();
            }
            _ = tokio::signal::ctrl_c() => collection.stop.stop(),
            _ = terminate.recv() => collection.stop.stop(),
        }
    }
    steps.extend(recorder.rest());
    let table = newest.context("the collection ended without a result")?;
    Ok(Seen { table, steps })
}
