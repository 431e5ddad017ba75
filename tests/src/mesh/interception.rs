//! Istio's iptables rules: all TCP of a pod passes its sidecar.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{SIDECAR_USER, TELEMETRY_PORT, ZIPKIN_PORT};
use crate::netns::{self, Netns};

pub const OUTBOUND_PORT: u16 = 15001;
pub const INBOUND_PORT: u16 = 15006;
/// Source address of what a sidecar sends to its own app, so that it is not intercepted again.
pub const PASSTHROUGH_SOURCE: &str = "127.0.0.6";

/// Installs the rules inside the pod.
pub fn install(netns: &Netns) -> Result<()> {
    install_at(&netns.path())
}

/// The same for an existing pod, by the file of its network namespace.
pub fn install_at(namespace: &Path) -> Result<()> {
    netns::within(namespace, || {
        for rule in rules() {
            let mut command = Command::new("iptables");
            command
                .args(["-w", "-t", "nat"])
                .args(rule.split_whitespace());
            let output = command
                .output()
                .context("run iptables (Debian package iptables)")?;
            ensure!(
                output.status.success(),
                "iptables {rule}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    })
}

fn rules() -> Vec<String> {
    let sidecar = SIDECAR_USER;
    vec![
        "-N ISTIO_IN_REDIRECT".into(),
        format!("-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports {INBOUND_PORT}"),
        "-N ISTIO_REDIRECT".into(),
        format!("-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports {OUTBOUND_PORT}"),
        "-N ISTIO_INBOUND".into(),
        // The sinks share the server's pod but are not part of the mesh.
        format!("-A ISTIO_INBOUND -p tcp --dport {ZIPKIN_PORT} -j RETURN"),
        format!("-A ISTIO_INBOUND -p tcp --dport {TELEMETRY_PORT} -j RETURN"),
        "-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT".into(),
        "-A PREROUTING -p tcp -j ISTIO_INBOUND".into(),
        "-N ISTIO_OUTPUT".into(),
        format!("-A ISTIO_OUTPUT -p tcp --dport {ZIPKIN_PORT} -j RETURN"),
        format!("-A ISTIO_OUTPUT -p tcp --dport {TELEMETRY_PORT} -j RETURN"),
        format!("-A ISTIO_OUTPUT -s {PASSTHROUGH_SOURCE}/32 -o lo -j RETURN"),
        format!(
            "-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -m owner --uid-owner {sidecar} -j ISTIO_IN_REDIRECT"
        ),
        format!("-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner {sidecar} -j RETURN"),
        format!("-A ISTIO_OUTPUT -m owner --uid-owner {sidecar} -j RETURN"),
        format!("-A ISTIO_OUTPUT -m owner --gid-owner {sidecar} -j RETURN"),
        "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN".into(),
        "-A ISTIO_OUTPUT -j ISTIO_REDIRECT".into(),
        "-A OUTPUT -p tcp -j ISTIO_OUTPUT".into(),
    ]
}
