//! Configuration in two steps: as typed (flags, environment, file), then resolved and validated.

mod access;
mod access_logs;
pub mod cli;
mod file;
mod folders;
mod names;
mod print;
mod resolved;
mod settings;

#[cfg(test)]
mod tests;

pub use access::{AuthConfig, TOKEN_FILE};
pub use access_logs::AccessLogsConfig;
pub use file::mistyped_variables;
pub use resolved::{
    Allowance, ArgumentPolicy, CapturePolicy, ContinuousProfile, EnvoyAdminMode, NetworkMode,
    OverviewMode, ServeConfig, resolve_serve,
};
pub use settings::ConfigError;
