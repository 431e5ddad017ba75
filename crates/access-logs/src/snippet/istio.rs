//! Istio: extension providers of the mesh, and the Telemetry resource that uses them.

use super::{CERTIFICATES, NAME, Options, Security, Service, Transport, quoted};
use crate::{decode::GRPC_STATUS, otlp::ATTRIBUTES};

pub(super) fn snippet(service: &Service, options: &Options) -> String {
    let (providers, names) = match options.transport {
        Transport::Grpc => {
            let names = vec![format!("{NAME}-http"), format!("{NAME}-tcp")];
            let http = provider(&names[0], "envoyHttpAls", service, options)
                + &format!(
                    "\x20     additionalResponseHeadersToLog: [{GRPC_STATUS}]\n\
                     \x20     additionalResponseTrailersToLog: [{GRPC_STATUS}]\n"
                );
            let tcp = provider(&names[1], "envoyTcpAls", service, options);
            (http + &tcp, names)
        }
        Transport::Otlp => {
            let provider = provider(NAME, "envoyOtelAls", service, options);
            (provider + &labels(), vec![NAME.to_owned()])
        }
    };
    let rule = match options.security {
        Security::Plaintext => String::new(),
        Security::MutualTls => destination_rule(service),
    };
    let names = names.iter().map(|name| format!("    - name: {name}\n"));
    format!(
        "# Into the mesh's configuration (ConfigMap istio, or the values of Helm). Istio has no setting for the buffer of\n\
         # Envoy ({} bytes every {} s would be better than its 16384 bytes): watch how many entries Envoy drops.\n\
         meshConfig:\n\
         \x20 # What Envoy counts of its access logs: the agent compares it with what has come. Restart pods for it to take effect.\n\
         \x20 defaultConfig:\n\
         \x20   proxyStatsMatcher:\n\
         \x20     inclusionRegexps:\n\
         \x20     - 'access_logs\\..*'\n\
         \x20     - 'http\\..*\\.downstream_rq_completed'\n\
         \x20 extensionProviders:\n\
         {providers}\
         ---\n\
         # For all sidecars and gateways. Name the providers that you use already as well: this list replaces the default.\n\
         apiVersion: telemetry.istio.io/v1\n\
         kind: Telemetry\n\
         metadata:\n\
         \x20 name: {NAME}\n\
         \x20 namespace: istio-system\n\
         spec:\n\
         \x20 accessLogging:\n\
         \x20 - providers:\n{}{rule}",
        options.buffer_size_bytes,
        options.flush_interval_seconds,
        names.collect::<String>()
    )
}

fn provider(name: &str, kind: &str, service: &Service, options: &Options) -> String {
    format!(
        "\x20 - name: {name}\n\
         \x20   {kind}:\n\
         \x20     service: {}\n\
         \x20     port: {}\n\
         \x20     logName: {}\n",
        quoted(&service.host),
        service.port,
        quoted(&options.log_name)
    )
}

fn labels() -> String {
    let rows = ATTRIBUTES.iter().map(|row| {
        let (name, operator) = (quoted(row.name), quoted(row.operator));
        format!("          {name}: {operator}\n")
    });
    let rows: String = rows.collect();
    format!("      logFormat:\n        labels:\n{rows}")
}

/// The certificates of the proxies. It applies to all of them in the namespace of the Service.
fn destination_rule(service: &Service) -> String {
    let host = quoted(&service.host);
    let namespace = service.name_and_namespace();
    let namespace = namespace.map_or("istio-system", |(_, namespace)| namespace);
    format!(
        "---\n\
         # The agent asks for a client certificate. The files are read by the proxy: mount them into every sidecar with the\n\
         # annotations sidecar.istio.io/userVolume and sidecar.istio.io/userVolumeMount. tls.crt is signed by the agent's\n\
         # --access-logs-tls-client-ca; ca.crt signed the certificate of the agent, which has to name the host. A proxy can also\n\
         # write its own certificate of the mesh there (proxyMetadata OUTPUT_CERTS: cert-chain.pem, key.pem); then the agent has\n\
         # to be given the root of the mesh. At gateways credentialName, a Secret in their namespace, stands in place of the\n\
         # files; sidecars take it only if there is a workloadSelector. To be checked by you: istioctl proxy-config secret.\n\
         apiVersion: networking.istio.io/v1\n\
         kind: DestinationRule\n\
         metadata:\n\
         \x20 name: {NAME}\n\
         \x20 namespace: {}\n\
         spec:\n\
         \x20 host: {host}\n\
         \x20 trafficPolicy:\n\
         \x20   tls:\n\
         \x20     mode: MUTUAL\n\
         \x20     clientCertificate: {CERTIFICATES}/tls.crt\n\
         \x20     privateKey: {CERTIFICATES}/tls.key\n\
         \x20     caCertificates: {CERTIFICATES}/ca.crt\n\
         \x20     sni: {host}\n\
         \x20     subjectAltNames:\n\
         \x20     - {host}\n",
        quoted(namespace)
    )
}
