//! Configuration in two steps: as typed (flags, environment, file), then resolved and validated.

pub mod cli;
mod file;
mod folders;
mod names;
mod print;
mod resolved;
mod settings;

#[cfg(test)]
mod tests;

pub use file::mistyped_variables;
pub use resolved::{
    Allowance, ArgumentPolicy, AuthConfig, CapturePolicy, ContinuousProfile, EnvoyAdminMode,
    NetworkMode, ServeConfig, TlsConfig, resolve_serve,
};
pub use settings::ConfigError;
