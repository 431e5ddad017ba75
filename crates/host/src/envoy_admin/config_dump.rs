//! `/config_dump`: the parts of Envoy's configuration that are looked at, as Envoy writes them.
//!
//! Three requests with a mask bring statistics, listeners and clusters, each alone; the dump of secrets
//! is never asked for. A mask cannot reach into a listener or a cluster (they are `Any`), so those come
//! whole, and everything that has no field here is skipped while it is read.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};

use super::{EnvoyAdminError, client::Client, text::harmless};
use crate::foreign_answers::{AnswerError, json};

/// Longest answer of each request. Listeners of a large mesh have some megabytes.
const LIMIT: usize = 16 << 20;
const STATISTICS: &str = "/config_dump?mask=bootstrap.stats_config,bootstrap.stats_sinks,bootstrap.stats_flush_interval,bootstrap.tracing";
const LISTENERS: &str = "/config_dump?mask=static_listeners,dynamic_listeners";
const CLUSTERS: &str = "/config_dump?mask=static_clusters,dynamic_active_clusters";

#[derive(Deserialize)]
struct Answer<T> {
    configs: Vec<T>,
}

#[derive(Default, Deserialize)]
struct BootstrapDump {
    bootstrap: Option<Bootstrap>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Bootstrap {
    pub(super) stats_config: Option<StatsConfig>,
    #[serde(default)]
    pub(super) stats_sinks: Vec<Named>,
    pub(super) stats_flush_interval: Option<String>,
    pub(super) tracing: Option<BootstrapTracing>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct StatsConfig {
    #[serde(default)]
    pub(super) stats_tags: Vec<Ignored>,
    pub(super) stats_matcher: Option<StatsMatcher>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StatsMatcher {
    #[serde(default)]
    pub(super) reject_all: bool,
    pub(super) inclusion_list: Option<Patterns>,
    pub(super) exclusion_list: Option<Patterns>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Patterns {
    #[serde(default)]
    pub(super) patterns: Vec<Ignored>,
}

/// Something of which only counts that it is there.
pub(super) type Ignored = serde::de::IgnoredAny;

#[derive(Debug, Deserialize)]
pub(super) struct BootstrapTracing {
    pub(super) http: Option<Named>,
}

/// An extension: its name and the type of its configuration.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    pub(super) name: String,
    pub(super) typed_config: Option<Typed>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Typed {
    #[serde(rename = "@type", default)]
    pub(super) type_url: String,
    /// Type of what a `TypedStruct` wraps.
    #[serde(rename = "type_url")]
    pub(super) wrapped: Option<String>,
}

#[derive(Deserialize)]
struct ListenersDump {
    #[serde(default)]
    static_listeners: Vec<ListenerEntry>,
    #[serde(default)]
    dynamic_listeners: Vec<DynamicListener>,
}

#[derive(Deserialize)]
struct DynamicListener {
    active_state: Option<ListenerEntry>,
}

#[derive(Deserialize)]
struct ListenerEntry {
    listener: Option<Listener>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Listener {
    #[serde(default)]
    pub(super) filter_chains: Vec<FilterChain>,
    pub(super) default_filter_chain: Option<FilterChain>,
    #[serde(default)]
    pub(super) access_log: Vec<AccessLog>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FilterChain {
    #[serde(default)]
    pub(super) filters: Vec<NetworkFilter>,
    pub(super) transport_socket: Option<TransportSocket>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TransportSocket {
    pub(super) typed_config: Option<TlsContext>,
}

/// Of the contexts of both sides, what says whether there is TLS.
#[derive(Debug, Deserialize)]
pub(super) struct TlsContext {
    #[serde(rename = "@type", default)]
    pub(super) type_url: String,
    #[serde(default)]
    pub(super) require_client_certificate: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct NetworkFilter {
    pub(super) typed_config: Option<NetworkFilterConfig>,
}

/// An HTTP connection manager; of other network filters the access log.
#[derive(Debug, Deserialize)]
pub(super) struct NetworkFilterConfig {
    #[serde(rename = "@type", default)]
    pub(super) type_url: String,
    #[serde(default)]
    pub(super) http_filters: Vec<HttpFilter>,
    #[serde(default)]
    pub(super) access_log: Vec<AccessLog>,
    pub(super) tracing: Option<Tracing>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HttpFilter {
    #[serde(default)]
    pub(super) name: String,
    pub(super) typed_config: Option<Typed>,
    #[serde(default)]
    pub(super) disabled: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tracing {
    pub(super) random_sampling: Option<Percent>,
    pub(super) overall_sampling: Option<Percent>,
    pub(super) provider: Option<Named>,
    #[serde(default)]
    pub(super) custom_tags: Vec<Ignored>,
}

/// Zero is left out by Envoy.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Percent {
    #[serde(default)]
    pub(super) value: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccessLog {
    #[serde(default)]
    pub(super) name: String,
    pub(super) filter: Option<Ignored>,
    pub(super) typed_config: Option<AccessLogConfig>,
}

#[expect(
    clippy::zero_sized_map_values,
    reason = "only the number of fields counts, and no set is read from an object"
)]
#[derive(Debug, Deserialize)]
pub(super) struct AccessLogConfig {
    #[serde(rename = "@type", default)]
    pub(super) type_url: String,
    #[serde(default)]
    pub(super) path: String,
    pub(super) log_format: Option<LogFormat>,
    /// The older places of the same.
    pub(super) format: Option<String>,
    pub(super) json_format: Option<BTreeMap<String, Ignored>>,
    pub(super) typed_json_format: Option<BTreeMap<String, Ignored>>,
}

#[expect(
    clippy::zero_sized_map_values,
    reason = "only the number of fields counts, and no set is read from an object"
)]
#[derive(Debug, Deserialize)]
pub(super) struct LogFormat {
    pub(super) text_format: Option<String>,
    pub(super) text_format_source: Option<TextSource>,
    pub(super) json_format: Option<BTreeMap<String, Ignored>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TextSource {
    pub(super) inline_string: Option<String>,
}

#[derive(Deserialize)]
struct ClustersDump {
    #[serde(default)]
    static_clusters: Vec<ClusterEntry>,
    #[serde(default)]
    dynamic_active_clusters: Vec<ClusterEntry>,
}

#[derive(Deserialize)]
struct ClusterEntry {
    cluster: Option<Cluster>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cluster {
    #[serde(default)]
    pub(super) typed_extension_protocol_options: BTreeMap<String, ProtocolOptions>,
    /// The older place of the same.
    pub(super) http2_protocol_options: Option<Ignored>,
    pub(super) transport_socket: Option<TransportSocket>,
    #[serde(default)]
    pub(super) transport_socket_matches: Vec<SocketMatch>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SocketMatch {
    pub(super) transport_socket: Option<TransportSocket>,
}

#[expect(clippy::struct_field_names, reason = "the names are Envoy's")]
#[derive(Debug, Deserialize)]
pub(super) struct ProtocolOptions {
    pub(super) explicit_http_config: Option<ExplicitHttp>,
    pub(super) use_downstream_protocol_config: Option<Ignored>,
    pub(super) auto_config: Option<Ignored>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExplicitHttp {
    pub(super) http2_protocol_options: Option<Ignored>,
    pub(super) http3_protocol_options: Option<Ignored>,
}

/// What was started with concerns statistics and tracing.
pub(super) fn bootstrap(client: &Client) -> Result<Bootstrap, EnvoyAdminError> {
    ask(client, STATISTICS, bootstrap_in)
}

/// Listeners in force.
pub(super) fn listeners(client: &Client) -> Result<Vec<Listener>, EnvoyAdminError> {
    ask(client, LISTENERS, listeners_in)
}

/// Clusters in force.
pub(super) fn clusters(client: &Client) -> Result<Vec<Cluster>, EnvoyAdminError> {
    ask(client, CLUSTERS, clusters_in)
}

pub(super) fn bootstrap_in(body: &[u8]) -> Result<Bootstrap, AnswerError> {
    let dumps: Vec<BootstrapDump> = dumps_in(body)?;
    let mut found = dumps.into_iter().filter_map(|dump| dump.bootstrap);
    Ok(found.next().unwrap_or_default())
}

pub(super) fn listeners_in(body: &[u8]) -> Result<Vec<Listener>, AnswerError> {
    let dumps: Vec<ListenersDump> = dumps_in(body)?;
    let all = dumps.into_iter().flat_map(|dump| {
        let dynamic = dump.dynamic_listeners.into_iter();
        let dynamic = dynamic.filter_map(|listener| listener.active_state);
        dump.static_listeners.into_iter().chain(dynamic)
    });
    Ok(all.filter_map(|entry| entry.listener).collect())
}

pub(super) fn clusters_in(body: &[u8]) -> Result<Vec<Cluster>, AnswerError> {
    let dumps: Vec<ClustersDump> = dumps_in(body)?;
    let all = dumps.into_iter().flat_map(|dump| {
        let dynamic = dump.dynamic_active_clusters.into_iter();
        dump.static_clusters.into_iter().chain(dynamic)
    });
    Ok(all.filter_map(|entry| entry.cluster).collect())
}

/// The dumps of an answer. One that a mask leaves nothing of is answered as a failure by Envoy, but
/// the fields of these masks are there always.
fn dumps_in<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, AnswerError> {
    let answer: Answer<T> = json(body)?;
    Ok(answer.configs)
}

fn ask<T>(
    client: &Client,
    path: &'static str,
    parse: fn(&[u8]) -> Result<T, AnswerError>,
) -> Result<T, EnvoyAdminError> {
    let body = client
        .get(path, LIMIT)
        .map_err(|source| EnvoyAdminError::Request { path, source })?;
    parse(&body).map_err(|error| EnvoyAdminError::Answer {
        path,
        detail: harmless(&error.to_string()),
    })
}
