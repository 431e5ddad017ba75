//! Settings as text with where they came from: flags over environment over file.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::LazyLock};

use clap::{Args as _, Command};
use serde_json::Value;

use super::cli::ServeArgs;

/// Every key that `serve` knows, as written in the file: the flags, which are declared in `cli`, and the log filter. Flags
/// have `-` for `_`; environment variables are `PROFILER_` and the key in upper case.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let command = ServeArgs::augment_args(Command::new("serve"));
        let flags = command.get_arguments().map(|flag| flag.get_id().as_str());
        flags
            .filter(|flag| *flag != "print_config")
            .chain(["log"])
            .map(str::to_owned)
            .collect()
    });
    KEYS.iter().map(String::as_str)
}

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

    /// The settings among the flags; `log` is the global one.
    pub(super) fn from_flags(args: &ServeArgs, log: Option<&str>) -> Result<Self, ConfigError> {
        let mut given = serde_json::to_value(args)
            .map_err(|error| ConfigError::Conflict(format!("read the flags: {error}")))?;
        given["log"] = log.into();
        let mut settings = Self::default();
        for key in keys() {
            let values = match &given[key] {
                Value::String(text) => vec![text.clone()],
                Value::Bool(true) => vec!["true".to_owned()],
                Value::Array(items) => items
                    .iter()
                    .filter_map(|item| item.as_str().map(str::to_owned))
                    .collect(),
                _ => Vec::new(),
            };
            if !values.is_empty() {
                settings.set(key, values, Origin::Flag(key));
            }
        }
        Ok(settings)
    }

    /// The settings in the environment; empty variables count as unset.
    pub(super) fn from_environment(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut settings = Self::default();
        for key in keys() {
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
