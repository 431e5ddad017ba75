//! From Envoy's configuration to the few facts that are kept of it.
//!
//! Names of extensions come from the types of their configuration, which are Envoy's, where there is one;
//! their given names otherwise. Bodies of filters, routes, certificates, headers and values of tags are
//! not kept.

use std::collections::BTreeMap;

use profiler_model::{ConfigurationItem, ObservedConfiguration};

use super::{
    EnvoyAdminError,
    client::Client,
    config_dump::{
        self, AccessLog, AccessLogConfig, Bootstrap, Cluster, FilterChain, Listener,
        NetworkFilterConfig, StatsConfig, Tracing, TransportSocket, Typed,
    },
    server_info::ServerInfo,
    text::harmless,
};

/// Different values of one key that are kept; the others are counted.
const VALUES: usize = 24;
/// How often Envoy hands statistics on when nothing is configured.
const DEFAULT_FLUSH: &str = "5s";

/// What Envoy is configured to do, and what could not be read of it.
pub(super) fn read(client: &Client, info: &ServerInfo) -> (ObservedConfiguration, Vec<String>) {
    let mut gaps = Vec::new();
    let mut facts = ConfigurationValues::default();
    facts.of_server(info);
    let bootstrap = kept(config_dump::bootstrap(client), &mut gaps);
    if let Some(bootstrap) = &bootstrap {
        facts.of_bootstrap(bootstrap);
    }
    if let Some(listeners) = kept(config_dump::listeners(client), &mut gaps) {
        let inherited = bootstrap.and_then(|bootstrap| bootstrap.tracing?.http);
        facts.of_listeners(
            &listeners,
            inherited.map(|provider| provider.name).as_deref(),
        );
    }
    if let Some(clusters) = kept(config_dump::clusters(client), &mut gaps) {
        facts.of_clusters(&clusters);
    }
    let configuration = ObservedConfiguration {
        source: format!("Envoy's admin interface at {}", client.address()),
        version: Some(info.version.clone()).filter(|version| !version.is_empty()),
        concurrency: info.concurrency.map(u64::from),
        items: facts.items(),
    };
    (configuration, gaps)
}

/// Reads bytes as every part of a configuration.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz(bytes: &[u8]) {
    let mut facts = ConfigurationValues::default();
    if let Ok(bootstrap) = config_dump::bootstrap_in(bytes) {
        facts.of_bootstrap(&bootstrap);
    }
    if let Ok(listeners) = config_dump::listeners_in(bytes) {
        facts.of_listeners(&listeners, None);
    }
    if let Ok(clusters) = config_dump::clusters_in(bytes) {
        facts.of_clusters(&clusters);
    }
    drop(facts.items());
}

fn kept<T>(part: Result<T, EnvoyAdminError>, gaps: &mut Vec<String>) -> Option<T> {
    part.map_err(|error| gaps.push(format!("Envoy's configuration is known in part: {error}")))
        .ok()
}

/// Values of the keys, each with how often it was met.
#[derive(Debug, Default)]
struct ConfigurationValues {
    by_key: BTreeMap<&'static str, Values>,
}

#[derive(Debug, Default)]
struct Values {
    /// In the order in which they were met.
    met: Vec<(String, u64)>,
    others: u64,
}

impl ConfigurationValues {
    fn add(&mut self, key: &'static str, value: String) {
        let values = self.by_key.entry(key).or_default();
        if let Some((_, times)) = values.met.iter_mut().find(|(known, _)| *known == value) {
            *times += 1;
        } else if values.met.len() < VALUES {
            values.met.push((value, 1));
        } else {
            values.others += 1;
        }
    }

    fn of_server(&mut self, info: &ServerInfo) {
        let ServerInfo {
            version: _,
            concurrency: _,
            log_level,
            file_flush_interval,
        } = info;
        if !log_level.is_empty() {
            self.add("log_level", log_level.clone());
        }
        if !file_flush_interval.is_empty() {
            self.add("access_log.flush_interval", file_flush_interval.clone());
        }
    }

    fn of_bootstrap(&mut self, bootstrap: &Bootstrap) {
        let Bootstrap {
            stats_config,
            stats_sinks,
            stats_flush_interval,
            tracing: _,
        } = bootstrap;
        let interval = stats_flush_interval.as_deref().unwrap_or(DEFAULT_FLUSH);
        self.add("stats.flush_interval", harmless(interval));
        let sinks = stats_sinks.iter();
        for sink in sinks {
            self.add(
                "stats.sink",
                extension(sink.typed_config.as_ref(), &sink.name),
            );
        }
        let selection = stats_config
            .as_ref()
            .map_or_else(|| "every statistic is kept".to_owned(), selection);
        self.add("stats", selection);
    }

    /// `provider` is the one of tracing that does not name its own.
    fn of_listeners(&mut self, listeners: &[Listener], provider: Option<&str>) {
        for listener in listeners {
            for log in &listener.access_log {
                self.of_access_log(log);
            }
            let default = listener.default_filter_chain.iter();
            for chain in listener.filter_chains.iter().chain(default) {
                self.of_filter_chain(chain, provider);
            }
        }
        if !self.by_key.contains_key("access_log") {
            self.add("access_log", "off".to_owned());
        }
        if !self.by_key.contains_key("tracing.sampling") {
            self.add("tracing.sampling", "off".to_owned());
        }
    }

    fn of_filter_chain(&mut self, chain: &FilterChain, provider: Option<&str>) {
        let tls = chain.transport_socket.as_ref().and_then(tls_of);
        self.add("tls.downstream", tls.unwrap_or("off").to_owned());
        let configs = chain.filters.iter();
        for config in configs.filter_map(|filter| filter.typed_config.as_ref()) {
            self.of_network_filter(config, provider);
        }
    }

    fn of_network_filter(&mut self, config: &NetworkFilterConfig, provider: Option<&str>) {
        let NetworkFilterConfig {
            type_url,
            http_filters,
            access_log,
            tracing,
        } = config;
        for log in access_log {
            self.of_access_log(log);
        }
        if !type_url.ends_with(".HttpConnectionManager") {
            return;
        }
        for filter in http_filters.iter().filter(|filter| !filter.disabled) {
            self.add(
                "http_filter",
                extension(filter.typed_config.as_ref(), &filter.name),
            );
        }
        match tracing {
            None => self.add("tracing.sampling", "off".to_owned()),
            Some(tracing) => self.of_tracing(tracing, provider),
        }
    }

    fn of_tracing(&mut self, tracing: &Tracing, inherited: Option<&str>) {
        let Tracing {
            random_sampling,
            overall_sampling,
            provider,
            custom_tags,
        } = tracing;
        let provider = provider.as_ref().map(|provider| provider.name.as_str());
        let Some(provider) = provider.or(inherited) else {
            return self.add("tracing.sampling", "off: no provider".to_owned());
        };
        // What is not given is 100 %.
        let percent = |part: &Option<config_dump::Percent>| part.map_or(100.0, |part| part.value);
        let sampled = percent(random_sampling).min(percent(overall_sampling));
        self.add("tracing.provider", harmless(provider));
        self.add("tracing.sampling", format!("{sampled} %"));
        if !custom_tags.is_empty() {
            self.add("tracing.custom_tags", custom_tags.len().to_string());
        }
    }

    fn of_access_log(&mut self, log: &AccessLog) {
        let AccessLog {
            name,
            filter,
            typed_config,
        } = log;
        let type_url = typed_config.as_ref().map(|config| config.type_url.as_str());
        let mut text = extension_of(type_url, name);
        if let Some(config) = typed_config {
            if !config.path.is_empty() {
                text = format!("{text} to {}", harmless(&config.path));
            }
            self.add("access_log.format", format_of(config));
        }
        if filter.is_some() {
            text.push_str(", with a filter");
        }
        self.add("access_log", text);
    }

    fn of_clusters(&mut self, clusters: &[Cluster]) {
        let mut protocols: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut with_tls = 0;
        for cluster in clusters {
            *protocols.entry(protocol_of(cluster)).or_default() += 1;
            let matches = cluster.transport_socket_matches.iter();
            let mut sockets = cluster
                .transport_socket
                .iter()
                .chain(matches.filter_map(|entry| entry.transport_socket.as_ref()));
            with_tls += u64::from(sockets.any(|socket| tls_of(socket).is_some()));
        }
        for (key, count) in protocols {
            self.add(key, count.to_string());
        }
        let all = clusters.len();
        self.add("tls.upstream", format!("{with_tls} of {all} clusters"));
    }

    /// One item for each value; how often it was met is said when that is more than once.
    fn items(self) -> Vec<ConfigurationItem> {
        let mut items = Vec::new();
        for (key, Values { met, others }) in self.by_key {
            let key = || key.to_owned();
            items.extend(met.into_iter().map(|(value, times)| ConfigurationItem {
                key: key(),
                value: match times {
                    1 => value,
                    times => format!("{value} ({times} times)"),
                },
            }));
            if others > 0 {
                items.push(ConfigurationItem {
                    key: key(),
                    value: format!("{others} others"),
                });
            }
        }
        items
    }
}

/// How statistics are chosen.
fn selection(config: &StatsConfig) -> String {
    let StatsConfig {
        stats_tags,
        stats_matcher,
    } = config;
    let count = |patterns: &Option<config_dump::Patterns>| {
        patterns.as_ref().map(|patterns| patterns.patterns.len())
    };
    let kept = match stats_matcher {
        None => "every statistic is kept".to_owned(),
        Some(matcher) if matcher.reject_all => "no statistic is kept".to_owned(),
        Some(matcher) => match (
            count(&matcher.inclusion_list),
            count(&matcher.exclusion_list),
        ) {
            (Some(included), _) => format!("kept are those of {included} patterns"),
            (None, Some(excluded)) => format!("left out are those of {excluded} patterns"),
            (None, None) => "every statistic is kept".to_owned(),
        },
    };
    match stats_tags.len() {
        0 => kept,
        tags => format!("{kept}; {tags} tags are extracted"),
    }
}

/// Name of an extension by the type of its configuration: `envoy.filters.http.lua`.
fn extension(config: Option<&Typed>, name: &str) -> String {
    let type_url = config.map(|config| config.wrapped.as_deref().unwrap_or(&config.type_url));
    extension_of(type_url, name)
}

fn extension_of(type_url: Option<&str>, name: &str) -> String {
    let by_type = type_url.and_then(|url| {
        let path = url.strip_prefix("type.googleapis.com/envoy.extensions.")?;
        let (package, _message) = path.rsplit_once('.')?;
        let (package, version) = package.rsplit_once('.')?;
        version
            .strip_prefix('v')
            .is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
            .then(|| format!("envoy.{package}"))
    });
    harmless(&by_type.unwrap_or_else(|| name.to_owned()))
}

/// Whether a socket has TLS, and of which kind.
fn tls_of(socket: &TransportSocket) -> Option<&'static str> {
    let config = socket.typed_config.as_ref()?;
    let message = config.type_url.rsplit('.').next()?;
    match message {
        "DownstreamTlsContext" if config.require_client_certificate => Some("mutual TLS"),
        "DownstreamTlsContext" | "UpstreamTlsContext" => Some("TLS"),
        "QuicDownstreamTransport" | "QuicUpstreamTransport" => Some("QUIC"),
        _ => None,
    }
}

/// How lines of an access log are made, without the text itself.
fn format_of(config: &AccessLogConfig) -> String {
    let AccessLogConfig {
        type_url: _,
        path: _,
        log_format,
        format,
        json_format,
        typed_json_format,
    } = config;
    let json = log_format
        .as_ref()
        .and_then(|format| format.json_format.as_ref());
    if let Some(fields) = json.or(json_format.as_ref()).or(typed_json_format.as_ref()) {
        return format!("JSON, {} fields", fields.len());
    }
    let text = log_format.as_ref().and_then(|format| {
        let source = format.text_format_source.as_ref();
        let inline = source.and_then(|source| source.inline_string.as_ref());
        inline.or(format.text_format.as_ref())
    });
    match text.or(format.as_ref()) {
        Some(text) => format!("text, {} operators", operators(text)),
        None => "its default".to_owned(),
    }
}

/// Operators in a format: `%NAME…%`, where `%%` is a percent sign.
fn operators(format: &str) -> usize {
    format.replace("%%", "").matches('%').count() / 2
}

/// The key under which a cluster is counted.
fn protocol_of(cluster: &Cluster) -> &'static str {
    let options = cluster.typed_extension_protocol_options.values();
    for options in options {
        if let Some(explicit) = &options.explicit_http_config {
            return if explicit.http3_protocol_options.is_some() {
                "upstream.http3"
            } else if explicit.http2_protocol_options.is_some() {
                "upstream.http2"
            } else {
                "upstream.http1"
            };
        }
        if options.auto_config.is_some() {
            return "upstream.negotiated";
        }
        if options.use_downstream_protocol_config.is_some() {
            return "upstream.as_downstream";
        }
    }
    if cluster.http2_protocol_options.is_some() {
        return "upstream.http2";
    }
    "upstream.http1"
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
