//! The command line as typed. Values of `serve` stay text until they are resolved together with
//! the environment and the file, so that every source is checked by the same code.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use profiler_analysis::render::{Format, Value};
use serde::Serialize;

mod access_logs;
mod health;
mod import;
mod network;
pub(super) mod pods;
mod targets;
mod access;

pub use access::{AccessArgs, UrlArgs};
pub use access_logs::{
    AccessLogsArgs, AccessLogsCommand, LogStatusArgs, ReceiveLogsArgs, SnippetArgs, USUAL_PORT,
};
pub use health::HealthArgs;
pub use import::ImportArgs;
pub use network::{NetArgs, NetPart, NetTarget, RequestsArgs, SamplesKept, TakenFrom};
pub use pods::NameArgs;
use profiler_image::remote_mounts::RemoteFiles;
use profiler_model::{
    IdleMode, MAX_DURATION_S, SampleKind, UnwindMethod, WaitMode, diagnosis::DiagnosisScope,
};
pub use targets::{DiagnoseTarget, RecordTarget};

use super::{EnvoyAdminMode, folders::folder};
use crate::version;

/// How long `record` records where nothing says it; a command may take as long as a task.
const DEFAULT_RECORD: Duration = Duration::from_secs(10);
const LONGEST_RECORD: Duration = Duration::from_secs(MAX_DURATION_S);

/// Profiler for service meshes: eBPF agent, API and web UI in one binary.
#[derive(Debug, Parser)]
#[command(name = "profiler-agent", version = version::SHORT, long_version = version::LONG.as_str(), propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// What is logged to stderr, for example `info` or `profiler=debug,warn` [default: info]
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, which is parsed once"
)]
pub enum Command {
    /// Run the agent with its API and web UI
    Serve(ServeArgs),
    /// Record one profile into a file, without a server
    Record(RecordArgs),
    /// Becomes a command when it is continued: `record -- COMMAND` starts it
    #[command(name = HeldCommand::NAME, hide = true)]
    Held(HeldCommand),
    /// Say which processes talk to which over TCP and Unix sockets, and how well
    Net(NetArgs),
    /// Say what processes ask each other, how often, how long it takes and what fails
    Requests(RequestsArgs),
    /// Say which part of a process costs what and which setting changes it, without a server
    Diagnose(DiagnoseArgs),
    /// List the processes of this machine
    Ps(PsArgs),
    /// Show how the pods of this machine do, what needs attention first, without a running agent
    Top(TopArgs),
    /// Say what this kernel and these privileges allow
    Doctor(DoctorArgs),
    /// Compare two results of a running agent function by function (diagnoses in files: `diagnose --compare`)
    Diff(DiffArgs),
    /// Give a pprof file or folded stacks to a running agent, to look at like its own profiles
    Import(ImportArgs),
    /// Configure Envoys to send their access logs, and see what has come of them
    AccessLogs(AccessLogsArgs),
    /// Save what a running agent knows about itself, without secrets, for a report about it
    SupportBundle(SupportBundleArgs),
    /// Print the address of the agent's page with its token, for who may read the token's file
    Url(UrlArgs),
    /// Ask a running agent whether it works: exit code 0 when it does, for health checks of containers
    Health(HealthArgs),
    /// Print the OpenAPI document of the HTTP API
    Openapi,
}

/// Each setting can also be given as `PROFILER_` + its name in upper case (`PROFILER_DATA_DIR`)
/// or in the TOML file of `--config` (`data_dir`). Flags win over environment over file.
// The names of the fields are the keys of the settings: nothing else lists them.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct ServeArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub receive_logs: ReceiveLogsArgs,
    /// Lower the sampling rate when the agent needs more than this share of one core
    #[arg(long, value_name = "PERCENT")]
    pub cpu_budget: Option<String>,
    /// `always` keeps one low-rate profile of the whole node running [default: off]
    #[arg(long, value_name = "always|off")]
    pub profile: Option<String>,
    /// `always` keeps a light collection of the node's connections running, `tasks` collects for tasks only
    /// [default: tasks]
    #[arg(long, value_name = "always|tasks")]
    pub network: Option<String>,
    /// `off` does without the overview of all pods, for which processes and Envoys are asked every ten seconds
    /// [default: on]
    #[arg(long, value_name = "on|off")]
    pub overview: Option<String>,
    /// Edges that have metrics of their own, about 124 series each; the others are one edge `other`
    /// [default: 200]
    #[arg(long, value_name = "N")]
    pub network_metrics_edges: Option<String>,
    /// Show the arguments of processes; they may hold secrets
    #[arg(long)]
    pub show_arguments: bool,
    /// Let tasks of the API read plaintext at the functions of TLS libraries; each use is logged
    #[arg(long)]
    pub allow_tls_capture: bool,
    /// Let tasks of the API keep bodies of requests; each use is logged
    #[arg(long)]
    pub allow_bodies: bool,
    /// Delete results older than this [default: 7d]
    #[arg(long, value_name = "DURATION")]
    pub retention_age: Option<String>,
    /// Delete the oldest results when they need more than this [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    pub retention_bytes: Option<String>,
    /// Tasks that run at once [default: 8]
    #[arg(long, value_name = "N")]
    pub max_tasks: Option<String>,
    /// Memory that the agent may use; near it caches go, then no task starts, then tasks are stopped. `auto` is 80 % of
    /// the tightest memory limit of its cgroups [default: auto]
    #[arg(long, value_name = "SIZE|auto|none")]
    pub max_memory: Option<String>,
    /// Folder with debug files or unstripped programs, used by their build-id
    #[arg(long, value_name = "DIR")]
    pub symbol_dir: Option<String>,
    /// Room for uploaded symbol files, and again for fetched ones [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub max_symbol_bytes: Option<String>,
    /// Ask this debuginfod server for missing debug files (it learns which programs run here). It may redirect to itself
    /// and to the hosts listed behind it
    #[arg(long, value_name = "URL[,HOST..]")]
    pub debuginfod: Option<String>,
    /// Rules that say which waits are idle, instead of the embedded ones
    #[arg(long, value_name = "FILE")]
    pub idle_rules: Option<String>,
    /// Rules that say what costs what in a diagnosis, in front of the embedded ones
    #[arg(long, value_name = "FILE")]
    pub diagnosis_rules: Option<String>,
    /// Show recorded data of a small mesh instead of this machine; needs no privileges
    #[arg(long)]
    pub demo_data: bool,
    /// Print the effective configuration as TOML and exit
    #[arg(long)]
    pub print_config: bool,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
    /// Let the kernel count runs and run time of BPF programs (costs a little)
    #[arg(long)]
    pub bpf_stats: bool,
    /// How user stacks are walked; frame pointers alone are cheaper and often incomplete
    /// [default: tables]
    #[arg(long, value_name = "tables|frame-pointers")]
    pub unwind: Option<String>,
    /// Whether off-CPU and wall-clock tasks count every wait or sample them; auto samples when there
    /// are more than 50,000 a second [default: auto]
    #[arg(long, value_name = "every|sampled|auto")]
    pub off_cpu_mode: Option<String>,
    /// Whether check-ups ask Envoys for their configuration and counts, by GET on the admin interface
    /// where one can be reached [default: auto]
    #[arg(long, value_name = "auto|off")]
    pub envoy_admin: Option<String>,
    /// Capabilities that are kept, of those that the agent is started with: `base` does without `SYS_ADMIN`, and so
    /// without the sockets of other network namespaces and the kernel's BPF statistics [default: sys-admin]
    #[arg(long, value_name = "sys-admin|base")]
    pub privileges: Option<String>,
    /// Where pods are named: auto (with the account of the pod that the agent runs in), off, or a file for
    /// kubectl [default: auto]
    #[arg(long, value_name = "auto|off|FILE")]
    pub kubernetes: Option<String>,
    /// Name of this node in Kubernetes [default: `NODE_NAME`, which a pod needs; else the host's name]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Sockets of container runtimes, which are asked for names: auto (where their packages put them), off, or
    /// paths separated by commas, each with cri: or docker: before it where the file's name does not tell
    /// [default: auto]
    #[arg(long, value_name = "auto|off|PATH,...")]
    pub runtime_socket: Option<String>,
    /// Whether system calls that the agent never makes are taken away from it, and files and new connections from the thread
    /// that serves HTTP; `off` is for debuggers [default: auto]
    #[arg(long, value_name = "auto|off")]
    pub confine: Option<String>,
    /// Whether files of programs on file systems that others serve (NFS, FUSE and the like) are read for names: a server that
    /// does not answer may then cost the names of other programs as well [default: skip]
    #[arg(long, value_name = "skip|read")]
    pub remote_files: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub target: RecordTarget,
    #[command(flatten)]
    pub names: NameArgs,
    /// How long to record: 1s to 1h [default: 10s; a command until it has ended, at most 1h]
    #[arg(long, value_parser = task_duration)]
    pub duration: Option<Duration>,
    /// Samples per second and CPU: 1 to 4999
    #[arg(long, default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=4999))]
    pub frequency: u32,
    /// What to record: where CPU time goes, what threads wait for, or both in one profile
    #[arg(long, value_enum, default_value = "on-cpu")]
    pub kind: RecordKind,
    /// Also record who ended each wait, and show it above where the thread waited
    #[arg(long)]
    pub wakers: bool,
    /// Also say which threads stayed away from epoll for this long or longer, and what held them
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub event_loop_stalls: Option<Duration>,
    #[arg(long, value_enum)]
    pub format: RecordFormat,
    /// What the numbers count [default: samples of on-cpu, nanoseconds of the others; wall has only
    /// these]
    #[arg(long, value_enum)]
    pub value: Option<RecordValue>,
    /// Whether waits of threads that have nothing to do are written
    #[arg(long, value_enum, default_value = "show")]
    pub idle: RecordIdle,
    /// Rules that say which waits are idle, instead of the embedded ones
    #[arg(long, value_name = "FILE")]
    pub idle_rules: Option<PathBuf>,
    /// File to write; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Folder with debug files or unstripped programs, used by their build-id
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub symbol_dir: Option<PathBuf>,
    /// How user stacks are walked; frame pointers alone are cheaper and often incomplete
    #[arg(long, value_name = "tables|frame-pointers", default_value = "tables")]
    pub unwind: UnwindMethod,
    /// Whether files of programs on file systems that others serve (NFS, FUSE and the like) are read for names; a server
    /// that does not answer may then cost the names of other programs as well
    #[arg(long, value_name = "skip|read", default_value = "skip")]
    pub remote_files: RemoteFiles,
    /// Whether every wait is counted or waits are sampled; auto samples when there are more than
    /// 50,000 a second
    #[arg(long, value_name = "every|sampled|auto", default_value = "auto")]
    pub off_cpu_mode: WaitMode,
    /// Leave out waits that are shorter
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub min_wait: Option<Duration>,
    /// Leave out waits that are longer
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub max_wait: Option<Duration>,
    /// Walk every N-th complete stack a second time with an independent unwinder and report how
    /// many are identical
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub verify_unwinding: u32,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
    /// Start this command, and record it and the processes that it starts
    #[arg(last = true, value_name = "COMMAND", group = "RecordTarget")]
    pub command: Vec<String>,
}

impl RecordArgs {
    /// How long to record at most.
    pub fn duration(&self) -> Duration {
        let usual = if self.command.is_empty() {
            DEFAULT_RECORD
        } else {
            LONGEST_RECORD
        };
        self.duration.unwrap_or(usual)
    }
}

/// See [`Command::Held`].
#[derive(Clone, Debug, Args)]
pub struct HeldCommand {
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

impl HeldCommand {
    /// Of the subcommand.
    pub const NAME: &str = "run-when-continued";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordKind {
    OnCpu,
    OffCpu,
    Wall,
}

impl From<RecordKind> for SampleKind {
    fn from(kind: RecordKind) -> Self {
        match kind {
            RecordKind::OnCpu => Self::OnCpu,
            RecordKind::OffCpu => Self::OffCpu,
            RecordKind::Wall => Self::Wall,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordValue {
    Count,
    Duration,
}

impl From<RecordValue> for Value {
    fn from(value: RecordValue) -> Self {
        match value {
            RecordValue::Count => Self::Count,
            RecordValue::Duration => Self::Duration,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordIdle {
    Show,
    Hide,
    Only,
}

impl From<RecordIdle> for IdleMode {
    fn from(idle: RecordIdle) -> Self {
        match idle {
            RecordIdle::Show => Self::Show,
            RecordIdle::Hide => Self::Hide,
            RecordIdle::Only => Self::Only,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    Folded,
    Pprof,
    Svg,
    Speedscope,
    /// One file that opens in a browser without the agent
    Html,
    Flamegraph,
}

impl From<RecordFormat> for Format {
    fn from(format: RecordFormat) -> Self {
        match format {
            RecordFormat::Folded => Self::Folded,
            RecordFormat::Pprof => Self::Pprof,
            RecordFormat::Svg => Self::Svg,
            RecordFormat::Speedscope => Self::Speedscope,
            RecordFormat::Html => Self::Html,
            RecordFormat::Flamegraph => Self::Flamegraph,
        }
    }
}

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit code 0: done; 3: a finding matches --fail-on; 2: an error in the command line; \
                  1: any other error."
)]
pub struct DiagnoseArgs {
    #[command(flatten)]
    pub target: DiagnoseTarget,
    #[command(flatten)]
    pub names: NameArgs,
    /// How long to watch: 1s to 1h
    #[arg(long, default_value = "30s", value_parser = task_duration)]
    pub duration: Duration,
    /// Samples per second and CPU: 1 to 4999
    #[arg(long, default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=4999))]
    pub frequency: u32,
    /// Also read requests inside TLS, at the functions of TLS libraries
    #[arg(long)]
    pub tls: bool,
    /// Whose CPU time: `sidecar` where the target has just one, else all; or `all`
    #[arg(long, value_name = "sidecar|all", default_value = "sidecar")]
    pub scope: DiagnosisScope,
    /// Print the whole diagnosis as JSON instead of text
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown instead of text
    #[arg(long)]
    pub markdown: bool,
    /// Say also what changed since this diagnosis, which `diagnose --json` wrote
    #[arg(long, value_name = "OLD.json")]
    pub compare: Option<PathBuf>,
    /// End with exit code 3 when there is this finding, or one of this severity or a higher one: high,
    /// medium, low, info (repeat it, or separate by commas)
    #[arg(long, value_name = "FINDING|SEVERITY", value_delimiter = ',')]
    pub fail_on: Vec<String>,
    /// Further rules of attribution and of findings
    #[arg(long, value_name = "FILE")]
    pub diagnosis_rules: Option<PathBuf>,
    /// Rules that say which waits are idle, instead of the embedded ones
    #[arg(long, value_name = "FILE")]
    pub idle_rules: Option<PathBuf>,
    /// Whether Envoys are asked for configuration and counts, by GET on the admin interface
    #[arg(
        long,
        value_enum,
        value_name = "auto|off",
        hide_possible_values = true,
        default_value = "auto"
    )]
    pub envoy_admin: EnvoyAdminMode,
    /// Folder with debug files or unstripped programs, used by their build-id
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub symbol_dir: Option<PathBuf>,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct PsArgs {
    /// By pod, which is a network namespace, with what its sidecar uses of the CPU
    #[arg(long)]
    pub pods: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub names: NameArgs,
}

#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// Time between two readings
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// End after so many pictures [default: one, and in a terminal until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Rows of each picture
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub rows: u64,
    /// Print JSON instead of a table: a document for each picture, each in one line
    #[arg(long)]
    pub json: bool,
    /// Whether Envoys are asked for their counts, by GET on the admin interface
    #[arg(long, value_name = "MODE", value_enum, default_value_t = EnvoyAdminMode::Auto)]
    pub envoy_admin: EnvoyAdminMode,
    #[command(flatten)]
    pub names: NameArgs,
}

#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Say what profiles of this process will be like, instead of what this machine allows
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Folder with debug files or unstripped programs, as for `serve` and `record`
    #[arg(long, value_name = "DIR", requires = "pid", value_parser = folder)]
    pub symbol_dir: Option<PathBuf>,
    /// Do without this probe, as if the kernel refused it; `doctor` lists their names (repeat it, or
    /// separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub deny_probe: Vec<String>,
    /// Address of the agent that is asked whether access logs arrive
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
    /// File with the agent's token, also a read-only one; none is sent when it does not exist
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/profiler-agent/token"
    )]
    pub token_file: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// Task that is the base, by its number
    #[arg(value_name = "BASE")]
    pub base: u64,
    /// Task that is compared with it; may be the same with another time or other threads
    #[arg(value_name = "TASK")]
    pub task: u64,
    /// Compare parts of everything, or amounts for each second
    #[arg(long, value_enum, default_value = "share")]
    pub norm: DiffNorm,
    /// Time of TASK that is compared, milliseconds after its start
    #[arg(long, value_name = "MS")]
    pub from: Option<u64>,
    #[arg(long, value_name = "MS")]
    pub to: Option<u64>,
    /// Time of the base
    #[arg(long, value_name = "MS")]
    pub base_from: Option<u64>,
    #[arg(long, value_name = "MS")]
    pub base_to: Option<u64>,
    /// Thread of TASK; may be repeated
    #[arg(long, value_name = "TID")]
    pub tid: Vec<u32>,
    /// Thread of the base; may be repeated
    #[arg(long, value_name = "TID")]
    pub base_tid: Vec<u32>,
    /// Process, on both sides; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Container, on both sides, by its whole id; may be repeated
    #[arg(long, value_name = "ID")]
    pub container: Vec<String>,
    /// Functions that are listed, the largest change first
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Print the agent's JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Address of the agent, whose certificate must be one that this machine trusts
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
    /// File with the agent's token: `token` in its data directory
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/profiler-agent/token"
    )]
    pub token_file: PathBuf,
}

/// What makes both sides of a comparison comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffNorm {
    Share,
    Rate,
}

impl DiffNorm {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Rate => "rate",
        }
    }
}

#[derive(Clone, Debug, Args)]
pub struct SupportBundleArgs {
    /// Address of the agent, whose certificate must be one that this machine trusts
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
    /// File with the agent's token: `token` in its data directory
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/profiler-agent/token"
    )]
    pub token_file: PathBuf,
    /// File to write; `-` is stdout
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "profiler-agent-support.tar.gz"
    )]
    pub output: PathBuf,
}

/// How long a task lasts: whole seconds, as everywhere in the API.
fn task_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let seconds = duration.as_secs();
    if duration.subsec_nanos() != 0 || !(1..=MAX_DURATION_S).contains(&seconds) {
        return Err(format!(
            "give whole seconds between 1s and {MAX_DURATION_S}s, such as 10s or 2m"
        ));
    }
    Ok(duration)
}
