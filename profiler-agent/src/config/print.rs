//! The effective configuration as TOML, for `--print-config`.

use std::path::Path;

use profiler_server_tls::{MutualTlsConfig, TlsConfig};

use super::{
    AccessLogsConfig, Allowance, ArgumentPolicy, AuthConfig, ContinuousProfile, NetworkMode,
    OverviewMode, ServeConfig,
};

impl ServeConfig {
    /// The effective configuration as a file that `--config` accepts. It names files and holds no
    /// secret itself: the token and the key stay in theirs.
    pub fn to_toml(&self) -> String {
        let lines: Vec<_> = self
            .lines()
            .into_iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        lines.join("\n") + "\n"
    }

    /// The effective configuration for people who may not know its secrets: names of settings and values
    /// in TOML. The name, the password and the query of a server's URL are hidden.
    pub fn masked(&self) -> Vec<(&'static str, String)> {
        let masked = |key, value: toml::Value| match (key, value.as_str()) {
            ("debuginfod", Some(url)) => masked_url(url),
            _ => value.to_string(),
        };
        self.lines()
            .into_iter()
            .map(|(key, value)| (key, masked(key, value)))
            .collect()
    }

    fn lines(&self) -> Vec<(&'static str, toml::Value)> {
        let Self {
            listen,
            data_dir,
            auth,
            read_only_token,
            tls,
            access_logs,
            cpu_budget_percent,
            profile,
            network,
            overview,
            network_metrics_edges,
            arguments,
            capture,
            retention,
            max_tasks,
            max_memory,
            symbol_dir,
            max_symbol_bytes,
            debuginfod,
            idle_rules,
            diagnosis_rules,
            demo_data,
            log,
            deny_probes,
            bpf_stats,
            unwind,
            off_cpu_mode,
            envoy_admin,
            privileges,
            names,
            confine,
            remote_files,
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
        if let Some(path) = read_only_token {
            lines.push(("read_only_token_file", text(path)));
        }
        if let Some(TlsConfig { cert, key }) = tls {
            lines.push(("tls_cert", text(cert)));
            lines.push(("tls_key", text(key)));
        }
        if let Some(AccessLogsConfig { listen, tls }) = access_logs {
            lines.push(("access_logs", listen.to_string().into()));
            if let Some(MutualTlsConfig { server, client_ca }) = tls {
                lines.push(("access_logs_tls_cert", text(&server.cert)));
                lines.push(("access_logs_tls_key", text(&server.key)));
                lines.push(("access_logs_tls_client_ca", text(client_ca)));
            } else if !listen.ip().is_loopback() {
                lines.push(("access_logs_plaintext", true.into()));
            }
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
        let overview = match overview {
            OverviewMode::On => "on",
            OverviewMode::Off => "off",
        };
        let age = humantime::format_duration(retention.age).to_string();
        lines.extend([
            ("profile", profile.into()),
            ("network", network.into()),
            ("overview", overview.into()),
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
            (
                "allow_tls_capture",
                (capture.tls == Allowance::Allowed).into(),
            ),
            (
                "allow_bodies",
                (capture.bodies == Allowance::Allowed).into(),
            ),
            ("retention_age", age.into()),
            (
                "retention_bytes",
                i64::try_from(retention.bytes).unwrap_or(i64::MAX).into(),
            ),
            (
                "max_tasks",
                i64::try_from(*max_tasks).unwrap_or(i64::MAX).into(),
            ),
            (
                "max_memory",
                max_memory.bytes.map_or_else(
                    || "none".into(),
                    |bytes| i64::try_from(bytes).unwrap_or(i64::MAX).into(),
                ),
            ),
            (
                "max_symbol_bytes",
                i64::try_from(*max_symbol_bytes).unwrap_or(i64::MAX).into(),
            ),
            ("log", log.clone().into()),
            ("unwind", unwind.name().into()),
            ("off_cpu_mode", off_cpu_mode.name().into()),
            ("envoy_admin", envoy_admin.name().into()),
            ("privileges", privileges.name().into()),
            ("kubernetes", names.kubernetes.to_string().into()),
            ("runtime_socket", names.runtime.to_string().into()),
            ("confine", confine.name().into()),
            ("remote_files", remote_files.name().into()),
        ]);
        if let Some(node) = &names.node_name {
            lines.push(("node_name", node.clone().into()));
        }
        if let Some(folder) = symbol_dir {
            lines.push(("symbol_dir", text(folder)));
        }
        if let Some(server) = debuginfod {
            lines.push(("debuginfod", server.to_string().into()));
        }
        if let Some(file) = idle_rules {
            lines.push(("idle_rules", text(file)));
        }
        if let Some(file) = diagnosis_rules {
            lines.push(("diagnosis_rules", text(file)));
        }
        if !deny_probes.is_empty() {
            lines.push(("deny_probe", deny_probes.clone().into()));
        }
        if *bpf_stats {
            lines.push(("bpf_stats", true.into()));
        }
        lines
    }
}

/// A URL without what may be secret in it; what is listed behind it stays.
fn masked_url(url: &str) -> String {
    const MASK: &str = "***";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, query) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    let mut text = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    match host.rsplit_once('@') {
        Some((_secret, host)) => {
            text.push_str(MASK);
            text.push('@');
            text.push_str(host);
        }
        None => text.push_str(host),
    }
    if !path.is_empty() {
        text.push('/');
        text.push_str(path);
    }
    if !query.is_empty() {
        text.push('?');
        text.push_str(MASK);
    }
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::masked_url;

    #[test]
    fn secrets_of_urls_are_hidden() {
        let check =
            |url: &str, expected: &str| assert_eq!(masked_url(url), format!("\"{expected}\""));
        check("https://debug.example", "https://debug.example");
        check(
            "https://debug.example:8002/a/b",
            "https://debug.example:8002/a/b",
        );
        check(
            "https://user:pass@debug.example/a",
            "https://***@debug.example/a",
        );
        check(
            "https://u:p@ss@debug.example/?key=secret",
            "https://***@debug.example?***",
        );
        check("user:pass@host", "***@host");
    }
}
