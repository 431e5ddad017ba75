//! `/server_info`: which Envoy it is, and with what it was started.

use serde::Deserialize;

use super::{EnvoyAdminError, client::Client, text::harmless};
use crate::foreign_answers::json;

const PATH: &str = "/server_info";
/// Envoy 1.40 answers 120 kB, most of it names of extensions.
const LIMIT: usize = 4 << 20;
/// Parts of a version: commit, version, state of the tree, kind of build, TLS library.
const VERSION_PARTS: usize = 5;

/// The facts that are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerInfo {
    pub(super) version: String,
    /// Worker threads.
    pub(super) concurrency: Option<u32>,
    pub(super) log_level: String,
    pub(super) file_flush_interval: String,
}

#[derive(Deserialize)]
struct Answer {
    version: String,
    state: String,
    #[serde(rename = "hot_restart_version")]
    _hot_restart_version: String,
    command_line_options: Options,
}

#[derive(Deserialize)]
struct Options {
    concurrency: Option<u32>,
    #[serde(default)]
    log_level: String,
    #[serde(default)]
    file_flush_interval: String,
}

impl ServerInfo {
    /// Fails when the answer is not one that Envoy gives.
    pub(super) fn ask(client: &Client) -> Result<Self, EnvoyAdminError> {
        let body = client
            .get(PATH, LIMIT)
            .map_err(|source| EnvoyAdminError::Request { path: PATH, source })?;
        Self::parse(&body).map_err(|detail| EnvoyAdminError::Answer { path: PATH, detail })
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let answer: Answer = json(body).map_err(|error| harmless(&error.to_string()))?;
        let Answer {
            version,
            state,
            _hot_restart_version: _,
            command_line_options,
        } = answer;
        let known = ["LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"];
        let parts: Vec<&str> = version.split('/').collect();
        if parts.len() != VERSION_PARTS || !known.contains(&state.as_str()) {
            return Err("it has no version and state of Envoy's form".to_owned());
        }
        Ok(Self {
            version: harmless(parts[1]),
            concurrency: command_line_options.concurrency,
            log_level: harmless(&command_line_options.log_level),
            file_flush_interval: harmless(&command_line_options.file_flush_interval),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVOY: &str = r#"{"version":"9e55809/1.40.0/Clean/RELEASE/BoringSSL","state":"LIVE",
        "hot_restart_version":"11.104","uptime_current_epoch":"3s","node":{"id":"secret"},
        "command_line_options":{"concurrency":2,"log_level":"warning","file_flush_interval":"10s","mode":"Serve"}}"#;

    #[test]
    fn an_envoy_is_known_by_its_answer() {
        let info = ServerInfo::parse(ENVOY.as_bytes()).unwrap();
        assert_eq!(info.version, "1.40.0");
        assert_eq!(info.concurrency, Some(2));
        assert_eq!(
            (info.log_level.as_str(), info.file_flush_interval.as_str()),
            ("warning", "10s")
        );
    }

    #[test]
    fn other_programs_are_not_taken_for_one() {
        let without = |part: &str| ENVOY.replace(part, "");
        for text in [
            without("/Clean"),
            without(r#""state":"LIVE","#),
            without(r#""hot_restart_version":"11.104","#),
            ENVOY.replace("LIVE", "UP"),
            ENVOY.replace("\"command_line_options\"", "\"options\""),
            "{}".to_owned(),
            "<html>".to_owned(),
            String::new(),
        ] {
            assert!(ServerInfo::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
