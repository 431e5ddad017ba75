//! Which side of a call an entry describes, from the name of its upstream cluster.

/// The side of a call at which the proxy was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// In front of the service that was called.
    Server,
    /// Beside the caller.
    Client,
    #[default]
    Unknown,
}

/// The kind of an upstream cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClusterKind {
    /// `inbound|port||`: the service of this sidecar.
    Inbound,
    /// `outbound|port|subset|host`: another service.
    Outbound,
    /// To the original destination, outside of the known services: `PassthroughCluster`, and `InboundPassthroughCluster` with
    /// its older names.
    Passthrough,
    /// `BlackHoleCluster`: traffic that is not allowed, in either direction.
    BlackHole,
    /// Names of other control planes and of static configurations.
    #[default]
    Other,
}

/// The side of a call, and what the cluster's name says of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Role<'a> {
    pub side: Side,
    pub kind: ClusterKind,
    /// The port of the service.
    pub port: Option<u16>,
    /// The subset of a `DestinationRule`.
    pub subset: Option<&'a str>,
    /// The host of the service.
    pub host: Option<&'a str>,
}

impl<'a> Role<'a> {
    /// Parses the name of a cluster as Istio generates it. Ignores a trailing `;`, which Istio adds to names in metrics.
    pub fn of(cluster: &'a str) -> Self {
        let cluster = cluster.strip_suffix(';').unwrap_or(cluster);
        let plain = |side, kind| Self {
            side,
            kind,
            ..Self::default()
        };
        match cluster {
            "PassthroughCluster" => return plain(Side::Client, ClusterKind::Passthrough),
            "InboundPassthroughCluster"
            | "InboundPassthroughClusterIpv4"
            | "InboundPassthroughClusterIpv6" => {
                return plain(Side::Server, ClusterKind::Passthrough);
            }
            "BlackHoleCluster" => return plain(Side::Unknown, ClusterKind::BlackHole),
            _ => {}
        }
        let mut parts = cluster.splitn(4, '|');
        let (side, kind) = match parts.next() {
            Some("inbound") => (Side::Server, ClusterKind::Inbound),
            Some("outbound") => (Side::Client, ClusterKind::Outbound),
            Some(_) | None => return Self::default(),
        };
        // With fewer parts, another control plane uses the same first word.
        let (Some(port), Some(subset), Some(host)) = (parts.next(), parts.next(), parts.next())
        else {
            return Self::default();
        };
        let text = |part: &'a str| (!part.is_empty()).then_some(part);
        Self {
            side,
            kind,
            port: port.parse().ok(),
            subset: text(subset),
            host: text(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterKind, Role, Side};

    fn check(cluster: &str, side: Side, kind: ClusterKind, parts: (Option<u16>, &str, &str)) {
        let role = Role::of(cluster);
        let (port, subset, host) = parts;
        assert_eq!(
            (role.side, role.kind, role.port),
            (side, kind, port),
            "{cluster}"
        );
        assert_eq!(role.subset.unwrap_or_default(), subset, "{cluster}");
        assert_eq!(role.host.unwrap_or_default(), host, "{cluster}");
        assert_ne!(role.subset, Some(""), "{cluster}");
    }

    #[test]
    fn names_of_istio() {
        use ClusterKind::{BlackHole, Inbound, Outbound, Passthrough};
        check(
            "inbound|9080||",
            Side::Server,
            Inbound,
            (Some(9080), "", ""),
        );
        check(
            "outbound|9080|v1|reviews.default.svc.cluster.local",
            Side::Client,
            Outbound,
            (Some(9080), "v1", "reviews.default.svc.cluster.local"),
        );
        check(
            "outbound|80||api.example.com;",
            Side::Client,
            Outbound,
            (Some(80), "", "api.example.com"),
        );
        let none = (None, "", "");
        check("PassthroughCluster", Side::Client, Passthrough, none);
        check("InboundPassthroughCluster", Side::Server, Passthrough, none);
        check(
            "InboundPassthroughClusterIpv4",
            Side::Server,
            Passthrough,
            none,
        );
        check("BlackHoleCluster", Side::Unknown, BlackHole, none);
        check(
            "outbound|port|v1|host",
            Side::Client,
            Outbound,
            (None, "v1", "host"),
        );
    }

    #[test]
    fn other_names_have_no_role() {
        let none = (None, "", "");
        for cluster in [
            "",
            "web",
            "inbound",
            "inbound|80",
            "outbound|80|v1",
            "inbound-vip|80|http|a",
            ";",
        ] {
            check(cluster, Side::Unknown, ClusterKind::Other, none);
        }
    }
}
