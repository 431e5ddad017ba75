//! `net`: connections between processes, without a server and without its data directory.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use profiler_analysis::{
    edge_series::{EdgeSeries, SeriesCut, StepRecorder},
    render::net_table::{self, Shown},
};
use profiler_host::process::ProcessTable;
use profiler_model::{EdgeId, EdgeSpec, EdgeStep, EdgeTable, Recording, TaskSpec};
use profiler_recording::Part;
use serde::Serialize;

use super::{
    CliError, flags,
    watching::{self, Watcher},
};
use crate::cli::naming::{ask_for, legend, named_table};
use crate::{
    api,
    config::cli::{NetArgs, NetPart},
    terminal::{self, Text},
};
use profiler_recorder::probes::{NetworkConfig, is_never_of_unix_sockets};

/// Watches until the duration is over, the target's last process has ended, or Ctrl-C; then prints.
pub fn run(args: &NetArgs) -> Result<(), CliError> {
    let edges = EdgeSpec { timed: args.timed };
    let spec = TaskSpec {
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        recording: Recording::Edges(edges),
    };
    flags::check(&spec)?;
    let processes = named_table(&args.names)?;
    let Seen { table, steps } = watch(args, spec, edges, &processes)?;
    let ends = || table.edges.iter().flat_map(|edge| edge.key.ends());
    ask_for(&args.names, ends(), &processes)?;
    let text = if args.json {
        let result = Json {
            table: api::EdgeTable::new(&table, processes.names()),
            series: has(args, NetPart::Series).then(|| all_series(&table, &steps)),
            connections: has(args, NetPart::Connections).then(|| {
                let ids = table.edges.iter().map(|edge| EdgeId::of(&edge.key));
                ids.map(|id| api::EdgeConnections::new(id, &table, true))
                    .collect()
            }),
        };
        Text::json(&result).context("encode the edges")?
    } else {
        let shown = Shown {
            idle_unix_pairs: args.all_sockets,
            own_pid: std::process::id(),
            is_never_known: is_never_of_unix_sockets,
        };
        let mut text = net_table::text(&table, shown);
        text.push(&legend(ends(), &processes));
        text
    };
    Ok(terminal::out(&text)?)
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

fn watch(args: &NetArgs, spec: TaskSpec, edges: EdgeSpec, table: &ProcessTable) -> Result<Seen> {
    let mut config = NetworkConfig {
        denied: args.deny_probe.clone(),
        ..NetworkConfig::default()
    };
    if let Some(connections) = args.max_connections {
        config.connections = connections;
    }
    let mut watched = Edges {
        wants_series: has(args, NetPart::Series),
        newest: None,
        recorder: StepRecorder::default(),
        steps: Vec::new(),
    };
    watching::watch(
        config,
        table.clone(),
        move |collector| collector.start(&spec.target, spec.duration_s, edges, None),
        args.duration,
        &mut watched,
    )?;
    watched.steps.extend(watched.recorder.rest());
    let table = watched
        .newest
        .context("the collection ended without a result")?;
    Ok(Seen {
        table,
        steps: watched.steps,
    })
}

/// The edges so far.
struct Edges {
    wants_series: bool,
    newest: Option<Arc<EdgeTable>>,
    recorder: StepRecorder,
    steps: Vec<EdgeStep>,
}

impl Watcher for Edges {
    const WORDS: [&'static str; 3] = ["watch", "watched", "watching"];

    fn take(&mut self, part: Part) {
        let Part::Edges(table) = part else {
            return;
        };
        let table = Arc::new(table);
        if self.wants_series {
            let window = table.window.unwrap_or_default();
            let counted_ns = window.to_ns.saturating_sub(window.from_ns);
            self.steps
                .extend(self.recorder.step(&table, counted_ns / 1_000_000));
        }
        self.newest = Some(table);
    }
}
