//! `net`: who talks to whom, without a server and without its data directory.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    CliError,
    net_table::{self, Shown},
    print,
};
use crate::{
    api,
    config::cli::NetArgs,
    model::{DEFAULT_FREQUENCY_HZ, EdgeTable, Target, TaskKind, TaskSpec, WaitRules},
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
        target: target(args),
        duration_s: Some(args.duration.as_secs()),
        frequency_hz: DEFAULT_FREQUENCY_HZ,
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let table = runtime.block_on(async {
        // Before anything that takes time, so that a signal never ends the command without a word.
        let signals = Signals::new()?;
        let collector =
            NetworkCollector::new(ProcessTable::new(), ProbeStatuses::default(), config);
        collect(collector, spec, args.duration, signals).await
    });
    // Programs that are still being loaded end with the process.
    runtime.shutdown_background();
    table
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

async fn collect(
    collector: NetworkCollector,
    spec: TaskSpec,
    duration: Duration,
    mut signals: Signals,
) -> Result<EdgeTable> {
    let start = tokio::task::spawn_blocking(move || collector.start(&CollectRequest { spec }));
    let mut collection = tokio::select! {
        started = start => started.context("start to watch")??,
        () = signals.next() => bail!("stopped before it watched: nothing was counted"),
    };
    let end = tokio::time::sleep(duration);
    tokio::pin!(end);
    let mut newest = None;
    let mut ended = false;
    say(&collection.notes);
    eprintln!("watching");
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                newest = chunk.edges.or(newest);
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
    newest.context("the collection ended without a result")
}

fn say(notes: &[String]) {
    for note in notes {
        eprintln!("note: {note}");
    }
}
