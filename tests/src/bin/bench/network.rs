//! What watching connections costs: a web server that does nothing but answer, as fast as it can, and
//! the mesh.
//!
//! nginx has the first CPU and wrk the second, so that each request is two reads and two writes of the
//! kernel's fastest path. Everything on the node is watched.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent,
    cleanup::{Guard, scratch_directory},
    mesh::{Mesh, MeshOptions},
    paths,
    process::{Launch, Running},
    wait::wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use super::{Figure, LIMIT, Target, cpu_seconds, figure, peak_rss_mb};

const NGINX: &str = "/usr/sbin/nginx";
const WRK: &str = "/usr/bin/wrk";
const BPFTRACE: &str = "/usr/bin/bpftrace";
/// How long a peer may take until it is attached.
const PEER_LIMIT: Duration = Duration::from_secs(30);
/// Keep-alive connections of wrk.
const CONNECTIONS: &str = "32";
/// The share of the mesh's greatest rate at which its CPU time is compared.
const STEADY_SHARE: f64 = 0.5;

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
    /// With the times of calls.
    Timed,
    /// `bpftrace` counting the first so many of the hooks.
    Peer(usize),
}

const ROWS: [(&str, Beside); 5] = [
    ("control", Beside::Nothing),
    ("light", Beside::Light),
    ("timed", Beside::Timed),
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

/// One run of a load.
#[derive(Clone, Copy, Debug)]
struct Load {
    per_second: f64,
    p99_us: f64,
    /// CPU time of the whole machine for a request.
    cpu_us: f64,
}

pub(crate) fn figures(options: &Options) -> Result<Vec<Figure>> {
    ensure!(options.seconds > 0.1, "--seconds must be above 0.1");
    for program in [NGINX, WRK, BPFTRACE] {
        ensure!(Path::new(program).exists(), "no {program}");
    }
    let mut rows = ROWS.to_vec();
    if !has_timed_mode()? {
        eprintln!("this agent has no mode that takes times of calls");
        rows.retain(|(_, beside)| *beside != Beside::Timed);
    }
    let nginx = Nginx::start()?;
    let mut figures = Vec::new();
    for (name, keep_alive) in [("keep_alive", true), ("short", false)] {
        let run = |beside| {
            let companion = Companion::start(beside, &nginx.folder)?;
            let load = nginx.load(keep_alive, options.seconds)?;
            companion.end(nginx.port)?;
            Ok(load)
        };
        run(Beside::Nothing)?;
        let goal = keep_alive.then_some(KEEP_ALIVE_KEPT);
        figures.extend(compare(name, &rows, options.pairs, goal, run)?);
    }
    drop(nginx);
    figures.extend(mesh(options, &rows)?);
    Ok(figures)
}

/// Pairs of runs without and with each row's companion, in turn, so that a change of the machine's
/// speed meets all rows.
fn compare(
    what: &str,
    rows: &[(&str, Beside)],
    pairs: u32,
    goal: Option<f64>,
    run: impl Fn(Beside) -> Result<Load>,
) -> Result<Vec<Figure>> {
    let mut measured: Vec<Vec<(Load, Load)>> = rows.iter().map(|_| Vec::new()).collect();
    for index in 0..pairs {
        for ((name, beside), pairs_of_row) in rows.iter().zip(&mut measured) {
            let (without, with) = if index % 2 == 1 {
                let with = run(*beside)?;
                (run(Beside::Nothing)?, with)
            } else {
                (run(Beside::Nothing)?, run(*beside)?)
            };
            eprintln!(
                "{what}, pair {} of {pairs}, {name}: {:.0} requests/s alone, {:.0} beside; \
                 p99 {:.0} and {:.0} us; CPU {:.1} and {:.1} us",
                index + 1,
                without.per_second,
                with.per_second,
                without.p99_us,
                with.p99_us,
                without.cpu_us,
                with.cpu_us,
            );
            pairs_of_row.push((without, with));
        }
    }
    let mut figures = Vec::new();
    for ((name, beside), pairs) in rows.iter().zip(measured) {
        let column = |pick: fn(&(Load, Load)) -> f64| pairs.iter().map(pick).collect::<Vec<_>>();
        let goal = goal.filter(|_goal| *beside == Beside::Light);
        figures.push(figure(
            &format!("{what}_requests_kept_{name}"),
            "ratio",
            column(|(without, with)| with.per_second / without.per_second),
            goal.map(Target::AtLeast),
        ));
        figures.push(figure(
            &format!("{what}_p99_{name}"),
            "ratio to without",
            column(|(without, with)| with.p99_us / without.p99_us),
            None,
        ));
        figures.push(figure(
            &format!("{what}_machine_cpu_per_request_{name}"),
            "ratio to without",
            column(|(without, with)| with.cpu_us / without.cpu_us),
            None,
        ));
        figures.push(figure(
            &format!("{what}_requests_per_second_{name}"),
            "requests/s",
            column(|(_, with)| with.per_second),
            None,
        ));
    }
    Ok(figures)
}

/// The mesh as fast as it can, and at a fixed rate for its CPU time.
fn mesh(options: &Options, rows: &[(&str, Beside)]) -> Result<Vec<Figure>> {
    let (folder, _guard) = scratch_directory("bench")?;
    let mesh = Mesh::up(&MeshOptions {
        workers: 2,
        mtls: true,
        ..MeshOptions::default()
    })?;
    let duration = Duration::from_secs_f64(options.mesh_seconds);
    let run = |beside: Beside, rate: u32| -> Result<Load> {
        let companion = Companion::start(beside, &folder)?;
        let before = machine_cpu_seconds()?;
        let report = mesh.run_load_at(rate, duration)?;
        let spent = machine_cpu_seconds()? - before;
        ensure!(report.errors == 0, "requests failed: {report:?}");
        companion.end(profiler_tests::mesh::SERVER_PORT)?;
        Ok(Load {
            per_second: report.rps,
            p99_us: exact(report.latency_us.p99),
            cpu_us: spent * 1e6 / exact(report.requests),
        })
    };
    // The first load finds cold caches and connections.
    run(Beside::Nothing, 0)?;
    let greatest = run(Beside::Nothing, 0)?.per_second;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of some thousand"
    )]
    let steady = (greatest * STEADY_SHARE).max(1.0) as u32;
    let pairs = options.mesh_pairs;
    let mut figures = compare("mesh", rows, pairs, Some(MESH_KEPT), |beside| {
        run(beside, 0)
    })?;
    let name = format!("mesh_at_{steady}_per_second");
    figures.extend(compare(&name, rows, pairs, None, |beside| {
        run(beside, steady)
    })?);
    Ok(figures)
}

/// A web server with one worker on the first CPU, ended when dropped.
struct Nginx {
    _process: Running,
    port: u16,
    folder: PathBuf,
    _folder_guard: Guard,
}

impl Nginx {
    fn start() -> Result<Self> {
        let (folder, guard) = scratch_directory("bench")?;
        // Free a moment ago; nginx has no way to say which port it has chosen.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let place = folder.display();
        let configuration = format!(
            "daemon off; worker_processes 1; worker_cpu_affinity 1; pid {place}/pid;\n\
             error_log {place}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; keepalive_requests 1000000000;\n\
             client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
             uwsgi_temp_path {place}; scgi_temp_path {place};\n\
             server {{ listen 127.0.0.1:{port} backlog=4096;\n\
             location / {{ return 200 hello; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration).context("write nginx.conf")?;
        let process = Launch::new(Path::new(NGINX), "nginx", &folder)
            .args([Path::new("-c"), &file])
            .start()?;
        wait_for("nginx listens", LIMIT, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .with_context(|| process.errors())?;
        Ok(Self {
            _process: process,
            port,
            folder,
            _folder_guard: guard,
        })
    }

    /// Requests as fast as answers come.
    fn load(&self, keep_alive: bool, seconds: f64) -> Result<Load> {
        // Whole seconds are all that it knows.
        let duration = format!("{}s", seconds.ceil().max(1.0));
        let url = format!("http://127.0.0.1:{}/", self.port);
        let mut wrk = Launch::new(Path::new("taskset"), "wrk", &self.folder)
            .args(["--cpu-list", "1", WRK, "--latency", "-t1"])
            .args(["-c", CONNECTIONS, "-d", &duration]);
        if !keep_alive {
            wrk = wrk.args(["-H", "Connection: close"]);
        }
        let before = machine_cpu_seconds()?;
        let output = wrk
            .args([&url])
            .start()?
            .finish(Duration::from_secs_f64(seconds) + LIMIT)?;
        let spent = machine_cpu_seconds()? - before;
        wrk_report(&output, spent).with_context(|| format!("parse {output:?}"))
    }
}

/// What wrk says about its requests.
fn wrk_report(output: &str, spent_s: f64) -> Option<Load> {
    let field = |label: &str| {
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let per_second: f64 = field("Requests/sec:")?.parse().ok()?;
    let requests: f64 = output
        .lines()
        .find(|line| line.contains(" requests in "))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let p99 = field("99%")?;
    let (digits, unit_us) = [("us", 1.0), ("ms", 1e3), ("s", 1e6)]
        .into_iter()
        .find_map(|(unit, us)| Some((p99.strip_suffix(unit)?, us)))?;
    Some(Load {
        per_second,
        p99_us: digits.parse::<f64>().ok()? * unit_us,
        cpu_us: spent_s * 1e6 / requests,
    })
}

/// What is to be ended after a run.
enum Companion {
    None,
    Agent(Running),
    Peer(Running),
}

impl Companion {
    fn start(beside: Beside, folder: &Path) -> Result<Self> {
        let more: &[&str] = match beside {
            Beside::Nothing => return Ok(Self::None),
            Beside::Peer(hooks) => return Ok(Self::Peer(peer(hooks, folder)?)),
            Beside::Light => &[],
            Beside::Timed => &["--timed"],
        };
        let mut arguments = vec!["net", "--all", "--duration=3600s", "--json"];
        arguments.extend(more);
        let agent = agent::launch(&arguments, "net", folder)?;
        wait_for("the agent watches", LIMIT, || {
            agent.errors().contains("watching").then_some(())
        })
        .with_context(|| agent.errors())?;
        Ok(Self::Agent(agent))
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
            Self::Agent(mut agent) => {
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
                ensure!(writes > 1000, "the agent saw {writes} writes to {port}");
                eprintln!(
                    "  agent: {cpu_s:.2} s of CPU, {mb:.0} MB, lost {}, table {}",
                    table["lost"], table["kernel_table"]
                );
            }
        }
        Ok(())
    }
}

/// `bpftrace` that counts the first so many hooks.
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

/// Whether `net` can take the times of calls.
fn has_timed_mode() -> Result<bool> {
    let help = std::process::Command::new(paths::agent()?)
        .args(["net", "--help"])
        .output()
        .context("ask the agent for its options")?;
    Ok(String::from_utf8_lossy(&help.stdout).contains("--timed"))
}

/// CPU time that everything on the machine has used, in seconds.
fn machine_cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
    let all = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = all
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    ensure!(ticks.len() > 7, "parse {all:?}");
    // user, nice, system, then idle and waiting for disks, then interrupts.
    let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    Ok(busy / super::TICKS_PER_SECOND)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a bench stay below 2^52"
)]
fn exact(count: u64) -> f64 {
    count as f64
}
