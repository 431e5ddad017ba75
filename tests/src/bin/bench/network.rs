//! What watching connections costs: a web server that does nothing but answer, as fast as it can, and
//! the mesh.
//!
//! nginx has the first CPU and wrk the second, so that each request is two reads and two writes of the
//! kernel's fastest path. Everything on the node is watched.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent,
    cleanup::scratch_directory,
    process::{Launch, Running},
    wait::wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use super::{
    Figure, LIMIT, cpu_seconds,
    load::{Comparison, Load, NGINX, Row, Transport, WRK, WebServer, compare, compare_mesh},
    peak_rss_mb,
};

const BPFTRACE: &str = "/usr/bin/bpftrace";
/// How long a peer may take until it is attached.
const PEER_LIMIT: Duration = Duration::from_secs(30);

/// Tracepoints that the agent uses, as bpftrace names them.
const HOOKS: [&str; 9] = [
    "sock:sock_send_length",
    "sock:sock_recv_length",
    "sock:sk_data_ready",
    "sock:inet_sock_set_state",
    "sock:inet_sk_error_report",
    "tcp:tcp_destroy_sock",
    "tcp:tcp_retransmit_skb",
    "tcp:tcp_send_reset",
    "tcp:tcp_receive_reset",
];
/// Those that run for each read and write.
const LENGTHS: usize = 2;

/// What runs beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Light,
    LightFloor,
    /// With the times of calls.
    Timed,
    TimedFloor,
    /// `bpftrace` counting the first N hooks.
    Peer(usize),
}

const ROWS: [(&str, Beside); 7] = [
    ("control", Beside::Nothing),
    ("light", Beside::Light),
    ("light_floor", Beside::LightFloor),
    ("timed", Beside::Timed),
    ("timed_floor", Beside::TimedFloor),
    ("bpftrace_same_hooks", Beside::Peer(HOOKS.len())),
    ("bpftrace_two_lengths", Beside::Peer(LENGTHS)),
];

/// Requests per second that light mode is to keep.
const KEEP_ALIVE_KEPT: f64 = 0.90;
const MESH_KEPT: f64 = 0.98;

pub(crate) struct Options {
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) mesh_pairs: u32,
    pub(crate) mesh_seconds: f64,
}

pub(crate) fn figures(options: &Options) -> Result<Vec<Figure>> {
    ensure!(options.seconds > 0.1, "--seconds must be above 0.1");
    for program in [NGINX, WRK, BPFTRACE] {
        ensure!(Path::new(program).exists(), "no {program}");
    }
    let comparison = Comparison::from_environment()?;
    let rows = |light_keeps: Option<f64>| -> Vec<Row<Beside>> {
        ROWS.iter()
            // Peers have no earlier build.
            .filter(|(_, beside)| {
                !(comparison.is_with_baseline() && matches!(beside, Beside::Peer(_)))
            })
            .map(|&(name, beside)| Row {
                name,
                beside,
                kept: light_keeps.filter(|_keeps| beside == Beside::Light),
            })
            .collect()
    };
    let nginx = WebServer::nginx(Transport::Plain)?;
    let mut figures = Vec::new();
    for (name, keep_alive) in [("keep_alive", true), ("short", false)] {
        let run = |beside, agent: &Path| {
            let load = || nginx.load(keep_alive, options.seconds);
            watched(beside, agent, &nginx.folder, nginx.port, &load)
        };
        run(Beside::Nothing, &comparison.agent)?;
        let rows = rows(keep_alive.then_some(KEEP_ALIVE_KEPT));
        let pairs = options.pairs;
        figures.extend(compare(
            &comparison,
            name,
            &rows,
            Beside::Nothing,
            pairs,
            &run,
        )?);
    }
    drop(nginx);
    let (folder, _guard) = scratch_directory("bench")?;
    let (pairs, seconds) = (options.mesh_pairs, options.mesh_seconds);
    let rows = rows(Some(MESH_KEPT));
    figures.extend(compare_mesh(
        &comparison,
        &rows,
        Beside::Nothing,
        pairs,
        seconds,
        |beside, agent, load| {
            let port = profiler_tests::mesh::SERVER_PORT;
            watched(beside, agent, &folder, port, load)
        },
    )?);
    Ok(figures)
}

/// A load, and what the agent beside it spent meanwhile.
fn watched(
    beside: Beside,
    agent: &Path,
    folder: &Path,
    port: u16,
    load: &dyn Fn() -> Result<Load>,
) -> Result<Load> {
    let companion = Companion::start(beside, agent, folder)?;
    let before = companion.spent()?;
    let load = load()?;
    let spent = companion.spent()? - before;
    companion.end(port)?;
    Ok(load.beside_agent(spent))
}

/// What is to be ended after a run.
enum Companion {
    None,
    Agent(Running, Beside),
    Peer(Running),
}

impl Companion {
    fn start(beside: Beside, agent: &Path, folder: &Path) -> Result<Self> {
        let more: &[&str] = match beside {
            Beside::Nothing => return Ok(Self::None),
            Beside::Peer(hooks) => return Ok(Self::Peer(peer(hooks, folder)?)),
            Beside::Light => &[],
            Beside::LightFloor => &[agent::FLOOR],
            Beside::Timed => &["--timed"],
            Beside::TimedFloor => &["--timed", agent::FLOOR],
        };
        let mut arguments = vec!["net", "--all", "--duration=3600s", "--json"];
        arguments.extend(more);
        let agent = agent::launch_program(agent, &arguments, "net", folder)?;
        wait_for("the agent watches", LIMIT, || {
            agent.errors().contains("watching").then_some(())
        })
        .with_context(|| agent.errors())?;
        Ok(Self::Agent(agent, beside))
    }

    /// CPU time of the agent, in seconds.
    fn spent(&self) -> Result<f64> {
        match self {
            Self::Agent(agent, _beside) => cpu_seconds(agent.pid()),
            Self::None | Self::Peer(_) => Ok(0.0),
        }
    }

    /// Ends what ran beside the load, and checks that it did what it was measured for.
    fn end(self, port: u16) -> Result<()> {
        match self {
            Self::None => {}
            Self::Peer(mut peer) => {
                peer.interrupt(Signal::INT)?;
                let output = peer.output();
                ensure!(
                    output.contains("sock_send_length"),
                    "the peer saw nothing: {output} {}",
                    peer.errors()
                );
            }
            Self::Agent(mut agent, beside) => {
                let (cpu_s, mb) = (cpu_seconds(agent.pid())?, peak_rss_mb(agent.pid())?);
                agent.signal(Signal::TERM)?;
                agent.wait(LIMIT)?;
                let table: Value =
                    serde_json::from_str(&agent.output()).with_context(|| agent.errors())?;
                let writes: u64 = table["edges"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|edge| edge["server"]["port"] == port)
                    .filter_map(|edge| edge["metrics"]["server"]["write"]["count"].as_u64())
                    .sum();
                let is_floor = matches!(beside, Beside::LightFloor | Beside::TimedFloor);
                ensure!(
                    is_floor || writes > 1000,
                    "the agent saw {writes} writes to {port}"
                );
                eprintln!(
                    "  agent: {cpu_s:.2} s of CPU, {mb:.0} MB, lost {}, table {}",
                    table["lost"], table["kernel_table"]
                );
            }
        }
        Ok(())
    }
}

/// `bpftrace` that counts the first N hooks.
fn peer(hooks: usize, folder: &Path) -> Result<Running> {
    let probes: Vec<String> = HOOKS
        .iter()
        .take(hooks)
        .map(|hook| format!("tracepoint:{hook}"))
        .collect();
    let script = format!(
        "BEGIN {{ printf(\"attached\\n\"); }} {} {{ @[probe] = count(); }}",
        probes.join(", ")
    );
    // It looks for tracepoints in debugfs, which not every machine has mounted; a mount namespace of
    // its own leaves this one's mounts alone.
    let in_debugfs =
        format!("mount -t debugfs none /sys/kernel/debug; exec {BPFTRACE} -B none \"$@\"");
    let mut peer = Launch::new(Path::new("unshare"), "peer", folder)
        .args(["--mount", "sh", "-c", &in_debugfs, "sh", "-e", &script])
        .start()?;
    peer.wait_for_line(PEER_LIMIT, |line| (line == "attached").then_some(()))?;
    Ok(peer)
}
