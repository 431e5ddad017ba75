//! An Envoy in front of an HTTP server, which sends its access logs by gRPC.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use profiler_access_logs::GRPC_STATUS;
use rustix::process::Signal;
use serde_json::{Map, Value, json};

use super::free_port;
use crate::{
    paths,
    process::{Launch, Running},
    wait::wait_until,
};

const START_LIMIT: Duration = Duration::from_mins(1);
const TYPES: &str = "type.googleapis.com/envoy";
const SINK: &str = "access_logs";

/// By which logger requests are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logger {
    /// `http_grpc`.
    Grpc,
    /// `open_telemetry`.
    OpenTelemetry,
}

/// What it is started with.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    pub version: &'a str,
    pub logger: Logger,
    /// Where the server in front of which it is listens, on loopback.
    pub server: u16,
    /// It speaks HTTP/2 with the server.
    pub http2: bool,
    /// Where access logs go, on loopback.
    pub sink: u16,
    /// Bytes of entries that are held until they are sent.
    pub buffer_bytes: u32,
    /// Attributes of records of OpenTelemetry, each with Envoy's command.
    pub attributes: &'a [(&'a str, &'a str)],
    /// It writes the same attributes of every request into a file as well, a line of JSON for each.
    pub file: bool,
}

/// A running one.
#[derive(Debug)]
pub struct LoggingEnvoy {
    envoy: Running,
    /// Speaks HTTP.
    pub port: u16,
    /// Passes bytes on.
    pub tcp_port: u16,
    pub admin: u16,
    file: PathBuf,
}

impl LoggingEnvoy {
    pub fn start(folder: &Path, options: &Options<'_>) -> Result<Self> {
        let (port, tcp_port, admin) = (free_port()?, free_port()?, admin_port()?);
        let label = format!("envoy-{}-{port}", options.version);
        let configuration = folder.join(format!("{label}.json"));
        let file = folder.join(format!("{label}.log"));
        let bootstrap = bootstrap(options, [port, tcp_port, admin], &file);
        fs::write(&configuration, bootstrap.to_string()).context("write Envoy's configuration")?;
        let mut envoy = Launch::new(&paths::envoy_release(options.version)?, &label, folder)
            .args(["--config-path".as_ref(), configuration.as_os_str()])
            .args([
                "--use-dynamic-base-id",
                "--concurrency",
                "2",
                "--log-level",
                "warning",
                "--file-flush-interval-msec",
                "200",
            ])
            .start()?;
        // A connection to one of its listeners would be an entry.
        wait_until("Envoy listens", START_LIMIT, || {
            !envoy.is_running()
                || statistic(admin, "listener_manager.workers_started").is_ok_and(|has| has == 1)
        })?;
        ensure!(envoy.is_running(), "Envoy ended: {}", envoy.errors());
        Ok(Self {
            envoy,
            port,
            tcp_port,
            admin,
            file,
        })
    }

    /// Lines of its file so far.
    pub fn lines(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(&self.file).context("read Envoy's file")?;
        // The last one may be cut.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(serde_json::from_str);
        lines
            .collect::<Result<_, _>>()
            .context("a line of Envoy's file")
    }

    /// Ends it with what it has not sent.
    pub fn kill(&mut self) -> Result<()> {
        self.envoy.signal(Signal::KILL)?;
        self.envoy.wait(START_LIMIT)?;
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.envoy.pid()
    }

    /// A counter of its admin interface; 0 where it has none.
    pub fn counter(&self, name: &str) -> Result<u64> {
        statistic(self.admin, name)
    }
}

fn statistic(admin: u16, name: &str) -> Result<u64> {
    let url = format!("http://127.0.0.1:{admin}/stats?format=json&filter=%5E{name}%24");
    let mut answer = ureq::get(&url).call().context("ask Envoy")?;
    let answer = answer.body_mut().read_json();
    let answer: Value = answer.context("read Envoy's answer")?;
    let found = answer["stats"].as_array().and_then(|stats| stats.first());
    Ok(found.and_then(|stat| stat["value"].as_u64()).unwrap_or(0))
}

/// One of those at which an admin interface is looked for, other than by a check-up.
fn admin_port() -> Result<u16> {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let free = [19000, 9901, 9001, 8001, 15000].into_iter().find(is_free);
    free.context("no usual port of Envoy's admin interface is free")
}

fn socket(port: u16) -> Value {
    json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } })
}

/// Options of a cluster whose hosts speak HTTP/2.
fn http2(options: Value) -> Value {
    json!({
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": format!("{TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions"),
            "explicit_http_config": { "http2_protocol_options": options },
        },
    })
}

fn bootstrap(options: &Options<'_>, [port, tcp_port, admin]: [u16; 3], file: &Path) -> Value {
    let cluster = |name: &str, port| {
        json!({
            "name": name,
            "type": "STATIC",
            "connect_timeout": "5s",
            "load_assignment": { "cluster_name": name, "endpoints": [{ "lb_endpoints": [
                { "endpoint": { "address": socket(port) } },
            ] }] },
        })
    };
    let mut sink = cluster(SINK, options.sink);
    // Else Envoy holds 16 MiB or more of what the sink has not read, before it drops anything.
    let held = 65_535;
    sink["per_connection_buffer_limit_bytes"] = json!(held);
    sink["typed_extension_protocol_options"] = http2(json!({
        "initial_stream_window_size": held,
        "initial_connection_window_size": held,
    }));
    let mut server = cluster("server", options.server);
    if options.http2 {
        server["typed_extension_protocol_options"] = http2(json!({}));
    }
    let service = json!({ "envoy_grpc": { "cluster_name": SINK } });
    let common = |name: &str| {
        json!({
            "log_name": name,
            "transport_api_version": "V3",
            "grpc_service": service,
            "buffer_flush_interval": "1s",
            "buffer_size_bytes": options.buffer_bytes,
        })
    };
    let requests = match options.logger {
        Logger::Grpc => json!({
            "name": "envoy.access_loggers.http_grpc",
            "typed_config": {
                "@type": format!("{TYPES}.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig"),
                "common_config": common("requests"),
                "additional_response_headers_to_log": [GRPC_STATUS],
                "additional_response_trailers_to_log": [GRPC_STATUS],
            },
        }),
        Logger::OpenTelemetry => {
            let attributes: Vec<Value> = options
                .attributes
                .iter()
                .map(|(name, command)| json!({ "key": name, "value": { "string_value": command } }))
                .collect();
            json!({
                "name": "envoy.access_loggers.open_telemetry",
                "typed_config": {
                    "@type": format!("{TYPES}.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig"),
                    "common_config": common("requests"),
                    "attributes": { "values": attributes },
                },
            })
        }
    };
    let mut loggers = vec![requests];
    if options.file {
        let commands = options.attributes.iter();
        let format: Map<String, Value> = commands
            .map(|(name, command)| ((*name).to_owned(), json!(command)))
            .collect();
        loggers.push(json!({
            "name": "envoy.access_loggers.file",
            "typed_config": {
                "@type": format!("{TYPES}.extensions.access_loggers.file.v3.FileAccessLog"),
                "path": file,
                "log_format": { "json_format": format },
            },
        }));
    }
    let http = json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": format!("{TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": "ingress",
            "access_log": loggers,
            "http_filters": [{
                "name": "envoy.filters.http.router",
                "typed_config": { "@type": format!("{TYPES}.extensions.filters.http.router.v3.Router") },
            }],
            "route_config": { "virtual_hosts": [{
                "name": "all",
                "domains": ["*"],
                "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "server" } }],
            }] },
        },
    });
    let tcp = json!({
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": format!("{TYPES}.extensions.filters.network.tcp_proxy.v3.TcpProxy"),
            "stat_prefix": "tcp",
            "cluster": "server",
            "access_log": [{
                "name": "envoy.access_loggers.tcp_grpc",
                "typed_config": {
                    "@type": format!("{TYPES}.extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig"),
                    "common_config": common("connections"),
                },
            }],
        },
    });
    let listener = |name: &str, port, filter: Value| {
        json!({
            "name": name,
            "address": socket(port),
            "filter_chains": [{ "filters": [filter] }],
        })
    };
    json!({
        "node": { "id": "sidecar~127.0.0.1~shop.demo~demo.svc.cluster.local", "cluster": "shop.demo" },
        "admin": { "address": socket(admin) },
        "static_resources": {
            "listeners": [listener("http", port, http), listener("tcp", tcp_port, tcp)],
            "clusters": [server, sink],
        },
    })
}
