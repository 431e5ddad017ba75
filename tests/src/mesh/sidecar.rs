//! Bootstrap of one sidecar, shaped after what Istio gives its proxies.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    ADMIN_PORT, AgentLink, App, MeshOptions, SERVER_ADDRESS, SERVER_PORT, Upstream, certificates,
    http_filters::{self, Way},
    interception::{INBOUND_PORT, OUTBOUND_PORT, PASSTHROUGH_SOURCE},
    telemetry,
};

/// Statistics prefixes of the two HTTP connection managers.
pub const OUTBOUND_STATS: &str = "outbound_http";
pub const INBOUND_STATS: &str = "inbound_http";
/// The cluster that leads from the client's sidecar to the server's.
pub const OUTBOUND_CLUSTER: &str = "outbound|8080||server.demo.svc.cluster.local";

pub(super) const TYPES: &str = "type.googleapis.com/envoy";

/// The binary as the sidecar's user can run it: itself, or a copy where a folder above it is
/// closed to other users (a checkout in root's home).
pub fn usable_binary(binary: &Path, folder: &Path) -> Result<PathBuf> {
    let binary = binary
        .canonicalize()
        .with_context(|| format!("find {}", binary.display()))?;
    let open = binary.ancestors().all(|path| {
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    });
    if open {
        return Ok(binary);
    }
    let copy = folder.join("envoy");
    fs::copy(&binary, &copy).context("copy Envoy")?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).context("open up the copy")?;
    Ok(copy)
}

/// Bootstrap for the sidecar of `pod`; `agent` where its access log goes to one.
pub fn config(
    pod: &str,
    options: &MeshOptions,
    folder: &Path,
    access_log: &Path,
    agent: Option<&AgentLink>,
) -> Value {
    let parts = Parts {
        pod,
        options,
        folder,
        access_log,
        agent,
    };
    let mut bootstrap = json!({
        "node": { "id": format!("sidecar~{pod}.demo~demo.svc.cluster.local"), "cluster": format!("{pod}.demo") },
        "admin": { "address": socket("127.0.0.1", ADMIN_PORT) },
        "static_resources": {
            "listeners": [virtual_outbound(), parts.outbound_http(), parts.virtual_inbound()],
            "clusters": parts.clusters(),
        },
    });
    if options.many_stats {
        bootstrap["stats_sinks"] = telemetry::statistics_sinks();
        bootstrap["stats_flush_interval"] = json!("1s");
    }
    bootstrap
}

struct Parts<'a> {
    pod: &'a str,
    options: &'a MeshOptions,
    folder: &'a Path,
    access_log: &'a Path,
    agent: Option<&'a AgentLink>,
}

impl Parts<'_> {
    fn outbound_http(&self) -> Value {
        json!({
            "name": format!("{SERVER_ADDRESS}_{SERVER_PORT}"),
            "address": socket(SERVER_ADDRESS, SERVER_PORT),
            "bind_to_port": false,
            "traffic_direction": "OUTBOUND",
            "filter_chains": [{ "filters": [self.http(Way::Outbound, OUTBOUND_CLUSTER)] }],
        })
    }

    fn virtual_inbound(&self) -> Value {
        let cluster = format!("inbound|{SERVER_PORT}||");
        let mut http = json!({
            "name": "app",
            "filter_chain_match": { "destination_port": SERVER_PORT },
            "filters": [self.http(Way::Inbound, &cluster)],
        });
        let mut filters = vec![listener_filter("original_dst", "OriginalDst")];
        if self.options.mtls {
            filters.push(listener_filter("tls_inspector", "TlsInspector"));
            http["filter_chain_match"]["transport_protocol"] = json!("tls");
            http["transport_socket"] = json!({
                "name": "envoy.transport_sockets.tls",
                "typed_config": {
                    "@type": format!("{TYPES}.extensions.transport_sockets.tls.v3.DownstreamTlsContext"),
                    "require_client_certificate": true,
                    "common_tls_context": self.tls("client", &["h2", "http/1.1"]),
                },
            });
        }
        json!({
            "name": "virtualInbound",
            "address": socket("0.0.0.0", INBOUND_PORT),
            "traffic_direction": "INBOUND",
            "listener_filters": filters,
            "filter_chains": [
                http,
                { "name": "passthrough", "filters": [passthrough("InboundPassthroughCluster")] },
            ],
        })
    }

    fn http(&self, way: Way, cluster: &str) -> Value {
        let stats = match way {
            Way::Outbound => OUTBOUND_STATS,
            Way::Inbound => INBOUND_STATS,
        };
        let mut manager = json!({
            "@type": format!("{TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": stats,
            "codec_type": "AUTO",
            "normalize_path": true,
            "route_config": {
                "name": cluster,
                "virtual_hosts": [{
                    "name": cluster,
                    "domains": ["*"],
                    "routes": [{
                        "name": "default",
                        "match": { "prefix": "/" },
                        "route": { "cluster": cluster, "timeout": "0s" },
                        "decorator": { "operation": "server.demo.svc.cluster.local:8080/*" },
                    }],
                }],
            },
            "http_filters": http_filters::all(self.options, self.pod, way),
            "generate_request_id": !self.options.no_request_ids,
        });
        if let Some(log) = telemetry::access_log(self.options, self.access_log, self.agent) {
            manager["access_log"] = json!([log]);
        }
        if let Some(tracing) = telemetry::tracing(self.options, self.pod) {
            manager["tracing"] = tracing;
        }
        if self.options.many_stats {
            let hosts = &mut manager["route_config"]["virtual_hosts"];
            hosts[0]["virtual_clusters"] = telemetry::virtual_clusters();
        }
        json!({ "name": "envoy.filters.network.http_connection_manager", "typed_config": manager })
    }

    fn clusters(&self) -> Vec<Value> {
        let mut outbound = json!({
            "name": OUTBOUND_CLUSTER,
            "type": "STATIC",
            "connect_timeout": "5s",
            "load_assignment": endpoint(OUTBOUND_CLUSTER, SERVER_ADDRESS, SERVER_PORT),
            "circuit_breakers": { "thresholds": [{ "max_connections": 4096, "max_pending_requests": 4096, "max_requests": 4096 }] },
        });
        let alpn = match self.options.upstream {
            Upstream::Http1 => "http/1.1",
            Upstream::Http2 => {
                outbound["typed_extension_protocol_options"] = http2();
                "h2"
            }
        };
        if self.options.mtls {
            outbound["transport_socket"] = json!({
                "name": "envoy.transport_sockets.tls",
                "typed_config": {
                    "@type": format!("{TYPES}.extensions.transport_sockets.tls.v3.UpstreamTlsContext"),
                    "sni": "outbound_.8080_._.server.demo.svc.cluster.local",
                    "common_tls_context": self.tls("server", &[alpn]),
                },
            });
        }
        let mut inbound = original_destination(
            &format!("inbound|{SERVER_PORT}||"),
            Some(PASSTHROUGH_SOURCE),
        );
        if self.options.inbound_connections > 0 {
            inbound["circuit_breakers"] = json!({
                "thresholds": [{ "max_connections": self.options.inbound_connections }],
            });
        }
        if self.options.app == App::Grpc {
            inbound["typed_extension_protocol_options"] = http2();
        }
        let mut clusters = vec![
            outbound,
            original_destination("PassthroughCluster", None),
            original_destination("InboundPassthroughCluster", Some(PASSTHROUGH_SOURCE)),
            inbound,
        ];
        clusters.extend(telemetry::clusters(self.options, self.agent));
        if self.options.many_stats {
            for cluster in &mut clusters {
                cluster["track_cluster_stats"] = telemetry::cluster_statistics();
            }
        }
        clusters
    }

    /// Own certificate, and only `peer` is trusted at the other end.
    fn tls(&self, peer: &str, alpn: &[&str]) -> Value {
        let file = |name: String| json!({ "filename": self.folder.join(name) });
        json!({
            "alpn_protocols": alpn,
            "tls_certificates": [{
                "certificate_chain": file(format!("{}.pem", self.pod)),
                "private_key": file(format!("{}.key", self.pod)),
            }],
            "validation_context": {
                "trusted_ca": file("ca.pem".into()),
                "match_typed_subject_alt_names": [{
                    "san_type": "URI",
                    "matcher": { "exact": certificates::identity(peer) },
                }],
            },
        })
    }
}

/// Protocol options of a cluster that is spoken to by HTTP/2.
pub(super) fn http2() -> Value {
    json!({
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": format!("{TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions"),
            "explicit_http_config": { "http2_protocol_options": {} },
        },
    })
}

/// Takes every outgoing connection and hands it to the listener of its original destination.
fn virtual_outbound() -> Value {
    json!({
        "name": "virtualOutbound",
        "address": socket("0.0.0.0", OUTBOUND_PORT),
        "use_original_dst": true,
        "traffic_direction": "OUTBOUND",
        "filter_chains": [{ "filters": [passthrough("PassthroughCluster")] }],
    })
}

pub(super) fn socket(address: &str, port: u16) -> Value {
    json!({ "socket_address": { "address": address, "port_value": port } })
}

pub(super) fn endpoint(cluster: &str, address: &str, port: u16) -> Value {
    json!({
        "cluster_name": cluster,
        "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": socket(address, port) } }] }],
    })
}

fn passthrough(cluster: &str) -> Value {
    json!({
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": format!("{TYPES}.extensions.filters.network.tcp_proxy.v3.TcpProxy"),
            "stat_prefix": cluster,
            "cluster": cluster,
        },
    })
}

fn listener_filter(folder: &str, message: &str) -> Value {
    json!({
        "name": format!("envoy.filters.listener.{folder}"),
        "typed_config": { "@type": format!("{TYPES}.extensions.filters.listener.{folder}.v3.{message}") },
    })
}

/// A cluster that connects to where the connection was going, from `source` if given.
fn original_destination(name: &str, source: Option<&str>) -> Value {
    let mut cluster = json!({
        "name": name,
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "5s",
        "circuit_breakers": { "thresholds": [{ "max_connections": 4096, "max_pending_requests": 4096, "max_requests": 4096 }] },
    });
    if let Some(source) = source {
        cluster["upstream_bind_config"] =
            json!({ "source_address": { "address": source, "port_value": 0 } });
    }
    cluster
}
