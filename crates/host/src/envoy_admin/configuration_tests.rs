//! The configuration of a real Envoy 1.40, as it answered (`tests/fixtures/envoy_admin`).

use std::time::Duration;

use super::*;
use crate::envoy_admin::{test_server::TestServer, text::TEXT_LIMIT};

const LISTENERS: &[u8] = include_bytes!("../../../../tests/fixtures/envoy_admin/listeners.json");
const CLUSTERS: &[u8] = include_bytes!("../../../../tests/fixtures/envoy_admin/clusters.json");
const BOOTSTRAP: &[u8] = include_bytes!("../../../../tests/fixtures/envoy_admin/bootstrap.json");

fn info() -> ServerInfo {
    ServerInfo {
        version: "1.40.0".into(),
        concurrency: Some(2),
        log_level: "warning".into(),
        file_flush_interval: "10s".into(),
    }
}

fn real(path: &str) -> Vec<u8> {
    let bytes = if path.contains("listeners") {
        LISTENERS
    } else if path.contains("clusters") {
        CLUSTERS
    } else {
        BOOTSTRAP
    };
    bytes.to_vec()
}

fn read_from(server: &TestServer) -> (ObservedConfiguration, Vec<String>) {
    read(
        &Client::new(server.address, Duration::from_secs(2)),
        &info(),
    )
}

#[test]
fn facts_of_a_real_envoy_are_extracted_and_nothing_else() {
    let server = TestServer::with(|path| Some(real(path)));
    let (configuration, gaps) = read_from(&server);
    assert_eq!(gaps, Vec::<String>::new());
    assert_eq!(configuration.version.as_deref(), Some("1.40.0"));
    assert_eq!(configuration.concurrency, Some(2));
    assert!(configuration.source.contains(&server.address.to_string()));
    let items: Vec<String> = configuration
        .items
        .iter()
        .map(|item| format!("{} = {}", item.key, item.value))
        .collect();
    let expected = [
        "access_log = envoy.access_loggers.file to /var/log/proxy.log",
        "access_log = envoy.access_loggers.file to /dev/null, with a filter",
        "access_log = envoy.access_loggers.stream",
        "access_log.flush_interval = 10s",
        "access_log.format = text, 2 operators",
        "access_log.format = JSON, 3 fields",
        "access_log.format = its default",
        "http_filter = envoy.filters.http.lua (3 times)",
        "http_filter = envoy.filters.http.router (3 times)",
        "http_filter = envoy.filters.http.rbac",
        "log_level = warning",
        "stats = kept are those of 2 patterns; 1 tags are extracted",
        "stats.flush_interval = 10s",
        "stats.sink = envoy.stat_sinks.statsd",
        "tls.downstream = mutual TLS",
        "tls.downstream = off (3 times)",
        "tls.upstream = 2 of 5 clusters",
        "tracing.custom_tags = 1",
        "tracing.provider = envoy.tracers.zipkin (3 times)",
        "tracing.sampling = 100 %",
        "tracing.sampling = 1 %",
        "tracing.sampling = 0 %",
        "upstream.as_downstream = 1",
        "upstream.http1 = 2",
        "upstream.http2 = 1",
        "upstream.negotiated = 1",
    ];
    assert_eq!(items, expected);
    let all = items.join("\n");
    for secret in ["SECRET", "PRIVATE", "CERTIFICATE", "envoy_on_request"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    for line in asked {
        assert!(line.starts_with("GET /config_dump?mask="), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_kept() {
    let server = TestServer::with(|path| (!path.contains("listeners")).then(|| real(path)));
    let (configuration, gaps) = read_from(&server);
    assert_eq!(gaps.len(), 1);
    assert!(
        gaps[0].contains("mask=static_listeners") && gaps[0].contains("404"),
        "{gaps:?}"
    );
    let has = |key: &str| configuration.items.iter().any(|item| item.key == key);
    assert!(has("upstream.http2") && has("stats"));
    assert!(
        !has("tracing.sampling") && !has("access_log"),
        "unknown is not off"
    );
}

#[test]
fn an_envoy_without_anything_says_off() {
    let server =
        TestServer::with(|_| Some(br#"{"configs":[{"@type":"x","bootstrap":{}}]}"#.to_vec()));
    let (configuration, gaps) = read_from(&server);
    assert!(gaps.is_empty(), "{gaps:?}");
    let value = |key: &str| {
        let mut found = configuration.items.iter().filter(|item| item.key == key);
        found.next().map(|item| item.value.as_str())
    };
    assert_eq!(value("tracing.sampling"), Some("off"));
    assert_eq!(value("access_log"), Some("off"));
    assert_eq!(value("stats"), Some("every statistic is kept"));
    assert_eq!(value("stats.flush_interval"), Some("5s"));
    assert_eq!(value("upstream.http1"), None);
    assert_eq!(value("tls.upstream"), Some("0 of 0 clusters"));
}

#[test]
fn text_of_the_configuration_is_short_and_printable() {
    assert_eq!(harmless("plain"), "plain");
    assert_eq!(harmless("a\u{1b}[31m\u{202e}b"), "a\\x1b[31m\\u{202e}b");
    let long = harmless(&"x".repeat(4000));
    assert_eq!(long.chars().count(), TEXT_LIMIT);
    let mut facts = ConfigurationValues::default();
    for number in 0..100 {
        facts.add("http_filter", number.to_string());
    }
    let items = facts.items();
    assert_eq!(items.len(), VALUES + 1);
    assert_eq!(items[VALUES].value, "76 others");
}

#[test]
fn extensions_are_called_by_their_type() {
    let check = |url: Option<&str>, name: &str, expected: &str| {
        assert_eq!(extension_of(url, name), expected);
    };
    let lua = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";
    check(Some(lua), "mine", "envoy.filters.http.lua");
    check(Some("type.googleapis.com/other.Thing"), "mine", "mine");
    check(
        Some("type.googleapis.com/envoy.extensions.x"),
        "mine",
        "mine",
    );
    check(
        None,
        "envoy.filters.http.router",
        "envoy.filters.http.router",
    );
}

#[test]
fn operators_of_a_format_are_counted() {
    assert_eq!(operators("[%START_TIME%] \"%REQ(:METHOD)%\" 100%% \n"), 2);
    assert_eq!(operators("nothing"), 0);
    assert_eq!(operators("%"), 0);
}
