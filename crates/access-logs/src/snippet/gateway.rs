//! Envoy Gateway: sinks in the `EnvoyProxy` resource, and with TLS a `Backend` that they name.

use std::net::IpAddr;

use super::{NAME, Options, Security, Service, Transport, indented, quoted};
use crate::{decode::GRPC_STATUS, otlp::ATTRIBUTES};

pub(super) fn snippet(service: &Service, options: &Options) -> String {
    let (references, routing, backend) = match options.security {
        Security::Plaintext => (service_reference(service), ROUTING, String::new()),
        Security::MutualTls => (backend_reference(service), "", backend(service)),
    };
    let setting = match options.transport {
        Transport::Grpc => {
            let status = format!(
                "\x20   http:\n\
                 \x20     responseHeaders: [{GRPC_STATUS}]\n\
                 \x20     responseTrailers: [{GRPC_STATUS}]\n"
            );
            let http = als("HTTP", &references, options) + &status;
            let tcp = als("TCP", &references, options);
            format!("- sinks:\n{}{}", indented(&http, 2), indented(&tcp, 2))
        }
        Transport::Otlp => {
            let sink = format!(
                "- type: OpenTelemetry\n\
                 \x20 openTelemetry:\n{}",
                indented(&references, 4)
            );
            format!("{}  sinks:\n{}", format_of_records(), indented(&sink, 2))
        }
    };
    format!(
        "# Into the EnvoyProxy that your GatewayClass or Gateway refers to. Settings replace the log on standard output: keep\n\
         # it as another one if you need it. Envoy Gateway has no setting for the buffer of Envoy yet ({} bytes every\n\
         # {} s would be better than its 16384 bytes; envoyproxy/gateway#9723).\n\
         apiVersion: gateway.envoyproxy.io/v1alpha1\n\
         kind: EnvoyProxy\n\
         metadata:\n\
         \x20 name: {NAME}\n\
         \x20 namespace: envoy-gateway-system\n\
         spec:\n\
         {routing}\
         \x20 telemetry:\n\
         \x20   accessLog:\n\
         \x20     settings:\n{}{backend}",
        options.buffer_size_bytes,
        options.flush_interval_seconds,
        indented(&setting, 6)
    )
}

/// Endpoints of a Service are those of all nodes, whatever its `internalTrafficPolicy`.
const ROUTING: &str = "\x20 # By default entries go to the agents of all nodes, where they are only claimed. With the next line they go to\n\
     \x20 # the Service, and so to the agent of the proxy's node; it applies to the backends of routes as well.\n\
     \x20 # routingType: Service\n";

fn als(kind: &str, references: &str, options: &Options) -> String {
    format!(
        "- type: ALS\n\
         \x20 als:\n\
         \x20   type: {kind}\n\
         \x20   logName: {}\n{}",
        quoted(&options.log_name),
        indented(references, 4)
    )
}

fn service_reference(service: &Service) -> String {
    let (note, name, namespace) = match service.name_and_namespace() {
        Some((name, namespace)) => ("", name, namespace),
        None => (
            "# Envoy Gateway takes a Service only: make one for the agent, and name it here.\n",
            service.host.as_str(),
            "default",
        ),
    };
    format!(
        "{note}backendRefs:\n\
         - name: {}\n\
         \x20 namespace: {}\n\
         \x20 port: {}\n",
        quoted(name),
        quoted(namespace),
        service.port
    )
}

fn backend_reference(service: &Service) -> String {
    format!(
        "backendRefs:\n\
         - group: gateway.envoyproxy.io\n\
         \x20 kind: Backend\n\
         \x20 name: {NAME}\n\
         \x20 namespace: {}\n\
         \x20 port: {}\n",
        quoted(namespace(service)),
        service.port
    )
}

/// Of the Backend and its Secrets: the agent's own, where its Service says which that is.
fn namespace(service: &Service) -> &str {
    let parts = service.name_and_namespace();
    parts.map_or("default", |(_, namespace)| namespace)
}

/// A `BackendTLSPolicy` does not apply to the Services of access logs.
fn backend(service: &Service) -> String {
    let host = quoted(&service.host);
    let port = service.port;
    let (endpoint, sni) = match service.host.parse::<IpAddr>() {
        Ok(_) => (
            format!("ip: {{ address: {host}, port: {port} }}"),
            String::new(),
        ),
        Err(_) => (
            format!("fqdn: {{ hostname: {host}, port: {port} }}"),
            format!("\x20   sni: {host}\n"),
        ),
    };
    format!(
        "---\n\
         # The agent asks for a client certificate. Both Secrets are in the namespace of the Backend: one with ca.crt, which signed\n\
         # the certificate of the agent, one with tls.crt and tls.key, signed by the agent's --access-logs-tls-client-ca. Envoy\n\
         # Gateway has to have extensionApis.enableBackend. To be checked by you: not every version applies tls of a Backend,\n\
         # and its client certificate, to access logs. Where yours does not, nothing arrives (`access-logs status`), and\n\
         # --access-logs-plaintext behind a NetworkPolicy is what remains.\n\
         apiVersion: gateway.envoyproxy.io/v1alpha1\n\
         kind: Backend\n\
         metadata:\n\
         \x20 name: {NAME}\n\
         \x20 namespace: {}\n\
         spec:\n\
         \x20 appProtocols:\n\
         \x20 - gateway.envoyproxy.io/h2c\n\
         \x20 endpoints:\n\
         \x20 - {endpoint}\n\
         \x20 tls:\n\
         {sni}\
         \x20   caCertificateRefs:\n\
         \x20   - group: \"\"\n\
         \x20     kind: Secret\n\
         \x20     name: {NAME}-ca\n\
         \x20   clientCertificateRef:\n\
         \x20     group: \"\"\n\
         \x20     kind: Secret\n\
         \x20     name: {NAME}-client\n",
        quoted(namespace(service))
    )
}

/// In this form each line becomes an attribute of the record.
fn format_of_records() -> String {
    let rows = ATTRIBUTES.iter().map(|row| {
        let (name, operator) = (quoted(row.name), quoted(row.operator));
        format!("      {name}: {operator}\n")
    });
    let rows: String = rows.collect();
    format!("- format:\n    type: JSON\n    json:\n{rows}")
}
