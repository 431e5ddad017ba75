//! The settings whose cost is known by switching them.

use serde::{Deserialize, Serialize};

use crate::mesh::{AccessLog, MeshOptions, Tracer, Tracing, Upstream};

/// Name of the configuration without any of the settings.
pub const BASE: &str = "base";
/// Policies of the RBAC filter, of which the last one holds.
const POLICIES: u32 = 30;

/// What a connection to a collector or service needs beside the frames of the sender: reads of its answers and
/// writes that the event loop does later, as any connection upstream has them.
const SHARED_CONNECTION: &[&str] = &[
    "http_codec",
    "pools",
    "connections",
    "routing",
    "event_loop",
];
/// A header more is parsed and written by the codec.
const HEADERS: &[&str] = &["http_codec", "routing"];

/// Which sidecar is judged. Both have the setting, as both have it in a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// In the client's pod: plain HTTP/1.1 from the app, the mesh upstream.
    Client,
    /// In the server's pod: the mesh downstream, plain HTTP/1.1 to the app.
    Server,
}

impl Side {
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client's",
            Self::Server => "server's",
        }
    }
}

/// How a setting's cost is found in the diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// These features hold it, and have nothing without the setting.
    Features(&'static [&'static str]),
    /// These features have something without it as well: what counts is how much more they have with it.
    Growth(&'static [&'static str]),
    /// No feature is the setting's: work moves between cells, which are shown.
    Moves,
}

impl Attribution {
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Self::Features(features) | Self::Growth(features) => features,
            Self::Moves => &[],
        }
    }
}

/// One setting that can be on or off.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub title: &'static str,
    pub side: Side,
    pub switch_on: fn(&mut MeshOptions),
    pub attribution: Attribution,
    /// Features that have the rest of the setting's work, as the reasons of its findings say; empty where all of
    /// it must be seen.
    pub rest: &'static [&'static str],
    /// Findings of which one must be there while the setting is on, and none while it is off; empty where no
    /// finding belongs to it.
    pub findings: &'static [&'static str],
    /// Share of the runs with the setting that must have one of the findings; `None`: not asked for.
    pub found: Option<f64>,
}

impl Setting {
    /// The mesh with the setting on.
    pub fn mesh(&self, base: &MeshOptions) -> MeshOptions {
        let mut options = base.clone();
        (self.switch_on)(&mut options);
        options
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "zipkin",
        title: "Zipkin tracing, 100 %",
        side: Side::Client,
        switch_on: |mesh| mesh.tracing = Tracing::Percent(100.0),
        attribution: Attribution::Features(&["tracing"]),
        rest: SHARED_CONNECTION,
        findings: &["tracing"],
        found: Some(1.0),
    },
    Setting {
        name: "opentelemetry",
        title: "OpenTelemetry tracing by HTTP, 100 %",
        side: Side::Client,
        switch_on: |mesh| {
            mesh.tracing = Tracing::Percent(100.0);
            mesh.tracer = Tracer::OpenTelemetry;
        },
        attribution: Attribution::Features(&["tracing"]),
        rest: SHARED_CONNECTION,
        findings: &["tracing"],
        found: Some(1.0),
    },
    Setting {
        name: "log-text",
        title: "file access log, Istio's text format",
        side: Side::Client,
        switch_on: |mesh| mesh.access_log = AccessLog::Text,
        attribution: Attribution::Features(&["access_log_format", "access_log_write"]),
        rest: &[],
        findings: &["access_log_format", "access_log_write"],
        found: Some(0.8),
    },
    Setting {
        name: "log-json",
        title: "file access log, JSON",
        side: Side::Client,
        switch_on: |mesh| mesh.access_log = AccessLog::Json,
        attribution: Attribution::Features(&["access_log_format", "access_log_write"]),
        rest: &[],
        findings: &["access_log_format", "access_log_write"],
        found: Some(0.8),
    },
    Setting {
        name: "log-grpc",
        title: "gRPC access log",
        side: Side::Client,
        switch_on: |mesh| mesh.access_log = AccessLog::Grpc,
        attribution: Attribution::Features(&["access_log_grpc"]),
        rest: SHARED_CONNECTION,
        findings: &["access_log_grpc"],
        found: Some(0.8),
    },
    Setting {
        name: "lua",
        title: "Lua filter, one header each way",
        side: Side::Client,
        switch_on: |mesh| mesh.lua = true,
        attribution: Attribution::Features(&["lua"]),
        rest: HEADERS,
        findings: &["lua"],
        found: Some(1.0),
    },
    Setting {
        name: "rbac",
        title: "RBAC filter, 30 policies",
        side: Side::Client,
        switch_on: |mesh| mesh.rbac_policies = POLICIES,
        attribution: Attribution::Features(&["filter:rbac"]),
        rest: &[],
        findings: &["filter_rbac"],
        found: None,
    },
    Setting {
        name: "tls-downstream",
        title: "mutual TLS, downstream side",
        side: Side::Server,
        switch_on: |mesh| mesh.mtls = true,
        attribution: Attribution::Features(&["tls_handshake", "tls_records"]),
        rest: &[],
        findings: &["tls_handshake", "tls_records"],
        found: None,
    },
    Setting {
        name: "tls-upstream",
        title: "mutual TLS, upstream side",
        side: Side::Client,
        switch_on: |mesh| mesh.mtls = true,
        attribution: Attribution::Features(&["tls_handshake", "tls_records"]),
        rest: &[],
        findings: &["tls_handshake", "tls_records"],
        found: None,
    },
    Setting {
        name: "http2",
        title: "HTTP/2 upstream in place of HTTP/1.1",
        side: Side::Client,
        switch_on: |mesh| mesh.upstream = Upstream::Http2,
        attribution: Attribution::Moves,
        rest: &[],
        findings: &[],
        found: None,
    },
    Setting {
        name: "statistics",
        title: "many statistics, handed to statsd",
        side: Side::Client,
        switch_on: |mesh| mesh.many_stats = true,
        attribution: Attribution::Growth(&["stats_record", "stats_flush"]),
        rest: &[],
        findings: &["stats_record", "stats_flush"],
        found: None,
    },
];

/// Findings about a feature that some setting switches on: none may be there when all are off.
pub fn findings_of_settings() -> impl Iterator<Item = &'static str> {
    let switched = |setting: &&Setting| !matches!(setting.attribution, Attribution::Growth(_));
    SETTINGS
        .iter()
        .filter(switched)
        .flat_map(|setting| setting.findings)
        .copied()
}
