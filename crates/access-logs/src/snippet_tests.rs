//! Configurations are YAML with the parts that matter.

use saphyr::{LoadableYamlNode as _, Yaml};

use super::{Options, Security, Service, System, Transport, quoted, snippet};
use crate::{decode::GRPC_STATUS, otlp::ATTRIBUTES};

fn service() -> Service {
    "profiler-agent-access-logs.profiler.svc.cluster.local:7118"
        .parse()
        .unwrap()
}

fn options(transport: Transport) -> Options {
    Options {
        transport,
        ..Options::default()
    }
}

/// All documents of a snippet.
fn documents(text: &str) -> Vec<Yaml<'_>> {
    Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The value at a path of keys and places, with `/` between them.
fn at<'a>(document: &'a Yaml<'a>, path: &str) -> &'a Yaml<'a> {
    path.split('/').fold(document, |value, key| {
        let next = match key.parse::<usize>() {
            Ok(place) => value.as_sequence_get(place),
            Err(_) => value.as_mapping_get(key),
        };
        next.unwrap_or_else(|| panic!("no {key} of {path}"))
    })
}

fn text<'a>(document: &'a Yaml<'a>, path: &str) -> &'a str {
    let value = at(document, path);
    value
        .as_str()
        .unwrap_or_else(|| panic!("{path}: {value:?}"))
}

fn number(document: &Yaml<'_>, path: &str) -> i64 {
    let value = at(document, path);
    value
        .as_integer()
        .unwrap_or_else(|| panic!("{path}: {value:?}"))
}

#[test]
fn envoy_has_a_logger_for_requests_and_connections_and_their_cluster() {
    for (transport, names) in [
        (Transport::Grpc, ["http_grpc", "tcp_grpc"]),
        (Transport::Otlp, ["open_telemetry", "open_telemetry"]),
    ] {
        let written = snippet(System::Envoy, &service(), &options(transport));
        let documents = documents(&written);
        let [document] = documents.as_slice() else {
            panic!("{written}");
        };
        for (place, name) in names.iter().enumerate() {
            let chains = "static_resources/listeners/0/filter_chains";
            let log = format!("{chains}/{place}/filters/0/typed_config/access_log/0");
            assert_eq!(
                text(document, &format!("{log}/name")),
                format!("envoy.access_loggers.{name}")
            );
            let common = format!("{log}/typed_config/common_config");
            assert_eq!(
                text(document, &format!("{common}/log_name")),
                "profiler-access-logs"
            );
            assert_eq!(
                number(document, &format!("{common}/buffer_size_bytes")),
                262_144
            );
            assert_eq!(
                text(document, &format!("{common}/buffer_flush_interval")),
                "1s"
            );
            assert_eq!(
                text(document, &format!("{common}/transport_api_version")),
                "V3"
            );
            let cluster = format!("{common}/grpc_service/envoy_grpc/cluster_name");
            let cluster = text(document, &cluster);
            assert_eq!(text(document, "static_resources/clusters/0/name"), cluster);
            if *name == "http_grpc" {
                for of in ["headers", "trailers"] {
                    let status = format!("{log}/typed_config/additional_response_{of}_to_log/0");
                    assert_eq!(text(document, &status), GRPC_STATUS);
                }
            }
            if transport == Transport::Otlp {
                for (place, row) in ATTRIBUTES.iter().enumerate() {
                    let value = format!("{log}/typed_config/attributes/values/{place}");
                    assert_eq!(text(document, &format!("{value}/key")), row.name);
                    let operator = format!("{value}/value/string_value");
                    assert_eq!(text(document, &operator), row.operator);
                }
            }
        }
        let cluster = "static_resources/clusters/0";
        assert_eq!(text(document, &format!("{cluster}/type")), "STRICT_DNS");
        let address = format!(
            "{cluster}/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address"
        );
        assert_eq!(
            text(document, &format!("{address}/address")),
            service().host
        );
        assert_eq!(number(document, &format!("{address}/port_value")), 7118);
    }
}

#[test]
fn an_address_needs_no_resolution() {
    for address in ["10.0.0.1:7118", "[fd00::1]:7118"] {
        let service: Service = address.parse().unwrap();
        let written = snippet(System::Envoy, &service, &Options::default());
        let documents = documents(&written);
        let kind = text(&documents[0], "static_resources/clusters/0/type");
        assert_eq!(kind, "STATIC", "{address}");
    }
}

#[test]
fn istio_has_providers_and_a_resource_that_names_them() {
    for (transport, kinds) in [
        (Transport::Grpc, vec!["envoyHttpAls", "envoyTcpAls"]),
        (Transport::Otlp, vec!["envoyOtelAls"]),
    ] {
        let written = snippet(System::Istio, &service(), &options(transport));
        let documents = documents(&written);
        let [mesh, telemetry] = documents.as_slice() else {
            panic!("{written}");
        };
        assert_eq!(text(telemetry, "kind"), "Telemetry");
        let counters = "meshConfig/defaultConfig/proxyStatsMatcher/inclusionRegexps";
        for (place, expected) in [r"access_logs\..*", r"http\..*\.downstream_rq_completed"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(text(mesh, &format!("{counters}/{place}")), expected);
        }
        for (place, kind) in kinds.iter().enumerate() {
            let provider = format!("meshConfig/extensionProviders/{place}");
            let name = text(mesh, &format!("{provider}/name"));
            let used = format!("spec/accessLogging/0/providers/{place}/name");
            assert_eq!(text(telemetry, &used), name);
            let provider = format!("{provider}/{kind}");
            assert_eq!(text(mesh, &format!("{provider}/service")), service().host);
            assert_eq!(number(mesh, &format!("{provider}/port")), 7118);
            if *kind == "envoyHttpAls" {
                for of in ["Headers", "Trailers"] {
                    let status = format!("{provider}/additionalResponse{of}ToLog/0");
                    assert_eq!(text(mesh, &status), GRPC_STATUS);
                }
            }
            if transport == Transport::Otlp {
                check_attributes(at(mesh, &format!("{provider}/logFormat/labels")));
            }
        }
        assert!(written.contains("no setting for the buffer"), "{written}");
    }
}

#[test]
fn envoy_gateway_has_sinks() {
    for (transport, sinks) in [
        (Transport::Grpc, vec![("ALS", "als"), ("ALS", "als")]),
        (Transport::Otlp, vec![("OpenTelemetry", "openTelemetry")]),
    ] {
        let written = snippet(System::EnvoyGateway, &service(), &options(transport));
        let documents = documents(&written);
        let [document] = documents.as_slice() else {
            panic!("{written}");
        };
        assert_eq!(text(document, "kind"), "EnvoyProxy");
        let setting = "spec/telemetry/accessLog/settings/0";
        for (place, (kind, key)) in sinks.iter().enumerate() {
            let sink = format!("{setting}/sinks/{place}");
            assert_eq!(text(document, &format!("{sink}/type")), *kind);
            let backend = format!("{sink}/{key}/backendRefs/0");
            assert_eq!(
                text(document, &format!("{backend}/name")),
                "profiler-agent-access-logs"
            );
            assert_eq!(text(document, &format!("{backend}/namespace")), "profiler");
            assert_eq!(number(document, &format!("{backend}/port")), 7118);
        }
        match transport {
            Transport::Grpc => {
                let kinds = [0, 1]
                    .map(|place| text(document, &format!("{setting}/sinks/{place}/als/type")));
                assert_eq!(kinds, ["HTTP", "TCP"]);
                for of in ["responseHeaders", "responseTrailers"] {
                    let status = format!("{setting}/sinks/0/als/http/{of}/0");
                    assert_eq!(text(document, &status), GRPC_STATUS);
                }
            }
            Transport::Otlp => {
                assert_eq!(text(document, &format!("{setting}/format/type")), "JSON");
                check_attributes(at(document, &format!("{setting}/format/json")));
            }
        }
        assert!(written.contains("no setting for the buffer"), "{written}");
    }
}

fn with_certificates(system: System, address: &str) -> String {
    let options = Options {
        security: Security::MutualTls,
        ..Options::default()
    };
    snippet(system, &address.parse().unwrap(), &options)
}

#[test]
fn envoy_shows_a_certificate_and_wants_the_one_of_the_address() {
    for (address, kind, host) in [
        ("agent.example:7118", "DNS", "agent.example"),
        ("[fd00::1]:7118", "IP_ADDRESS", "fd00::1"),
    ] {
        let written = with_certificates(System::Envoy, address);
        let documents = documents(&written);
        let socket = at(
            &documents[0],
            "static_resources/clusters/0/transport_socket/typed_config",
        );
        let sni = socket.as_mapping_get("sni").and_then(Yaml::as_str);
        assert_eq!(sni, (kind == "DNS").then_some(host), "{written}");
        let context = at(socket, "common_tls_context");
        assert_eq!(text(context, "alpn_protocols/0"), "h2");
        for (path, file) in [
            ("tls_certificates/0/certificate_chain", "tls.crt"),
            ("tls_certificates/0/private_key", "tls.key"),
            ("validation_context/trusted_ca", "ca.crt"),
        ] {
            let filename = text(context, &format!("{path}/filename"));
            assert_eq!(filename, format!("/etc/profiler-access-logs/{file}"));
        }
        let name = at(
            context,
            "validation_context/match_typed_subject_alt_names/0",
        );
        assert_eq!(text(name, "san_type"), kind);
        assert_eq!(text(name, "matcher/exact"), host);
    }
}

#[test]
fn istio_has_a_rule_with_certificates_in_the_namespace_of_the_service() {
    for (host, namespace) in [
        ("agent.profiler.svc.cluster.local", "profiler"),
        ("agent.example.com", "istio-system"),
    ] {
        let written = with_certificates(System::Istio, &format!("{host}:7118"));
        let documents = documents(&written);
        let [_, _, rule] = documents.as_slice() else {
            panic!("{written}");
        };
        assert_eq!(text(rule, "kind"), "DestinationRule");
        assert_eq!(text(rule, "metadata/namespace"), namespace);
        assert_eq!(text(rule, "spec/host"), host);
        let tls = at(rule, "spec/trafficPolicy/tls");
        assert_eq!(text(tls, "mode"), "MUTUAL");
        assert_eq!(text(tls, "subjectAltNames/0"), host);
        for (key, file) in [
            ("clientCertificate", "tls.crt"),
            ("privateKey", "tls.key"),
            ("caCertificates", "ca.crt"),
        ] {
            assert_eq!(text(tls, key), format!("/etc/profiler-access-logs/{file}"));
        }
    }
}

#[test]
fn envoy_gateway_sends_to_a_backend_with_certificates() {
    for (address, endpoint, host, namespace) in [
        (
            "agent.profiler.svc:7118",
            "fqdn/hostname",
            "agent.profiler.svc",
            "profiler",
        ),
        ("10.0.0.1:7118", "ip/address", "10.0.0.1", "default"),
    ] {
        let written = with_certificates(System::EnvoyGateway, address);
        let documents = documents(&written);
        let [proxy, backend] = documents.as_slice() else {
            panic!("{written}");
        };
        for sink in 0..2 {
            let sinks = "spec/telemetry/accessLog/settings/0/sinks";
            let reference = at(proxy, &format!("{sinks}/{sink}/als/backendRefs/0"));
            for key in ["kind", "name", "namespace"] {
                let path = if key == "kind" {
                    key.to_owned()
                } else {
                    format!("metadata/{key}")
                };
                assert_eq!(text(reference, key), text(backend, &path));
            }
            assert_eq!(text(reference, "group"), "gateway.envoyproxy.io");
        }
        assert_eq!(text(backend, "metadata/namespace"), namespace);
        let path = format!("spec/endpoints/0/{endpoint}");
        assert_eq!(text(backend, &path), host);
        let tls = at(backend, "spec/tls");
        let sni = tls.as_mapping_get("sni").and_then(Yaml::as_str);
        assert_eq!(sni, (endpoint == "fqdn/hostname").then_some(host));
        let names = ["caCertificateRefs/0/name", "clientCertificateRef/name"];
        let names = names.map(|path| text(tls, path));
        assert_eq!(
            names,
            ["profiler-access-logs-ca", "profiler-access-logs-client"]
        );
        assert!(written.contains("To be checked by you"), "{written}");
    }
}

fn check_attributes(map: &Yaml<'_>) {
    for row in &ATTRIBUTES {
        let value = map.as_mapping_get(row.name).and_then(Yaml::as_str);
        assert_eq!(value, Some(row.operator), "{}", row.name);
    }
}

#[test]
fn envoy_gateway_without_a_service_says_so() {
    for host in ["10.0.0.1:1", "agent:1", "agent.example.com:1"] {
        let service: Service = host.parse().unwrap();
        let written = snippet(System::EnvoyGateway, &service, &Options::default());
        assert!(written.contains("takes a Service only"), "{written}");
        documents(&written);
    }
}

#[test]
fn text_cannot_leave_its_scalar() {
    let hostile = "a\"\n- b: {c}\\ \u{85}\u{2028}é😀#";
    let quoted = quoted(hostile);
    assert!(quoted.is_ascii() && !quoted.contains('\n'), "{quoted}");
    let service = Service {
        host: hostile.to_owned(),
        port: 1,
    };
    for security in [Security::Plaintext, Security::MutualTls] {
        let options = Options {
            log_name: hostile.to_owned(),
            security,
            ..Options::default()
        };
        for system in [System::Envoy, System::Istio, System::EnvoyGateway] {
            let written = snippet(system, &service, &options);
            documents(&written);
            assert!(!written.contains("\n- b"), "{written}");
        }
    }
    let text = format!("text: {quoted}");
    let documents = documents(&text);
    assert_eq!(
        documents[0].as_mapping_get("text").and_then(Yaml::as_str),
        Some(hostile)
    );
}

#[test]
fn a_service_is_a_host_and_a_port() {
    let check = |text: &str, expected: Option<(&str, u16)>| {
        let service = text.parse::<Service>().ok();
        let found = service
            .as_ref()
            .map(|service| (service.host.as_str(), service.port));
        assert_eq!(found, expected, "{text}");
    };
    check("agent.ns:7118", Some(("agent.ns", 7118)));
    check("[::1]:80", Some(("::1", 80)));
    check("10.0.0.1:80", Some(("10.0.0.1", 80)));
    for text in [
        "",
        "agent",
        ":80",
        "agent:",
        "agent:0",
        "agent:65536",
        "a:b:80",
        "http://a:80",
        "[a]b:80",
    ] {
        check(text, None);
    }
}
