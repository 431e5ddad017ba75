//! Arguments about access logs of Envoys: where `serve` receives them, and those of `access-logs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use profiler_access_logs::snippet::{Security, Service, System, Transport};
use serde::Serialize;

#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct ReceiveLogsArgs {
    /// Receive access logs of Envoys at this address; other than loopback needs TLS with client certificates [default: off]
    #[arg(long, value_name = "ADDR:PORT")]
    pub access_logs: Option<String>,
    /// Certificate chain for access logs, PEM
    #[arg(long, value_name = "FILE")]
    pub access_logs_tls_cert: Option<String>,
    /// Private key of that certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub access_logs_tls_key: Option<String>,
    /// Certificates that sign those of the Envoys, PEM; others are refused
    #[arg(long, value_name = "FILE")]
    pub access_logs_tls_client_ca: Option<String>,
    /// Receive access logs without TLS, also at an address other than loopback: anyone who reaches it can send some
    #[arg(long)]
    pub access_logs_plaintext: bool,
}

#[derive(Clone, Debug, Args)]
pub struct AccessLogsArgs {
    #[command(subcommand)]
    pub command: AccessLogsCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub enum AccessLogsCommand {
    /// Print the configuration that makes Envoys send their access logs to the agent
    Snippet(SnippetArgs),
    /// Show which Envoys send their access logs to a running agent, and what is missing of them
    Status(LogStatusArgs),
}

#[derive(Clone, Debug, Args)]
pub struct SnippetArgs {
    /// What configures the Envoys
    #[arg(long = "for", value_name = "SYSTEM", value_enum)]
    pub system: LogSystem,
    /// The protocol: Envoy's access log service, or log records of OpenTelemetry
    #[arg(long, value_enum, default_value = "grpc")]
    pub transport: LogTransport,
    /// Address of the agent as Envoys reach it; for Istio and Envoy Gateway the name of a Service with its namespace
    /// [default: 127.0.0.1:7118 for envoy, else profiler-agent-access-logs.profiler.svc.cluster.local:7118]
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<Service>,
    /// With the client certificates that the agent asks for outside of loopback (--access-logs-tls-client-ca)
    #[arg(long)]
    pub tls: bool,
}

impl SnippetArgs {
    pub fn security(&self) -> Security {
        if self.tls {
            Security::MutualTls
        } else {
            Security::Plaintext
        }
    }

    pub fn service(&self) -> Service {
        let host = match self.system {
            LogSystem::Envoy => "127.0.0.1",
            // As in deploy/.
            LogSystem::Istio | LogSystem::EnvoyGateway => {
                "profiler-agent-access-logs.profiler.svc.cluster.local"
            }
        };
        self.address.clone().unwrap_or_else(|| Service {
            host: host.to_owned(),
            port: USUAL_PORT,
        })
    }
}

/// The port that documentation and examples use, and `requests`; `serve` has no default.
pub const USUAL_PORT: u16 = 7118;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogSystem {
    Envoy,
    Istio,
    EnvoyGateway,
}

impl From<LogSystem> for System {
    fn from(system: LogSystem) -> Self {
        match system {
            LogSystem::Envoy => Self::Envoy,
            LogSystem::Istio => Self::Istio,
            LogSystem::EnvoyGateway => Self::EnvoyGateway,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogTransport {
    Grpc,
    Otlp,
}

impl From<LogTransport> for Transport {
    fn from(transport: LogTransport) -> Self {
        match transport {
            LogTransport::Grpc => Self::Grpc,
            LogTransport::Otlp => Self::Otlp,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub struct LogStatusArgs {
    /// Address of the agent, whose certificate must be one that this machine trusts
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
    /// File with the agent's token, also a read-only one; none is sent when it does not exist
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/profiler-agent/token"
    )]
    pub token_file: PathBuf,
    /// Print the agent's JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
