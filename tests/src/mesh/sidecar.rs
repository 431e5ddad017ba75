//! Bootstrap of one sidecar, shaped after what Istio gives its proxies.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    ADMIN_PORT, AccessLog, MeshOptions, SERVER_ADDRESS, SERVER_PORT, Tracing, Upstream,
    ZIPKIN_PORT, certificates,
    interception::{INBOUND_PORT, OUTBOUND_PORT, PASSTHROUGH_SOURCE},
};

/// Statistics prefixes of the two HTTP connection managers.
pub const OUTBOUND_STATS: &str = "outbound_http";
pub const INBOUND_STATS: &str = "inbound_http";
/// The cluster that leads from the client's sidecar to the server's.
pub const OUTBOUND_CLUSTER: &str = "outbound|8080||server.demo.svc.cluster.local";

const TYPES: &str = "type.googleapis.com/envoy";
const ISTIO_LOG_FORMAT: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%\n";

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

/// Bootstrap for the sidecar of `pod`.
pub fn config(pod: &str, options: &MeshOptions, folder: &Path, access_log: &Path) -> Value {
    let parts = Parts {
        pod,
        options,
        folder,
        access_log,
    };
    json!({
        "node": { "id": format!("sidecar~{pod}.demo~demo.svc.cluster.local"), "cluster": format!("{pod}.demo") },
        "admin": { "address": socket("127.0.0.1", ADMIN_PORT) },
        "static_resources": {
            "listeners": [virtual_outbound(), parts.outbound_http(), parts.virtual_inbound()],
            "clusters": parts.clusters(),
        },
    })
}

struct Parts<'a> {
    pod: &'a str,
    options: &'a MeshOptions,
    folder: &'a Path,
    access_log: &'a Path,
}

impl Parts<'_> {
    fn outbound_http(&self) -> Value {
        json!({
            "name": format!("{SERVER_ADDRESS}_{SERVER_PORT}"),
            "address": socket(SERVER_ADDRESS, SERVER_PORT),
            "bind_to_port": false,
            "traffic_direction": "OUTBOUND",
            "filter_chains": [{ "filters": [self.http(OUTBOUND_STATS, OUTBOUND_CLUSTER)] }],
        })
    }

    fn virtual_inbound(&self) -> Value {
        let cluster = format!("inbound|{SERVER_PORT}||");
        let mut http = json!({
            "name": "app",
            "filter_chain_match": { "destination_port": SERVER_PORT },
            "filters": [self.http(INBOUND_STATS, &cluster)],
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

    fn http(&self, stats: &str, cluster: &str) -> Value {
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
            "http_filters": [{
                "name": "envoy.filters.http.router",
                "typed_config": { "@type": format!("{TYPES}.extensions.filters.http.router.v3.Router") },
            }],
        });
        if let Some(log) = self.access_log() {
            manager["access_log"] = json!([log]);
        }
        if let Tracing::Percent(percent) = self.options.tracing {
            manager["tracing"] = json!({
                "random_sampling": { "value": percent },
                "overall_sampling": { "value": 100 },
                "provider": {
                    "name": "envoy.tracers.zipkin",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.config.trace.v3.ZipkinConfig",
                        "collector_cluster": "zipkin",
                        "collector_endpoint": "/api/v2/spans",
                        "collector_endpoint_version": "HTTP_JSON",
                        "trace_id_128bit": true,
                        "shared_span_context": false,
                    },
                },
            });
        }
        json!({ "name": "envoy.filters.network.http_connection_manager", "typed_config": manager })
    }

    fn access_log(&self) -> Option<Value> {
        let format = match self.options.access_log {
            AccessLog::Off => return None,
            AccessLog::Text | AccessLog::SlowPipe => {
                json!({ "text_format_source": { "inline_string": ISTIO_LOG_FORMAT } })
            }
            AccessLog::Json => json!({ "json_format": {
                "start_time": "%START_TIME%",
                "method": "%REQ(:METHOD)%",
                "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
                "protocol": "%PROTOCOL%",
                "response_code": "%RESPONSE_CODE%",
                "response_flags": "%RESPONSE_FLAGS%",
                "bytes_received": "%BYTES_RECEIVED%",
                "bytes_sent": "%BYTES_SENT%",
                "duration": "%DURATION%",
                "request_id": "%REQ(X-REQUEST-ID)%",
                "authority": "%REQ(:AUTHORITY)%",
                "upstream_host": "%UPSTREAM_HOST%",
                "upstream_cluster": "%UPSTREAM_CLUSTER%",
                "downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%",
                "route_name": "%ROUTE_NAME%",
            } }),
        };
        Some(json!({
            "name": "envoy.access_loggers.file",
            "typed_config": {
                "@type": format!("{TYPES}.extensions.access_loggers.file.v3.FileAccessLog"),
                "path": self.access_log,
                "log_format": format,
            },
        }))
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
                outbound["typed_extension_protocol_options"] = json!({
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                        "@type": format!("{TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions"),
                        "explicit_http_config": { "http2_protocol_options": {} },
                    },
                });
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
        let mut clusters = vec![
            outbound,
            original_destination("PassthroughCluster", None),
            original_destination("InboundPassthroughCluster", Some(PASSTHROUGH_SOURCE)),
            original_destination(
                &format!("inbound|{SERVER_PORT}||"),
                Some(PASSTHROUGH_SOURCE),
            ),
        ];
        if self.options.tracing != Tracing::Off {
            clusters.push(json!({
                "name": "zipkin",
                "type": "STATIC",
                "connect_timeout": "5s",
                "load_assignment": endpoint("zipkin", SERVER_ADDRESS, ZIPKIN_PORT),
            }));
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

fn socket(address: &str, port: u16) -> Value {
    json!({ "socket_address": { "address": address, "port_value": port } })
}

fn endpoint(cluster: &str, address: &str, port: u16) -> Value {
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
