//! The debuginfod server of `--debuginfod URL[,HOST..]`, and where its redirects may lead.
//!
//! A redirect is an address that a server chooses. It is followed to the server itself and to the hosts that the user
//! has listed, so that no server makes the agent ask a service of this host or of its network.

use std::{
    fmt,
    net::{IpAddr, ToSocketAddrs as _},
    str::FromStr,
};

use http::{Uri, uri::Scheme};

/// Longest host with its port; names end at 253 characters.
const MAX_HOST: usize = 300;

/// Why a redirect is not followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RedirectError {
    #[error("it redirects without an address that can be read")]
    Unreadable,
    #[error(
        "it redirects to {0}, where no redirect may lead: to follow it, write --debuginfod URL,{0}"
    )]
    Unlisted(String),
    #[error("it redirects from https to http://{0}, which is not followed")]
    Unencrypted(String),
    #[error(
        "it redirects to {host}, which is {address} here, and is not followed: let the server redirect to {address} itself, and list that"
    )]
    Local { host: String, address: IpAddr },
    #[error("it redirects more than {0} times")]
    TooMany(usize),
}

/// A host, and the port where it is not that of the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    /// In lower case; an IPv6 address in brackets.
    name: String,
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = format!("http://{text}/").parse().ok()?;
        let host = Self::of(&uri)?;
        let is_alone = host.to_string() == text.to_lowercase();
        (is_alone && !host.name.is_empty()).then_some(host)
    }

    fn of(uri: &Uri) -> Option<Self> {
        Some(Self {
            name: uri.host()?.to_lowercase(),
            port: uri.port_u16(),
        })
    }

    /// An address, or the name that always stands for this host.
    fn is_literal(&self) -> bool {
        self.name == "localhost" || self.name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A server, and the other hosts to which it may redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebuginfodServer {
    url: String,
    redirects: Vec<Host>,
}

impl FromStr for DebuginfodServer {
    /// What is wrong, behind the value.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let url = parts.next().unwrap_or_default();
        let is_server = url.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
                && uri.query().is_none()
        });
        if !is_server {
            return Err(
                "is not a server: write one URL, for example https://debuginfod.debian.net",
            );
        }
        let redirects = parts.map(|part| Host::parse(part.trim()));
        let redirects = redirects.collect::<Option<_>>().ok_or(
            "does not list hosts behind the URL: write HOST or HOST:PORT, for example \
             https://debuginfod.debian.net,objects.example.org",
        )?;
        Ok(Self {
            url: url.to_owned(),
            redirects,
        })
    }
}

impl fmt::Display for DebuginfodServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)?;
        self.redirects
            .iter()
            .try_for_each(|host| write!(f, ",{host}"))
    }
}

impl DebuginfodServer {
    /// Where the server has the debug file of a build-id.
    pub(super) fn debug_file(&self, build_id: &str) -> String {
        let server = self.url.trim_end_matches('/');
        format!("{server}/buildid/{build_id}/debuginfo")
    }

    /// The address that `location`, the answer of `from`, leads to.
    pub(super) fn redirect(&self, from: &str, location: &str) -> Result<String, RedirectError> {
        self.checked(from, location, local_address)
    }

    fn checked(
        &self,
        from: &str,
        location: &str,
        local_address: fn(&str, u16) -> Option<IpAddr>,
    ) -> Result<String, RedirectError> {
        let from: Uri = from.parse().map_err(|_| RedirectError::Unreadable)?;
        let to = resolve(&from, location).ok_or(RedirectError::Unreadable)?;
        let (Some(host), Some(port)) = (Host::of(&to), port(&to)) else {
            return Err(RedirectError::Unreadable);
        };
        if host.name.len() > MAX_HOST {
            return Err(RedirectError::Unreadable);
        }
        let shown = host.to_string();
        let own: Option<Uri> = self.url.parse().ok();
        let is_own = own.is_some_and(|own| {
            Host::of(&own).is_some_and(|own| own.name == host.name)
                && self::port(&own) == Some(port)
        });
        let is_listed = || {
            self.redirects.iter().any(|listed| {
                listed.name == host.name && listed.port.or_else(|| default_port(&to)) == Some(port)
            })
        };
        if !is_own && !is_listed() {
            return Err(RedirectError::Unlisted(shown));
        }
        if from.scheme() == Some(&Scheme::HTTPS) && to.scheme() != Some(&Scheme::HTTPS) {
            return Err(RedirectError::Unencrypted(shown));
        }
        // A listed name means a server elsewhere, whatever it resolves to meanwhile.
        if !is_own
            && !host.is_literal()
            && let Some(address) = local_address(&host.name, port)
        {
            return Err(RedirectError::Local {
                host: shown,
                address,
            });
        }
        Ok(to.to_string())
    }
}

/// The absolute address of a reference in an answer of `from`.
fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let absolute = if location.contains("://") && !location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.is_empty() {
        return None;
    } else {
        let folder = from
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    let uri: Uri = absolute.parse().ok()?;
    matches!(uri.scheme_str(), Some("http" | "https")).then_some(uri)
}

fn port(uri: &Uri) -> Option<u16> {
    uri.port_u16().or_else(|| default_port(uri))
}

fn default_port(uri: &Uri) -> Option<u16> {
    match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    }
}

/// An address of this host or of its link that a name stands for. A name that cannot be looked up has none: the request
/// says so.
fn local_address(name: &str, port: u16) -> Option<IpAddr> {
    let addresses = (name, port).to_socket_addrs().ok()?;
    addresses
        .map(|address| address.ip())
        .find(|&ip| is_local(ip))
}

fn is_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified() || ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
#[path = "debuginfod_server_tests.rs"]
mod tests;
