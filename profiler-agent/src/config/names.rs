//! Settings about where names come from: of containers, and of functions in files that others serve.

use profiler_host::name_sources::{KubernetesMode, RuntimeMode, SourceConfig};
use profiler_image::remote_mounts::RemoteFiles;

use super::{
    cli::pods::{kubernetes, runtime_sockets},
    resolved::parse_or,
    settings::{ConfigError, Setting, Settings},
};

pub(super) fn names(settings: &Settings) -> Result<SourceConfig, ConfigError> {
    Ok(SourceConfig {
        kubernetes: parse_or(
            settings,
            "kubernetes",
            KubernetesMode::default(),
            |setting| kubernetes(setting.text()).map_err(|problem| setting.invalid(problem)),
        )?,
        runtime: parse_or(
            settings,
            "runtime_socket",
            RuntimeMode::default(),
            |setting| runtime_sockets(setting.text()).map_err(|problem| setting.invalid(problem)),
        )?,
        node_name: settings
            .get("node_name")
            .map(|setting| setting.text().to_owned()),
    })
}

pub(super) fn remote_files(setting: &Setting) -> Result<RemoteFiles, ConfigError> {
    setting
        .text()
        .parse()
        .map_err(|problem: &str| setting.invalid(problem))
}
