//! What a program is in a pod, by its name.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Programs of a pod that are not its own work, known by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// It stands between an application and the network.
    Proxy,
    /// It starts a proxy, feeds it, or prepares its pod.
    ProxyAgent,
    /// It holds a pod or a container together.
    Keeper,
}

const PROXIES: [&str; 6] = [
    "envoy",
    "cilium-envoy",
    "linkerd2-proxy",
    "linkerd-proxy",
    "haproxy",
    "mosn",
];
const PROXY_AGENTS: [&str; 5] = [
    "pilot-agent",
    "istio-agent",
    "consul-dataplane",
    "bootstrap-agent",
    "linkerd-network-validator",
];
const KEEPERS: [&str; 6] = [
    "pause",
    "tini",
    "dumb-init",
    "catatonit",
    "docker-init",
    "conmon",
];

/// The most bytes of a name that the kernel keeps of a process.
pub const COMM_BYTES: usize = 15;

impl ProgramKind {
    /// Of the name of a program's file, or of what a process calls itself, which the kernel may have cut. `None` for
    /// every other program.
    pub fn of(name: &str) -> Option<Self> {
        let is_one_of = |names: &[&str]| {
            let is_cut = |known: &&str| name.len() == COMM_BYTES && known.starts_with(name);
            names.iter().any(|known| *known == name || is_cut(known))
        };
        if is_one_of(&PROXIES) {
            Some(Self::Proxy)
        } else if is_one_of(&PROXY_AGENTS) {
            Some(Self::ProxyAgent)
        } else if is_one_of(&KEEPERS) {
            Some(Self::Keeper)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_name_also_when_it_was_cut() {
        for (name, expected) in [
            ("envoy", Some(ProgramKind::Proxy)),
            ("pilot-agent", Some(ProgramKind::ProxyAgent)),
            ("bootstrap-agent", Some(ProgramKind::ProxyAgent)),
            ("consul-dataplan", Some(ProgramKind::ProxyAgent)),
            ("linkerd-network", Some(ProgramKind::ProxyAgent)),
            ("pause", Some(ProgramKind::Keeper)),
            ("linkerd-networ", None),
            ("envoy2", None),
            ("", None),
        ] {
            assert_eq!(ProgramKind::of(name), expected, "{name}");
        }
    }
}
