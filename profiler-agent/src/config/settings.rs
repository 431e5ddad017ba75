//! Settings as text with where they came from: flags over environment over file.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Every key that `serve` knows, as written in the file. Flags have `-` for `_`; environment
/// variables are `PROFILER_` and the key in upper case.
pub(super) const KEYS: [&str; 37] = [
    "listen",
    "data_dir",
    "token_file",
    "read_only_token_file",
    "no_auth",
    "tls_cert",
    "tls_key",
    "cpu_budget",
    "profile",
    "network",
    "network_metrics_edges",
    "show_arguments",
    "allow_tls_capture",
    "allow_bodies",
    "retention_age",
    "retention_bytes",
    "max_tasks",
    "max_memory",
    "symbol_dir",
    "max_symbol_bytes",
    "debuginfod",
    "idle_rules",
    "diagnosis_rules",
    "demo_data",
    "log",
    "deny_probe",
    "bpf_stats",
    "unwind",
    "off_cpu_mode",
    "envoy_admin",
    "privileges",
    "kubernetes",
    "node_name",
    "runtime_socket",
    "confine",
    "remote_files",
    "config",
];

/// What the name of a setting begins with in the environment.
pub(super) const VARIABLE: &str = "PROFILER_";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("read config file {}: {source}", path.display())]
    ReadFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("config file {} is not valid TOML: {detail}", path.display())]
    Toml { path: PathBuf, detail: String },
    #[error("unknown key `{key}` in config file {}: {hint}", path.display())]
    UnknownKey {
        path: PathBuf,
        key: String,
        hint: String,
    },
    #[error("{origin}: {value:?} {problem}")]
    Invalid {
        origin: String,
        value: String,
        problem: String,
    },
    #[error("{0}")]
    Conflict(String),
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Flag(&'static str),
    Environment(String),
    File { key: &'static str, path: PathBuf },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => write!(f, "--{}", key.replace('_', "-")),
            Self::Environment(name) => f.write_str(name),
            Self::File { key, path } => write!(f, "`{key}` in {}", path.display()),
        }
    }
}

/// A value as typed. Repeatable settings have several.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) values: Vec<String>,
    pub(super) origin: Origin,
}

impl Setting {
    /// The value of a setting that is given once (the last one wins, as shells users expect).
    pub(super) fn text(&self) -> &str {
        self.values.last().map_or("", String::as_str)
    }

    /// An error about this value; `problem` follows the quoted value.
    pub(super) fn invalid(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError::Invalid {
            origin: self.origin.to_string(),
            value: self.text().to_owned(),
            problem: problem.into(),
        }
    }
}

/// One source, or several merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    by_key: BTreeMap<&'static str, Setting>,
}

impl Settings {
    pub(super) fn set(&mut self, key: &'static str, values: Vec<String>, origin: Origin) {
        self.by_key.insert(key, Setting { values, origin });
    }

    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.by_key.get(key)
    }

    /// Adds what `weaker` has and `self` has not.
    pub(super) fn or(mut self, weaker: Self) -> Self {
        for (key, setting) in weaker.by_key {
            self.by_key.entry(key).or_insert(setting);
        }
        self
    }

    /// The settings in the environment; empty variables count as unset.
    pub(super) fn from_environment(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut settings = Self::default();
        for key in KEYS {
            let name = format!("{VARIABLE}{}", key.to_uppercase());
            if let Some(value) = read(&name).filter(|value| !value.is_empty()) {
                let values = if key == "deny_probe" {
                    value
                        .split(',')
                        .map(|name| name.trim().to_owned())
                        .collect()
                } else {
                    vec![value]
                };
                settings.set(key, values, Origin::Environment(name));
            }
        }
        // What manifests call it that put spec.nodeName there.
        if settings.get("node_name").is_none()
            && let Some(node) = read("NODE_NAME").filter(|node| !node.is_empty())
        {
            let origin = Origin::Environment("NODE_NAME".to_owned());
            settings.set("node_name", vec![node], origin);
        }
        settings
    }
}
