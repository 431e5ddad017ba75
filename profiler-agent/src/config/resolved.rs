//! The validated configuration of `serve`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use profiler_engine::task::Retention;
use profiler_host::name_sources::SourceConfig;
use profiler_image::remote_mounts::RemoteFiles;
use profiler_model::{UnwindMethod, WaitMode};
use profiler_sandbox::{confine::Confinement, privileges::Tier};
use profiler_symbolize::DebuginfodServer;

use profiler_server_tls::TlsConfig;

use super::{
    access::{AuthConfig, auth},
    access_logs::{AccessLogsConfig, access_logs},
    cli::ServeArgs,
    file, folders, names,
    settings::{ConfigError, Setting, Settings},
};
use profiler_memory::{Limit, LimitSource, cgroup_limit};

const DEFAULT_PORT: u16 = 7117;
const DEFAULT_DATA_DIR: &str = "/var/lib/profiler-agent";
const DEFAULT_RETENTION: Retention = Retention {
    age: Duration::from_hours(7 * 24),
    bytes: 1 << 30,
};
/// The unstripped programs of a mesh's node have some gigabytes.
const DEFAULT_MAX_SYMBOL_BYTES: u64 = 4 << 30;
/// Every running task has its own kernel maps; eight stay well inside the agent's memory target.
const DEFAULT_MAX_TASKS: usize = 8;
const MAX_TASKS_LIMIT: usize = 64;
/// Each edge has some 150 lines of metrics when everything happens on it; most have a third of that.
const DEFAULT_METRICS_EDGES: usize = 200;
const MAX_METRICS_EDGES: usize = 10_000;
/// One on-CPU task of one process after another runs below this (`memory::alone::the_least_ceiling_lets_a_task_run`).
const MIN_MEMORY_BYTES: u64 = 96 << 20;
/// Below this the newest minute of a busy node does not fit.
const MIN_RETENTION_BYTES: u64 = 1 << 20;

/// Whether one low-rate profile of the node is always running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinuousProfile {
    Always,
    Off,
}

/// Whether one light network collection of the node is always running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    Always,
    /// Connections are watched for tasks only.
    Tasks,
}

/// Whether all pods are read again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverviewMode {
    On,
    Off,
}

/// Whether check-ups and the overview ask Envoys on their admin interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EnvoyAdminMode {
    /// Where it can be reached; only GET.
    Auto,
    Off,
}

impl EnvoyAdminMode {
    pub fn asks(self) -> bool {
        self == Self::Auto
    }

    /// As in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// Whether arguments of processes leave the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentPolicy {
    Masked,
    Shown,
}

/// Whether tasks of the API may do something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allowance {
    #[default]
    Refused,
    Allowed,
}

/// What of payload tasks of the API may look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapturePolicy {
    /// Plaintext at the functions of TLS libraries.
    pub tls: Allowance,
    /// Bodies of requests.
    pub bodies: Allowance,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServeConfig {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    pub auth: AuthConfig,
    /// File of a token that may only look.
    pub read_only_token: Option<PathBuf>,
    pub tls: Option<TlsConfig>,
    /// Where access logs of Envoys are received; `None`: they are not.
    pub access_logs: Option<AccessLogsConfig>,
    /// Share of one core, in percent.
    pub cpu_budget_percent: Option<f64>,
    pub profile: ContinuousProfile,
    pub network: NetworkMode,
    pub overview: OverviewMode,
    /// Edges with Prometheus metrics of their own.
    pub network_metrics_edges: usize,
    pub arguments: ArgumentPolicy,
    pub capture: CapturePolicy,
    pub retention: Retention,
    pub max_tasks: usize,
    /// The ceiling for the agent's own memory.
    pub max_memory: Limit,
    /// Symbol files of the user, used by their build-id.
    pub symbol_dir: Option<PathBuf>,
    pub max_symbol_bytes: u64,
    /// The server that is asked for debug files.
    pub debuginfod: Option<DebuginfodServer>,
    /// Rules that say which waits are idle, instead of the embedded ones.
    pub idle_rules: Option<PathBuf>,
    /// Rules for diagnoses that come before the embedded ones.
    pub diagnosis_rules: Option<PathBuf>,
    /// Recorded data is shown instead of this machine.
    pub demo_data: bool,
    /// Log filter, checked by the telemetry module.
    pub log: String,
    pub deny_probes: Vec<String>,
    pub bpf_stats: bool,
    pub unwind: UnwindMethod,
    /// Whether waits are sampled, where a task does not say.
    pub off_cpu_mode: WaitMode,
    pub envoy_admin: EnvoyAdminMode,
    pub privileges: Tier,
    /// The sources that are asked for the names of containers.
    pub names: SourceConfig,
    pub confine: Confinement,
    pub remote_files: RemoteFiles,
}

/// Merges flags, environment and file, and checks the result. `log` is the global flag and
/// `environment` reads one variable.
pub fn resolve_serve(
    args: &ServeArgs,
    log: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ServeConfig, ConfigError> {
    let typed = Settings::from_flags(args, log)?.or(Settings::from_environment(environment));
    let file = match typed.get("config") {
        Some(setting) => file::read(Path::new(setting.text()))?,
        None => Settings::default(),
    };
    validate(&typed.or(file))
}

fn validate(settings: &Settings) -> Result<ServeConfig, ConfigError> {
    let listen = parse_or(settings, "listen", default_listen(), address)?;
    let tls = tls(settings)?;
    let auth = auth(settings)?;
    if !listen.ip().is_loopback() {
        if auth == AuthConfig::None {
            return Err(ConfigError::Conflict(format!(
                "--no-auth is accepted on loopback only, but the agent is to listen on {listen}: \
                 remove --no-auth or listen on 127.0.0.1"
            )));
        }
        if tls.is_none() {
            return Err(ConfigError::Conflict(format!(
                "listening on {listen} needs TLS because it is not loopback: \
                 give --tls-cert and --tls-key, or listen on 127.0.0.1"
            )));
        }
    }
    let demo_data = parse_or(settings, "demo_data", false, switch)?;
    if let Some(setting) = settings.get("data_dir").filter(|_| demo_data) {
        return Err(ConfigError::Conflict(format!(
            "demo data is kept in a folder that goes away with the agent: remove {} or --demo-data",
            setting.origin
        )));
    }
    Ok(ServeConfig {
        listen,
        data_dir: parse_or(settings, "data_dir", DEFAULT_DATA_DIR.into(), path)?,
        auth,
        read_only_token: settings.get("read_only_token_file").map(path).transpose()?,
        tls,
        access_logs: access_logs(settings)?,
        cpu_budget_percent: settings.get("cpu_budget").map(percent).transpose()?,
        profile: parse_or(
            settings,
            "profile",
            ContinuousProfile::Off,
            continuous_profile,
        )?,
        network: parse_or(settings, "network", NetworkMode::Tasks, network_mode)?,
        overview: parse_or(settings, "overview", OverviewMode::On, overview_mode)?,
        network_metrics_edges: parse_or(
            settings,
            "network_metrics_edges",
            DEFAULT_METRICS_EDGES,
            metrics_edges,
        )?,
        arguments: if parse_or(settings, "show_arguments", false, switch)? {
            ArgumentPolicy::Shown
        } else {
            ArgumentPolicy::Masked
        },
        capture: CapturePolicy {
            tls: allowance(parse_or(settings, "allow_tls_capture", false, switch)?),
            bodies: allowance(parse_or(settings, "allow_bodies", false, switch)?),
        },
        retention: Retention {
            age: parse_or(settings, "retention_age", DEFAULT_RETENTION.age, age)?,
            bytes: parse_or(settings, "retention_bytes", DEFAULT_RETENTION.bytes, size)?,
        },
        max_tasks: parse_or(settings, "max_tasks", DEFAULT_MAX_TASKS, task_count)?,
        max_memory: settings
            .get("max_memory")
            .map_or_else(|| Ok(cgroup_limit()), memory)?,
        symbol_dir: settings.get("symbol_dir").map(folder).transpose()?,
        max_symbol_bytes: parse_or(settings, "max_symbol_bytes", DEFAULT_MAX_SYMBOL_BYTES, size)?,
        debuginfod: settings.get("debuginfod").map(server).transpose()?,
        idle_rules: settings.get("idle_rules").map(path).transpose()?,
        diagnosis_rules: settings.get("diagnosis_rules").map(path).transpose()?,
        demo_data,
        log: settings
            .get("log")
            .map_or("info", |setting| setting.text())
            .to_owned(),
        deny_probes: settings
            .get("deny_probe")
            .map(|setting| setting.values.clone())
            .unwrap_or_default(),
        bpf_stats: parse_or(settings, "bpf_stats", false, switch)?,
        unwind: parse_or(settings, "unwind", UnwindMethod::Tables, unwind_method)?,
        off_cpu_mode: parse_or(settings, "off_cpu_mode", WaitMode::Auto, wait_mode)?,
        envoy_admin: parse_or(settings, "envoy_admin", EnvoyAdminMode::Auto, envoy_admin)?,
        privileges: parse_or(settings, "privileges", Tier::default(), privileges)?,
        names: names::names(settings)?,
        confine: parse_or(settings, "confine", Confinement::default(), confinement)?,
        remote_files: parse_or(
            settings,
            "remote_files",
            RemoteFiles::Skip,
            names::remote_files,
        )?,
    })
}

fn default_listen() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))
}

pub(super) fn parse_or<T>(
    settings: &Settings,
    key: &str,
    default: T,
    parse: fn(&Setting) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    settings.get(key).map_or(Ok(default), parse)
}

fn tls(settings: &Settings) -> Result<Option<TlsConfig>, ConfigError> {
    match (settings.get("tls_cert"), settings.get("tls_key")) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(TlsConfig {
            cert: path(cert)?,
            key: path(key)?,
        })),
        (Some(_), None) => Err(ConfigError::Conflict(
            "a TLS certificate is given without its private key: add --tls-key FILE".into(),
        )),
        (None, Some(_)) => Err(ConfigError::Conflict(
            "a TLS private key is given without its certificate: add --tls-cert FILE".into(),
        )),
    }
}

pub(super) fn address(setting: &Setting) -> Result<SocketAddr, ConfigError> {
    if let Some(port) = setting.text().strip_prefix("localhost:")
        && let Ok(port) = port.parse()
    {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    setting.text().parse().map_err(|_| {
        setting.invalid(
            "is not an IP address and port: write for example 127.0.0.1:PORT or [::1]:PORT",
        )
    })
}

pub(super) fn path(setting: &Setting) -> Result<PathBuf, ConfigError> {
    match setting.text() {
        "" => Err(setting.invalid("is not a path: give a file or folder name")),
        text => Ok(PathBuf::from(text)),
    }
}

fn folder(setting: &Setting) -> Result<PathBuf, ConfigError> {
    folders::folder(setting.text()).map_err(|problem| setting.invalid(problem))
}

fn server(setting: &Setting) -> Result<DebuginfodServer, ConfigError> {
    let parsed = setting.text().parse::<DebuginfodServer>();
    parsed.map_err(|problem| setting.invalid(problem))
}

pub(super) fn switch(setting: &Setting) -> Result<bool, ConfigError> {
    match setting.text() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(setting.invalid("is not a switch: write true or false")),
    }
}

fn allowance(is_allowed: bool) -> Allowance {
    if is_allowed {
        Allowance::Allowed
    } else {
        Allowance::Refused
    }
}

fn continuous_profile(setting: &Setting) -> Result<ContinuousProfile, ConfigError> {
    match setting.text() {
        "always" => Ok(ContinuousProfile::Always),
        "off" => Ok(ContinuousProfile::Off),
        _ => Err(setting.invalid("is not known: write always or off")),
    }
}

fn network_mode(setting: &Setting) -> Result<NetworkMode, ConfigError> {
    match setting.text() {
        "always" => Ok(NetworkMode::Always),
        "tasks" => Ok(NetworkMode::Tasks),
        _ => Err(setting.invalid("is not known: write always or tasks")),
    }
}

fn overview_mode(setting: &Setting) -> Result<OverviewMode, ConfigError> {
    match setting.text() {
        "on" => Ok(OverviewMode::On),
        "off" => Ok(OverviewMode::Off),
        _ => Err(setting.invalid("is not known: write on or off")),
    }
}

fn metrics_edges(setting: &Setting) -> Result<usize, ConfigError> {
    match setting.text().parse() {
        Ok(count) if count <= MAX_METRICS_EDGES => Ok(count),
        _ => Err(setting.invalid(format!("is not a number from 0 to {MAX_METRICS_EDGES}"))),
    }
}

fn unwind_method(setting: &Setting) -> Result<UnwindMethod, ConfigError> {
    setting
        .text()
        .parse()
        .map_err(|problem: &str| setting.invalid(problem))
}

fn privileges(setting: &Setting) -> Result<Tier, ConfigError> {
    [Tier::SysAdmin, Tier::Base]
        .into_iter()
        .find(|tier| tier.name() == setting.text())
        .ok_or_else(|| setting.invalid("is not one of: sys-admin, base"))
}

fn confinement(setting: &Setting) -> Result<Confinement, ConfigError> {
    [Confinement::Auto, Confinement::Off]
        .into_iter()
        .find(|confine| confine.name() == setting.text())
        .ok_or_else(|| setting.invalid("is neither auto nor off"))
}

fn envoy_admin(setting: &Setting) -> Result<EnvoyAdminMode, ConfigError> {
    EnvoyAdminMode::from_str(setting.text(), false)
        .map_err(|_| setting.invalid("is neither auto nor off"))
}

fn wait_mode(setting: &Setting) -> Result<WaitMode, ConfigError> {
    setting
        .text()
        .parse()
        .map_err(|problem: &str| setting.invalid(problem))
}

fn percent(setting: &Setting) -> Result<f64, ConfigError> {
    match setting
        .text()
        .trim_end_matches('%')
        .trim_end()
        .parse::<f64>()
    {
        Ok(percent) if percent.is_finite() && percent > 0.0 => Ok(percent),
        _ => Err(setting.invalid(
            "is not a share of one core in percent: give a number above 0, for example 5 or 0.5",
        )),
    }
}

fn age(setting: &Setting) -> Result<Duration, ConfigError> {
    match humantime::parse_duration(setting.text()) {
        Ok(age) if age >= Duration::from_secs(1) => Ok(age),
        Ok(_) => Err(setting.invalid("is too short: give at least 1s")),
        Err(error) => Err(setting.invalid(format!(
            "is not a duration ({error}): write for example 12h or 7d"
        ))),
    }
}

fn task_count(setting: &Setting) -> Result<usize, ConfigError> {
    match setting.text().parse() {
        Ok(count) if (1..=MAX_TASKS_LIMIT).contains(&count) => Ok(count),
        _ => Err(setting.invalid(format!("is not a number from 1 to {MAX_TASKS_LIMIT}"))),
    }
}

/// Bytes: a number, alone or with B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB.
fn size(setting: &Setting) -> Result<u64, ConfigError> {
    match parse_size(setting.text()) {
        Some(bytes) if bytes >= MIN_RETENTION_BYTES => Ok(bytes),
        Some(_) => Err(setting.invalid("is too small: give at least 1MiB")),
        None => Err(setting.invalid("is not a size: write for example 500MB or 1GiB")),
    }
}

fn memory(setting: &Setting) -> Result<Limit, ConfigError> {
    let bytes = match setting.text() {
        "auto" => return Ok(cgroup_limit()),
        "none" => None,
        text => match parse_size(text) {
            Some(bytes) if bytes >= MIN_MEMORY_BYTES => Some(bytes),
            Some(_) => {
                return Err(setting.invalid(
                    "is too small: give at least 96MiB, which one task after another needs",
                ));
            }
            None => {
                return Err(
                    setting.invalid("is not a size: write for example 300MB or 1GiB, auto or none")
                );
            }
        },
    };
    Ok(Limit {
        bytes,
        source: LimitSource::Setting,
    })
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}
