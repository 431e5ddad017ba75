//! The command lines of what watches connections.

use std::{net::SocketAddr, time::Duration};

use clap::{Args, ValueEnum};
use profiler_model::Target;

use super::{
    pods::{NameArgs, target_of},
    task_duration,
};

#[derive(Clone, Debug, Args)]
pub struct NetArgs {
    #[command(flatten)]
    pub target: NetTarget,
    #[command(flatten)]
    pub names: NameArgs,
    /// How long to watch: 1s to 1h
    #[arg(long, default_value = "10s", value_parser = task_duration)]
    pub duration: Duration,
    /// Also how long reads, writes and accepts take; slows every system call of the machine
    #[arg(long)]
    pub timed: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// More for the JSON, of each edge: what it counted second by second, its open connections (separate
    /// by commas)
    #[arg(long, requires = "json", value_name = "PART", value_delimiter = ',')]
    pub with: Vec<NetPart>,
    /// Also list pairs of unnamed Unix sockets that nobody used; JSON always has them
    #[arg(long)]
    pub all_sockets: bool,
    /// Connections that are watched at once; more are counted as lost [default: 65536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub max_connections: Option<u32>,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
}

/// Requests between processes.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct RequestsArgs {
    #[command(flatten)]
    pub target: NetTarget,
    #[command(flatten)]
    pub names: NameArgs,
    /// How long to look: 1s to 1h
    #[arg(long, default_value = "10s", value_parser = task_duration)]
    pub duration: Duration,
    /// Where requests are taken from (separate by commas)
    #[arg(
        long,
        value_enum,
        value_name = "SOURCE",
        value_delimiter = ',',
        default_value = "sockets"
    )]
    pub source: Vec<TakenFrom>,
    /// Receive access logs at this address of loopback, with `--source access-log` [default: 127.0.0.1:7118]
    #[arg(long, value_name = "ADDR:PORT")]
    pub access_logs: Option<SocketAddr>,
    /// Also read plaintext at the functions of TLS libraries, as `--source sockets,tls`
    #[arg(long)]
    pub tls: bool,
    /// Part of the time in which that is on, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub tls_duty: u8,
    /// Show paths of samples as they were sent, their queries masked; they may hold secrets
    #[arg(long)]
    pub raw_paths: bool,
    /// Keep the first 4096 bytes of bodies of HTTP with the requests that are kept one by one; they may hold secrets
    #[arg(long)]
    pub bodies: bool,
    /// Which requests are kept one by one
    #[arg(long, value_enum, default_value = "slow")]
    pub samples: SamplesKept,
    /// Keep the requests that this rule fits as well: JSON as in "rules" of a task, for example
    /// `{"operation":"^GET /","min_duration_ns":10000000}` (repeat it)
    #[arg(long, value_name = "JSON")]
    pub rule: Vec<String>,
    /// First bytes of each read and write that are looked at [default: 1024, with --bodies 16320]
    #[arg(long, value_name = "N")]
    pub capture_bytes: Option<u32>,
    /// CPU time for reading payload, in percent of one CPU; above it only some connections are captured. Probes of --tls
    /// may cost the processes as much; above that they are attached for a part of the time [default: 5]
    #[arg(long, value_name = "PERCENT")]
    pub cpu_percent: Option<u32>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
}

/// Where `requests` takes requests from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TakenFrom {
    /// Access logs that Envoys send to this command while it runs
    AccessLog,
    /// What is moved over sockets
    Sockets,
    /// Plaintext at the functions of TLS libraries, beside sockets; every call of them is slowed
    Tls,
}

/// Which requests `requests` keeps one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SamplesKept {
    /// The slowest and the first failing ones of each edge in each 10 s
    Slow,
    /// All, as long as there is room
    All,
}

/// What `net --json --with` adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetPart {
    Series,
    Connections,
}

/// Whose connections to watch; exactly one kind.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct NetTarget {
    /// These processes and the children they fork (repeat it, or separate by commas)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Every process of this container: full id, a prefix of at least 12 digits, or its name
    #[arg(long, value_name = "ID|NAME")]
    pub container: Option<String>,
    /// Every process of this pod, or of one of its containers
    #[arg(long, value_name = "[NAMESPACE/]POD[/CONTAINER]")]
    pub pod: Option<String>,
    /// Every process of the pods with these labels, written as for kubectl; also of those that start later
    #[arg(long, value_name = "SELECTOR")]
    pub labels: Option<String>,
    /// Every connection in this network namespace, for example /run/netns/NAME
    #[arg(long, value_name = "PATH")]
    pub netns: Option<String>,
    /// Every connection of the machine
    #[arg(long)]
    pub all: bool,
}

impl NetTarget {
    pub fn to_target(&self) -> Target {
        let Self {
            pid,
            container,
            pod,
            labels,
            netns,
            all: _,
        } = self;
        let named = target_of(pod.as_ref(), labels.as_ref(), container.as_ref());
        match (named, netns) {
            (Some(target), _) => target,
            (None, Some(path)) => Target::NetworkNamespace(path.clone()),
            (None, None) if pid.is_empty() => Target::All,
            (None, None) => Target::Pids(pid.clone()),
        }
    }
}
