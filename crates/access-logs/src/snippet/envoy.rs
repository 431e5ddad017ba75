//! A static configuration of Envoy: the loggers, where they belong, and the cluster.

use std::net::IpAddr;

use super::{CERTIFICATES, NAME, Options, Security, Service, Transport, indented, quoted};
use crate::{decode::GRPC_STATUS, otlp::ATTRIBUTES};

const TYPES: &str = "type.googleapis.com/envoy.extensions";

pub(super) fn snippet(service: &Service, options: &Options) -> String {
    let (http, tcp) = match options.transport {
        Transport::Grpc => (
            logger(
                "http_grpc",
                "grpc.v3.HttpGrpcAccessLogConfig",
                &format!(
                    "additional_response_headers_to_log: [{GRPC_STATUS}]\nadditional_response_trailers_to_log: [{GRPC_STATUS}]\n"
                ),
                options,
            ),
            logger("tcp_grpc", "grpc.v3.TcpGrpcAccessLogConfig", "", options),
        ),
        Transport::Otlp => {
            let config = "open_telemetry.v3.OpenTelemetryAccessLogConfig";
            let logger = logger("open_telemetry", config, &attributes(), options);
            (logger.clone(), logger)
        }
    };
    // Envoy 1.36 has common_config only; 1.39 and 1.40 take it with a warning.
    let note = match options.transport {
        Transport::Grpc => "",
        Transport::Otlp => {
            "# From Envoy 1.39 on, the fields of common_config but transport_api_version can stand beside attributes, which\n\
             # avoids a warning.\n"
        }
    };
    let (certificates, socket) = match options.security {
        Security::Plaintext => ("", String::new()),
        Security::MutualTls => (
            "# The files of the cluster's transport_socket are yours: a certificate that the agent's --access-logs-tls-client-ca\n\
             # signed, its key, and what signed the certificate of the agent, which has to name the address below.\n",
            transport_socket(service),
        ),
    };
    format!(
        "# Parts, not a whole configuration: add the access_log to each of your HTTP connection managers and TCP proxies, and\n\
         # the cluster once.\n\
         {certificates}\
         {note}\
         static_resources:\n\
         \x20 listeners:\n\
         \x20 - filter_chains:\n\
         {}{}\x20 clusters:\n{}{}",
        filter("http_connection_manager", "HttpConnectionManager", &http),
        filter("tcp_proxy", "TcpProxy", &tcp),
        indented(&cluster(service), 2),
        indented(&socket, 4)
    )
}

/// A filter chain with the one filter that logs.
fn filter(name: &str, message: &str, logger: &str) -> String {
    format!(
        "\x20   - filters:\n\
         \x20     - name: envoy.filters.network.{name}\n\
         \x20       typed_config:\n\
         \x20         \"@type\": {TYPES}.filters.network.{name}.v3.{message}\n\
         \x20         access_log:\n{}",
        indented(logger, 10)
    )
}

fn logger(name: &str, message: &str, more: &str, options: &Options) -> String {
    format!(
        "- name: envoy.access_loggers.{name}\n\
         \x20 typed_config:\n\
         \x20   \"@type\": {TYPES}.access_loggers.{message}\n\
         \x20   common_config:\n\
         \x20     log_name: {}\n\
         \x20     transport_api_version: V3\n\
         \x20     buffer_size_bytes: {}\n\
         \x20     buffer_flush_interval: {}s\n\
         \x20     grpc_service:\n\
         \x20       envoy_grpc:\n\
         \x20         cluster_name: {NAME}\n{}",
        quoted(&options.log_name),
        options.buffer_size_bytes,
        options.flush_interval_seconds,
        indented(more, 4)
    )
}

fn attributes() -> String {
    let rows = ATTRIBUTES.iter().map(|row| {
        let (name, operator) = (quoted(row.name), quoted(row.operator));
        format!("  - {{ key: {name}, value: {{ string_value: {operator} }} }}\n")
    });
    format!("attributes:\n  values:\n{}", rows.collect::<String>())
}

fn cluster(service: &Service) -> String {
    let discovery = match service.host.parse::<IpAddr>() {
        Ok(_) => "STATIC",
        Err(_) => "STRICT_DNS",
    };
    format!(
        "- name: {NAME}\n\
         \x20 type: {discovery}\n\
         \x20 connect_timeout: 1s\n\
         \x20 typed_extension_protocol_options:\n\
         \x20   envoy.extensions.upstreams.http.v3.HttpProtocolOptions:\n\
         \x20     \"@type\": {TYPES}.upstreams.http.v3.HttpProtocolOptions\n\
         \x20     explicit_http_config:\n\
         \x20       http2_protocol_options:\n\
         \x20         # What Envoy holds of entries that the agent has not read, before it drops any; 16 MiB or more without it.\n\
         \x20         initial_stream_window_size: 1048576\n\
         \x20         initial_connection_window_size: 1048576\n\
         \x20 load_assignment:\n\
         \x20   cluster_name: {NAME}\n\
         \x20   endpoints:\n\
         \x20   - lb_endpoints:\n\
         \x20     - endpoint:\n\
         \x20         address:\n\
         \x20           socket_address:\n\
         \x20             address: {}\n\
         \x20             port_value: {}\n",
        quoted(&service.host),
        service.port
    )
}

fn transport_socket(service: &Service) -> String {
    let host = quoted(&service.host);
    let (sni, kind) = match service.host.parse::<IpAddr>() {
        Ok(_) => (String::new(), "IP_ADDRESS"),
        Err(_) => (format!("\x20   sni: {host}\n"), "DNS"),
    };
    format!(
        "transport_socket:\n\
         \x20 name: envoy.transport_sockets.tls\n\
         \x20 typed_config:\n\
         \x20   \"@type\": {TYPES}.transport_sockets.tls.v3.UpstreamTlsContext\n\
         {sni}\
         \x20   common_tls_context:\n\
         \x20     alpn_protocols: [h2]\n\
         \x20     tls_certificates:\n\
         \x20     - certificate_chain: {{ filename: {CERTIFICATES}/tls.crt }}\n\
         \x20       private_key: {{ filename: {CERTIFICATES}/tls.key }}\n\
         \x20     validation_context:\n\
         \x20       trusted_ca: {{ filename: {CERTIFICATES}/ca.crt }}\n\
         \x20       match_typed_subject_alt_names:\n\
         \x20       - san_type: {kind}\n\
         \x20         matcher: {{ exact: {host} }}\n"
    )
}
