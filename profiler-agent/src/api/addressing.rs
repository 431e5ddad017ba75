//! Whether a request names this agent: the headers Host, Origin and Sec-Fetch-Site, each given once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, Uri};
use profiler_host::sockets::addresses_here;
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use tracing::warn;

use super::{auth::Token, error::ApiError};

/// How this agent is addressed, for the checks of Host and Origin.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The address in force, with the port that was taken for port 0.
    pub address: SocketAddr,
    pub tls: bool,
}

impl Origin {
    pub(super) fn scheme(self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// The URL for people on this machine, with the token in its fragment, which browsers never send.
    pub fn url(self, token: Option<&Token>) -> String {
        let fragment = token
            .map(|token| format!("#token={}", token.reveal()))
            .unwrap_or_default();
        let mut address = self.address;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            IpAddr::V4(_) | IpAddr::V6(_) => {}
        }
        format!("{}://{address}/{fragment}", self.scheme())
    }

    /// Whether it listens on every address of the machine.
    pub fn is_everywhere(self) -> bool {
        self.address.ip().is_unspecified()
    }
}

/// By which further addresses the agent is reached.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    addresses: Vec<IpAddr>,
    certificate: Option<CertificateDer<'static>>,
}

impl Reached {
    /// Where the agent listens on all addresses: those that this machine has now. With a certificate: those that it names, as
    /// behind a Service of Kubernetes.
    pub fn new(listen: SocketAddr, certificate: Option<CertificateDer<'static>>) -> Self {
        let addresses = if listen.ip().is_unspecified() {
            addresses_here().unwrap_or_else(|error| {
                warn!(%error, "addresses of this machine are unknown: loopback and those of the certificate are served");
                Vec::new()
            })
        } else {
            Vec::new()
        };
        Self {
            addresses,
            certificate,
        }
    }

    fn names(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address) || certifies(self.certificate.as_ref(), address)
    }
}

/// The only value of a header: which of several counts would be our guess and a proxy's.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a HeaderValue>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(ApiError::RepeatedHeader { name });
    }
    Ok(first)
}

/// The Host header, or the host of an absolute target; `None` without either, and where they differ.
pub(super) fn host_of(headers: &HeaderMap, uri: &Uri) -> Result<Option<String>, ApiError> {
    let header = single(headers, "host")?
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let authority = uri.authority().map(ToString::to_string);
    Ok(match (header, authority) {
        (Some(header), Some(authority)) if header != authority => None,
        (header, authority) => header.or(authority),
    })
}

/// Whether `host` is an address of ours with the port we listen on. Any DNS name may be pointed at us: of
/// names `localhost` alone is taken.
pub(super) fn names_us(origin: Origin, reached: &Reached, host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The colon of a bare IPv6 address is not one before a port.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let own_port = origin.address.port();
    let is_own_port = match port {
        // As we would write it: `+80` and `080` are numbers as well.
        Some(port) => port == own_port.to_string(),
        None => own_port == if origin.tls { 443 } else { 80 },
    };
    is_own_port
        && match address_in(name) {
            Some(address) => is_own_address(origin, address) || reached.names(address),
            None => {
                name.eq_ignore_ascii_case("localhost")
                    && (is_own_address(origin, Ipv4Addr::LOCALHOST.into())
                        || is_own_address(origin, Ipv6Addr::LOCALHOST.into()))
            }
        }
}

/// The IP address that a host is, as URLs write it.
fn address_in(name: &str) -> Option<IpAddr> {
    let inner = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Whether we listen on this address according to the listen address. All of 127.0.0.0/8 is this machine, and
/// where a port is forwarded from.
fn is_own_address(origin: Origin, address: IpAddr) -> bool {
    let listen = origin.address.ip();
    if address == listen {
        return !listen.is_unspecified();
    }
    let is_reached = match (listen, address) {
        (IpAddr::V4(listen), IpAddr::V4(_)) => listen.is_loopback() || listen.is_unspecified(),
        // A socket for all of IPv6 takes IPv4 as well.
        (IpAddr::V6(listen), _) => listen.is_unspecified(),
        (IpAddr::V4(_), IpAddr::V6(_)) => false,
    };
    is_reached && address.is_loopback()
}

/// Whether the agent's certificate is for this address.
fn certifies(certificate: Option<&CertificateDer<'_>>, address: IpAddr) -> bool {
    let Some(certificate) = certificate else {
        return false;
    };
    let name = ServerName::IpAddress(address.into());
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, tls: bool, host: &str, expected: bool) {
        let origin = Origin {
            address: listen.parse().unwrap(),
            tls,
        };
        let reached = Reached::default();
        assert_eq!(
            names_us(origin, &reached, host),
            expected,
            "{listen} {host}"
        );
    }

    #[test]
    fn all_addresses_of_the_machine_name_an_agent_that_listens_on_all() {
        let own = "10.1.2.3".parse().unwrap();
        let reached = Reached {
            addresses: vec![own],
            certificate: None,
        };
        let origin = Origin {
            address: "0.0.0.0:7117".parse().unwrap(),
            tls: true,
        };
        assert!(names_us(origin, &reached, "10.1.2.3:7117"));
        assert!(!names_us(origin, &reached, "10.1.2.4:7117"));
        let loopback = |listen: &str| {
            let reached = Reached::new(listen.parse().unwrap(), None);
            reached.names(Ipv4Addr::LOCALHOST.into())
        };
        assert!(loopback("0.0.0.0:7117"));
        assert!(!loopback("10.1.2.3:7117"));
    }

    #[test]
    fn hosts_that_name_us() {
        for (listen, tls, host) in [
            ("127.0.0.1:7117", false, "127.0.0.1:7117"),
            ("127.0.0.1:7117", false, "127.7.11.7:7117"),
            ("127.0.0.1:7117", false, "LocalHost:7117"),
            ("[::1]:7117", false, "[::1]:7117"),
            ("[::1]:7117", false, "localhost:7117"),
            ("10.1.2.3:443", true, "10.1.2.3"),
            ("0.0.0.0:7117", true, "127.0.0.1:7117"),
            ("[::]:7117", true, "[::1]:7117"),
            ("[::]:7117", true, "127.0.0.1:7117"),
            ("127.0.0.1:80", false, "localhost"),
        ] {
            check(listen, tls, host, true);
        }
    }

    #[test]
    fn hosts_that_do_not() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7118",
            "127.0.0.1:+7117",
            "127.0.0.1:07117",
            "127.0.0.1:",
            "127.1:7117",
            "8.8.8.8:7117",
            "0.0.0.0:7117",
            "[::1]:7117",
            "[::ffff:127.0.0.1]:7117",
            "evil.example:7117",
            "localhost.evil.example:7117",
            "127.0.0.1.evil.example:7117",
            "localhost:7117@evil.example",
            "::1:7117",
            "[::1]",
            "[evil.example]:7117",
            "[127.0.0.1]:7117",
            "localhost:",
            ":7117",
            "",
        ] {
            check("127.0.0.1:7117", false, host, false);
        }
        for (listen, host) in [
            ("[::1]:7117", "127.0.0.1:7117"),
            ("10.1.2.3:7117", "127.0.0.1:7117"),
            ("10.1.2.3:7117", "localhost:7117"),
            ("0.0.0.0:7117", "0.0.0.0:7117"),
            ("0.0.0.0:7117", "10.1.2.3:7117"),
            ("0.0.0.0:7117", "[::1]:7117"),
            ("[::]:7117", "[::]:7117"),
        ] {
            check(listen, true, host, false);
        }
    }
}
