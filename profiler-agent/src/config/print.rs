//! The effective configuration as TOML, for `--print-config`.

use std::path::Path;

use super::{ArgumentPolicy, AuthConfig, ContinuousProfile, NetworkMode, ServeConfig, TlsConfig};

impl ServeConfig {
    /// The effective configuration as a file that `--config` accepts. It names files and holds no
    /// secret itself: the token and the key stay in theirs.
    pub fn to_toml(&self) -> String {
        let Self {
            listen,
            data_dir,
            auth,
            tls,
            cpu_budget_percent,
            profile,
            network,
            network_metrics_edges,
            arguments,
            retention_age,
            retention_bytes,
            max_tasks,
            symbol_dir,
            max_symbol_bytes,
            debuginfod,
            idle_rules,
            demo_data,
            log,
            deny_probes,
            bpf_stats,
            unwind,
            off_cpu_mode,
        } = self;
        let text = |path: &Path| toml::Value::from(path.to_string_lossy().into_owned());
        let mut lines = vec![("listen", toml::Value::from(listen.to_string()))];
        if *demo_data {
            lines.push(("demo_data", true.into()));
        } else {
            lines.push(("data_dir", text(data_dir)));
        }
        match auth {
            AuthConfig::None => lines.push(("no_auth", true.into())),
            AuthConfig::Fresh => lines.push(("no_auth", false.into())),
            AuthConfig::File(path) => lines.push(("token_file", text(path))),
        }
        if let Some(TlsConfig { cert, key }) = tls {
            lines.push(("tls_cert", text(cert)));
            lines.push(("tls_key", text(key)));
        }
        if let Some(percent) = cpu_budget_percent {
            lines.push(("cpu_budget", (*percent).into()));
        }
        let profile = match profile {
            ContinuousProfile::Always => "always",
            ContinuousProfile::Off => "off",
        };
        let network = match network {
            NetworkMode::Always => "always",
            NetworkMode::Tasks => "tasks",
        };
        let age = humantime::format_duration(*retention_age).to_string();
        lines.extend([
            ("profile", profile.into()),
            ("network", network.into()),
            (
                "network_metrics_edges",
                i64::try_from(*network_metrics_edges)
                    .unwrap_or(i64::MAX)
                    .into(),
            ),
            (
                "show_arguments",
                (*arguments == ArgumentPolicy::Shown).into(),
            ),
            ("retention_age", age.into()),
            (
                "retention_bytes",
                i64::try_from(*retention_bytes).unwrap_or(i64::MAX).into(),
            ),
            (
                "max_tasks",
                i64::try_from(*max_tasks).unwrap_or(i64::MAX).into(),
            ),
            (
                "max_symbol_bytes",
                i64::try_from(*max_symbol_bytes).unwrap_or(i64::MAX).into(),
            ),
            ("log", log.clone().into()),
            ("unwind", unwind.name().into()),
            ("off_cpu_mode", off_cpu_mode.name().into()),
        ]);
        if let Some(folder) = symbol_dir {
            lines.push(("symbol_dir", text(folder)));
        }
        if let Some(server) = debuginfod {
            lines.push(("debuginfod", server.clone().into()));
        }
        if let Some(file) = idle_rules {
            lines.push(("idle_rules", text(file)));
        }
        if !deny_probes.is_empty() {
            lines.push(("deny_probe", deny_probes.clone().into()));
        }
        if *bpf_stats {
            lines.push(("bpf_stats", true.into()));
        }
        let lines: Vec<_> = lines
            .into_iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        lines.join("\n") + "\n"
    }
}
