//! What can be chosen per run.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use profiler_access_logs::snippet::Transport;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccessLog {
    Off,
    /// Istio's default text format.
    Text,
    Json,
    /// The text format, to a pipe whose reader is slow.
    SlowPipe,
    /// Entries streamed to an access log service.
    Grpc,
    /// Entries sent to an agent on this machine, configured as its users are told, by Envoy's access log service.
    AgentGrpc,
    /// The same by OpenTelemetry.
    AgentOtlp,
}

impl AccessLog {
    /// How an agent is sent them.
    pub fn to_agent(self) -> Option<Transport> {
        match self {
            Self::AgentGrpc => Some(Transport::Grpc),
            Self::AgentOtlp => Some(Transport::Otlp),
            Self::Off | Self::Text | Self::Json | Self::SlowPipe | Self::Grpc => None,
        }
    }
}

/// Protocol between the sidecars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Upstream {
    Http1,
    Http2,
}

/// What the apps speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum App {
    Http1,
    /// The server app is the tonic service of the tests; sidecars must speak HTTP/2 with each other.
    Grpc,
}

/// Where spans go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tracer {
    /// JSON over HTTP.
    Zipkin,
    /// OTLP over HTTP.
    OpenTelemetry,
}

/// Share of requests that are traced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tracing {
    Off,
    Percent(f64),
}

impl FromStr for Tracing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        match text.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err(format!(
                "{text:?} is neither \"off\" nor a percentage from 0 to 100"
            )),
        }
    }
}

/// How the server app spends the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AppTrouble {
    /// A timer of its event loop; its one thread does other things meanwhile.
    Timer,
    /// With one thread for each connection: `slow-app`.
    Asleep,
    Computing,
    Lock,
    File,
    Upstream,
}

impl AppTrouble {
    /// As `slow-app` has it; `None`: it is another program's.
    pub fn of_slow_app(self) -> Option<&'static str> {
        match self {
            Self::Timer => None,
            Self::Asleep => Some("asleep"),
            Self::Computing => Some("computing"),
            Self::Lock => Some("lock"),
            Self::File => Some("file"),
            Self::Upstream => Some("upstream"),
        }
    }
}

#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the demo")]
pub struct MeshOptions {
    /// Envoy to run instead of the one that the set-up fetched
    #[arg(long)]
    pub envoy: Option<PathBuf>,
    /// Base id of the server's sidecar, so that it can be restarted hot; any free one otherwise
    #[arg(long)]
    pub base_id: Option<u32>,
    /// Worker threads of each sidecar
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// Access log of the sidecars
    #[arg(long, value_enum, default_value = "off")]
    pub access_log: AccessLog,
    /// Mutual TLS between the sidecars
    #[arg(long)]
    pub mtls: bool,
    /// Protocol between the sidecars
    #[arg(long, value_enum, default_value = "http1")]
    pub upstream: Upstream,
    /// Requests traced: "off" or a percentage
    #[arg(long, default_value = "off")]
    pub tracing: Tracing,
    /// Format and collector of the spans
    #[arg(long, value_enum, default_value = "zipkin")]
    pub tracer: Tracer,
    /// A Lua filter that adds one header to each request and to each response
    #[arg(long)]
    pub lua: bool,
    /// Policies of an RBAC filter, of which the last one allows; 0: no such filter
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub rbac_policies: u32,
    /// Optional statistics of clusters and endpoints, all handed to a statsd collector
    #[arg(long)]
    pub many_stats: bool,
    /// Sidecars give no x-request-id to requests without one
    #[arg(long)]
    pub no_request_ids: bool,
    /// How long the server's sidecar holds each request back
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub inbound_delay: Duration,
    /// How long a Lua filter of the server's sidecar keeps its thread busy with each request
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub inbound_work: Duration,
    /// Connections of the server's sidecar to its app; 0: no limit
    #[arg(long, default_value_t = 0)]
    pub inbound_connections: u32,
    /// What the apps speak; requests of the load are HTTP/1 in any case
    #[arg(long, value_enum, default_value = "http1")]
    pub app: App,
    /// How long the server app waits before it answers
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub app_delay: Duration,
    /// How the server app spends that time
    #[arg(long, value_enum, default_value = "timer")]
    pub app_trouble: AppTrouble,
    /// Up to how much longer it waits, so that answers come in another order than requests
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub app_delay_spread: Duration,
    /// Requests per second; 0 sends as fast as answers come
    #[arg(long, default_value_t = 0)]
    pub rps: u32,
    /// Connections of the client app
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Bytes in each answer of the server app
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(0..=16_777_216))]
    pub body_bytes: u32,
    /// How long the load runs
    #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
    pub duration: Duration,
}

impl MeshOptions {
    /// Whether spans go to the Zipkin collector.
    pub fn zipkin(&self) -> bool {
        self.tracing != Tracing::Off && self.tracer == Tracer::Zipkin
    }

    /// Whether spans go to the collector of OTLP.
    pub fn otlp(&self) -> bool {
        self.tracing != Tracing::Off && self.tracer == Tracer::OpenTelemetry
    }

    /// Whether anything goes to the telemetry sink.
    pub fn telemetry_sink(&self) -> bool {
        self.otlp() || self.access_log == AccessLog::Grpc || self.many_stats
    }
}

impl Default for MeshOptions {
    fn default() -> Self {
        Self {
            envoy: None,
            base_id: None,
            workers: 1,
            access_log: AccessLog::Off,
            mtls: false,
            upstream: Upstream::Http1,
            tracing: Tracing::Off,
            tracer: Tracer::Zipkin,
            lua: false,
            rbac_policies: 0,
            many_stats: false,
            no_request_ids: false,
            inbound_delay: Duration::ZERO,
            inbound_work: Duration::ZERO,
            inbound_connections: 0,
            app: App::Http1,
            app_delay: Duration::ZERO,
            app_trouble: AppTrouble::Timer,
            app_delay_spread: Duration::ZERO,
            rps: 0,
            connections: 16,
            body_bytes: 512,
            duration: Duration::from_hours(1),
        }
    }
}
