//! `net`: who talks to whom, without a server and without its data directory.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::{CliError, print};
use crate::{
    api,
    config::cli::NetArgs,
    model::{Edge, EdgeTable, Endpoint, SideMetrics, Target, TaskKind, TaskSpec, WaitRules},
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
        waits: WaitRules::default(),
    };
    task::validate(&spec).map_err(|error| CliError::Config(error.into()))?;
    let table = watch(args, spec)?;
    let text = if args.json {
        serde_json::to_string_pretty(&api::EdgeTable::from(&table)).context("encode the edges")?
            + "\n"
    } else {
        text_table(&table)
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

fn text_table(table: &EdgeTable) -> String {
    let mut text = format!(
        "{:<30} {:<30} {:>6} {:>10} {:>12} {:>10} {:>12} {:>9} {:>6} {:>6} {:>6}\n",
        "CLIENT",
        "SERVER",
        "CONNS",
        "WRITES",
        "BYTES OUT",
        "READS",
        "BYTES IN",
        "RTT us",
        "RETR",
        "RESET",
        "DROP"
    );
    for edge in &table.edges {
        row(&mut text, edge);
    }
    for (metric, reason) in &table.unavailable {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "unavailable: {metric}: {reason}");
    }
    for (what, count) in &table.unresolved {
        let _infallible = writeln!(text, "unresolved: {what}: {count}");
    }
    if table.lost_events > 0 {
        let _infallible = writeln!(
            text,
            "lost: {} events, {} bytes: the table of connections was full",
            table.lost_events, table.lost_bytes
        );
    }
    text
}

/// The client's view; the server's, turned round, where the client was not watched.
fn row(text: &mut String, edge: &Edge) {
    let nothing = SideMetrics::default();
    let client = edge.client.as_ref();
    let metrics = client.or(edge.server.as_ref()).unwrap_or(&nothing);
    let (out, back) = if client.is_some() {
        (&metrics.write, &metrics.read)
    } else {
        (&metrics.read, &metrics.write)
    };
    let rtt = &metrics.write_rtt;
    let rtt = rtt.sum.checked_div(rtt.count);
    let redirected = edge
        .key
        .original_destination
        .map_or_else(String::new, |(address, port)| {
            format!(" (asked for {})", std::net::SocketAddr::new(address, port))
        });
    // Writing to a String cannot fail.
    let _infallible = writeln!(
        text,
        "{:<30} {:<30} {:>6} {:>10} {:>12} {:>10} {:>12} {:>9} {:>6} {:>6} {:>6}{redirected}",
        end(
            &edge.key.client,
            edge.client_name.as_deref(),
            edge.client_port
        ),
        end(
            &edge.key.server,
            edge.server_name.as_deref(),
            Some(edge.key.server_port)
        ),
        metrics.connections,
        out.count,
        out.bytes,
        back.count,
        back.bytes,
        rtt.map_or_else(|| "-".to_owned(), |rtt| rtt.to_string()),
        metrics.retransmits,
        metrics.resets_sent + metrics.resets_received,
        metrics.drops,
    );
}

fn end(endpoint: &Endpoint, name: Option<&str>, port: Option<u16>) -> String {
    let process = endpoint.pid.map_or_else(String::new, |pid| {
        // A name may hold control characters, which a terminal would follow.
        let comm: String = endpoint.comm.escape_default().collect();
        format!("{comm}[{pid}] ")
    });
    let port = port.map_or_else(|| "*".to_owned(), |port| port.to_string());
    let name = name.map_or_else(String::new, |name| format!(" ({})", name.escape_default()));
    match endpoint.address {
        std::net::IpAddr::V4(address) => format!("{process}{address}:{port}{name}"),
        std::net::IpAddr::V6(address) => format!("{process}[{address}]:{port}{name}"),
    }
}
