//! Configuration that makes proxies send their access logs, as YAML to copy.

mod envoy;
mod gateway;
mod istio;

use std::{net::IpAddr, str::FromStr};

use thiserror::Error;

/// The system that configures the proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A static configuration of Envoy.
    Envoy,
    Istio,
    EnvoyGateway,
}

/// The protocol between proxies and agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Envoy's access log service.
    #[default]
    Grpc,
    /// Log records of OpenTelemetry, with the attributes of [`crate::otlp::ATTRIBUTES`].
    Otlp,
}

/// How the connection to the agent is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    #[default]
    Plaintext,
    /// TLS in which Envoys show a certificate, as the agent wants it outside of loopback.
    MutualTls,
}

/// The address of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// A host name or an address; for Istio and Envoy Gateway the name of a Service with its namespace, as
    /// `profiler-agent-access-logs.profiler.svc.cluster.local`.
    pub host: String,
    pub port: u16,
}

/// A text is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not HOST:PORT")]
pub struct NoService(String);

impl FromStr for Service {
    type Err = NoService;

    /// Reads `host:port`, with an address of IPv6 in brackets.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.rsplit_once(':');
        let service = parts.and_then(|(host, port)| {
            let inner = host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'));
            let host = inner.unwrap_or(host);
            let is_address = host.parse::<IpAddr>().is_ok();
            let is_valid = is_address || !host.is_empty() && !host.contains([':', '[', ']', '/']);
            let port = port.parse().ok().filter(|port| *port > 0)?;
            is_valid.then(|| Self {
                host: host.to_owned(),
                port,
            })
        });
        service.ok_or_else(|| NoService(text.to_owned()))
    }
}

impl Service {
    /// Name and namespace of the Service of Kubernetes that the host names.
    fn name_and_namespace(&self) -> Option<(&str, &str)> {
        if self.host.parse::<IpAddr>().is_ok() {
            return None;
        }
        let mut labels = self.host.split('.');
        let parts = (labels.next()?, labels.next()?);
        matches!(labels.next(), None | Some("svc")).then_some(parts)
    }
}

/// Settings of the loggers. Istio and Envoy Gateway have none for the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub transport: Transport,
    pub security: Security,
    /// The name of the log, which Envoy sends with the entries.
    pub log_name: String,
    /// Envoy's default of 16 KiB holds about 43 entries. When the connection stalls, Envoy drops further ones.
    pub buffer_size_bytes: u32,
    pub flush_interval_seconds: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            security: Security::default(),
            log_name: NAME.to_owned(),
            buffer_size_bytes: 262_144,
            flush_interval_seconds: 1,
        }
    }
}

/// Of resources, providers and the log.
const NAME: &str = "profiler-access-logs";
/// A folder beside the proxy, with `tls.crt`, `tls.key` and `ca.crt`.
const CERTIFICATES: &str = "/etc/profiler-access-logs";

/// The configuration for a system as YAML, with comments on where it belongs. Istio's has two documents, the others have one. With
/// [`Security::MutualTls`] those for Istio and Envoy Gateway have one more, which names the certificates.
pub fn snippet(system: System, service: &Service, options: &Options) -> String {
    match system {
        System::Envoy => envoy::snippet(service, options),
        System::Istio => istio::snippet(service, options),
        System::EnvoyGateway => gateway::snippet(service, options),
    }
}

/// Text as a double-quoted scalar of YAML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_ascii_graphic() || letter == ' ' => quoted.push(letter),
            letter => quoted.push_str(&escaped(letter)),
        }
    }
    quoted.push('"');
    quoted
}

fn escaped(letter: char) -> String {
    format!("\\U{:08x}", u32::from(letter))
}

/// Lines with spaces in front of each.
fn indented(lines: &str, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    let lines = lines.lines().map(|line| format!("{indent}{line}\n"));
    lines.collect()
}

#[cfg(test)]
#[path = "snippet_tests.rs"]
mod tests;
