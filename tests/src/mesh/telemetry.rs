//! What sidecars are configured to report: traces, access logs and statistics, each to a sink of the mesh.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    AccessLog, AgentLink, MeshOptions, SERVER_ADDRESS, TELEMETRY_PORT, Tracer, Tracing,
    ZIPKIN_PORT,
    sidecar::{TYPES, endpoint, http2},
};

const ZIPKIN: &str = "zipkin";
const OTLP: &str = "otlp";
const ACCESS_LOG_SERVICE: &str = "access_log_service";
/// Virtual clusters of the route when there are many statistics; requests are counted under the first that
/// matches, which is the last one.
const VIRTUAL_CLUSTERS: u32 = 10;
const ISTIO_LOG_FORMAT: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%\n";

/// Tracing of both connection managers of `pod`.
pub(super) fn tracing(options: &MeshOptions, pod: &str) -> Option<Value> {
    let Tracing::Percent(percent) = options.tracing else {
        return None;
    };
    let provider = match options.tracer {
        Tracer::Zipkin => json!({
            "name": "envoy.tracers.zipkin",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.config.trace.v3.ZipkinConfig",
                "collector_cluster": ZIPKIN,
                "collector_endpoint": "/api/v2/spans",
                "collector_endpoint_version": "HTTP_JSON",
                "trace_id_128bit": true,
                "shared_span_context": false,
            },
        }),
        Tracer::OpenTelemetry => json!({
            "name": "envoy.tracers.opentelemetry",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
                "service_name": format!("{pod}.demo"),
                "http_service": { "http_uri": {
                    "uri": format!("http://{SERVER_ADDRESS}:{TELEMETRY_PORT}/v1/traces"),
                    "cluster": OTLP,
                    "timeout": "5s",
                } },
            },
        }),
    };
    Some(json!({
        "random_sampling": { "value": percent },
        "overall_sampling": { "value": 100 },
        "provider": provider,
    }))
}

/// The access log of both connection managers, as `path` where it is a file.
pub(super) fn access_log(
    options: &MeshOptions,
    path: &Path,
    agent: Option<&AgentLink>,
) -> Option<Value> {
    let format = match options.access_log {
        AccessLog::Off => return None,
        AccessLog::AgentGrpc | AccessLog::AgentOtlp => return Some(agent?.logger.clone()),
        AccessLog::Grpc => return Some(access_log_service()),
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
            "path": path,
            "log_format": format,
        },
    }))
}

fn access_log_service() -> Value {
    json!({
        "name": "envoy.access_loggers.http_grpc",
        "typed_config": {
            "@type": format!("{TYPES}.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig"),
            "common_config": {
                "log_name": "mesh",
                "transport_api_version": "V3",
                "grpc_service": { "envoy_grpc": { "cluster_name": ACCESS_LOG_SERVICE } },
            },
        },
    })
}

/// Clusters that lead to the sinks in use.
pub(super) fn clusters(options: &MeshOptions, agent: Option<&AgentLink>) -> Vec<Value> {
    let cluster = |name: &str, port| {
        json!({
            "name": name,
            "type": "STATIC",
            "connect_timeout": "5s",
            "load_assignment": endpoint(name, SERVER_ADDRESS, port),
        })
    };
    let mut clusters = Vec::new();
    if options.zipkin() {
        clusters.push(cluster(ZIPKIN, ZIPKIN_PORT));
    }
    if options.otlp() {
        clusters.push(cluster(OTLP, TELEMETRY_PORT));
    }
    if options.access_log == AccessLog::Grpc {
        let mut service = cluster(ACCESS_LOG_SERVICE, TELEMETRY_PORT);
        service["typed_extension_protocol_options"] = http2();
        clusters.push(service);
    }
    clusters.extend(agent.map(|agent| agent.cluster.clone()));
    clusters
}

/// Hands every counter at each flush, and every value of a histogram at once, to a statsd collector.
pub(super) fn statistics_sinks() -> Value {
    json!([{
        "name": "envoy.stat_sinks.statsd",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.config.metrics.v3.StatsdSink",
            "address": { "socket_address": {
                "protocol": "UDP", "address": SERVER_ADDRESS, "port_value": TELEMETRY_PORT,
            } },
        },
    }])
}

/// Statistics of a cluster that Envoy does not keep unasked.
pub(super) fn cluster_statistics() -> Value {
    json!({
        "timeout_budgets": true,
        "request_response_sizes": true,
        "per_endpoint_stats": true,
    })
}

/// Statistics by groups of requests; only the last group has any.
pub(super) fn virtual_clusters() -> Value {
    let group = |index: u32| {
        let last = index + 1 == VIRTUAL_CLUSTERS;
        let path = if last {
            "/work".into()
        } else {
            format!("/group/{index}")
        };
        json!({
            "name": format!("group_{index}"),
            "headers": [{ "name": ":path", "string_match": { "prefix": path } }],
        })
    };
    (0..VIRTUAL_CLUSTERS).map(group).collect()
}
