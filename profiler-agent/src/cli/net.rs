//! `net`: who talks to whom, without a server and without its data directory.

use anyhow::{Context as _, Result};

use super::{CliError, net_table, print};
use crate::{
    api,
    config::cli::NetArgs,
    model::{EdgeTable, Target, TaskKind, TaskSpec, WaitRules},
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
    let table = watch(args, spec)?;
    let text = if args.json {
        serde_json::to_string_pretty(&api::EdgeTable::from(&table)).context("encode the edges")?
            + "\n"
    } else {
        net_table::text(&table)
    };
    Ok(print(&text)?)
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

fn watch(args: &NetArgs, spec: TaskSpec) -> Result<EdgeTable> {
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

async fn collect(mut collection: Collection, args: &NetArgs) -> Result<EdgeTable> {
    let end = tokio::time::sleep(args.duration);
    tokio::pin!(end);
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listen for SIGTERM")?;
    let mut newest = None;
    let mut ended = false;
    eprintln!("watching");
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                newest = chunk.edges.or(newest);
            }
            () = &mut end, if !ended => {
                ended = true;
                collection.stop.stop();
            }
            _ = tokio::signal::ctrl_c() => collection.stop.stop(),
            _ = terminate.recv() => collection.stop.stop(),
        }
    }
    newest.context("the collection ended without a result")
}
