//! Settings about who may ask: the tokens.

use std::path::{Path, PathBuf};

use super::{
    resolved::{parse_or, path, switch},
    settings::{ConfigError, Settings},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthConfig {
    /// No token; only ever on loopback.
    None,
    /// A fresh token at each start, kept in the data directory.
    Fresh,
    /// The token in this file, which is made when it is missing.
    File(PathBuf),
}

impl AuthConfig {
    /// Where the token is.
    pub fn token_file(&self, data_dir: &Path) -> Option<PathBuf> {
        match self {
            Self::None => None,
            Self::Fresh => Some(data_dir.join(TOKEN_FILE)),
            Self::File(path) => Some(path.clone()),
        }
    }
}

/// File of a fresh token in the data directory.
pub const TOKEN_FILE: &str = "token";

pub(super) fn auth(settings: &Settings) -> Result<AuthConfig, ConfigError> {
    let no_auth = parse_or(settings, "no_auth", false, switch)?;
    if no_auth {
        let contradicts = ["token_file", "read_only_token_file"];
        let given = contradicts.iter().find_map(|key| settings.get(key));
        return match given {
            Some(setting) => Err(ConfigError::Conflict(format!(
                "--no-auth and {} contradict each other: give one of them",
                setting.origin
            ))),
            None => Ok(AuthConfig::None),
        };
    }
    match settings.get("token_file") {
        Some(setting) => Ok(AuthConfig::File(path(setting)?)),
        None => Ok(AuthConfig::Fresh),
    }
}
