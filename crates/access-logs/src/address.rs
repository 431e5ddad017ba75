//! Ends of connections.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use bytes::Bytes;

use crate::{
    messages::{self, AddressKind},
    values::Values,
};

/// One end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Address {
    /// Not reported, for example because the request was never sent upstream.
    #[default]
    Absent,
    Socket(SocketAddr),
    /// The name of an internal listener (`envoy://name/...`), which has no socket.
    Internal(Bytes),
    /// A Unix socket: its path, with `@` in front if it is abstract.
    Pipe(Bytes),
    /// Anything else as it was written: a host name, or an address with an invalid port.
    Other(Bytes),
}

impl Address {
    /// The address and port, if it has both.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(address) => Some(*address),
            Self::Absent | Self::Internal(_) | Self::Pipe(_) | Self::Other(_) => None,
        }
    }

    pub(crate) fn from_message(
        address: Option<messages::Address>,
        values: &mut Values<'_>,
    ) -> Self {
        match address.and_then(|address| address.address) {
            None => Self::Absent,
            Some(AddressKind::Socket(socket)) => Self::from_socket(socket, values),
            Some(AddressKind::Pipe(pipe)) => Self::Pipe(values.text(pipe.path)),
            Some(AddressKind::Internal(internal)) => {
                Self::Internal(values.text(internal.server_listener_name))
            }
        }
    }

    fn from_socket(socket: messages::SocketAddress, values: &mut Values<'_>) -> Self {
        let text = std::str::from_utf8(&socket.address).ok();
        let ip = text.and_then(|text| text.parse::<IpAddr>().ok());
        let port = u16::try_from(socket.port_value).ok();
        match (ip, port) {
            (Some(ip), Some(port)) if socket.named_port.is_empty() => {
                Self::Socket(SocketAddr::new(ip, port))
            }
            _ => Self::Other(values.text(socket.address)),
        }
    }

    /// Parses the output of command operators such as `%UPSTREAM_REMOTE_ADDRESS%`.
    pub(crate) fn from_text(text: Bytes, values: &mut Values<'_>) -> Self {
        let Ok(written) = std::str::from_utf8(&text) else {
            return Self::Other(values.text(text));
        };
        if let Ok(address) = written.parse() {
            return Self::Socket(address);
        }
        if let Some(name) = written.strip_prefix("envoy://") {
            let length = name.find('/').unwrap_or(name.len());
            let start = written.len() - name.len();
            return Self::Internal(values.text(text.slice(start..start + length)));
        }
        if written.starts_with(['/', '@']) {
            return Self::Pipe(values.text(text));
        }
        Self::Other(values.text(text))
    }

    /// Its text, if it has some.
    pub(crate) fn text_mut(&mut self) -> Option<&mut Bytes> {
        match self {
            Self::Absent | Self::Socket(_) => None,
            Self::Internal(text) | Self::Pipe(text) | Self::Other(text) => Some(text),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("-"),
            Self::Socket(address) => address.fmt(f),
            Self::Internal(text) | Self::Pipe(text) | Self::Other(text) => {
                f.write_str(&String::from_utf8_lossy(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Address;
    use crate::{
        limits::Limits,
        messages::{self, AddressKind, EnvoyInternalAddress, Pipe, SocketAddress},
        values::Values,
    };

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn check(address: AddressKind, expected: Address) {
        let limits = Limits::default();
        let address = messages::Address {
            address: Some(address),
        };
        let found = Address::from_message(Some(address), &mut Values::new(&limits));
        assert_eq!(found, expected);
    }

    fn socket(address: &'static str, port_value: u32) -> SocketAddress {
        SocketAddress {
            address: text(address),
            port_value,
            named_port: Bytes::new(),
        }
    }

    #[test]
    fn addresses_of_messages() {
        for (ip, port, written) in [
            ("10.0.0.1", 80, "10.0.0.1:80"),
            ("::1", 65535, "[::1]:65535"),
            ("::ffff:10.0.0.1", 0, "[::ffff:10.0.0.1]:0"),
        ] {
            let expected = Address::Socket(written.parse().unwrap());
            check(AddressKind::Socket(socket(ip, port)), expected);
        }
        for (name, port) in [
            ("db.example", 5432),
            ("10.0.0.1", 65536),
            ("", 0),
            ("fe80::1%eth0", 1),
        ] {
            check(
                AddressKind::Socket(socket(name, port)),
                Address::Other(text(name)),
            );
        }
        let named = SocketAddress {
            named_port: text("http"),
            ..socket("10.0.0.1", 0)
        };
        check(AddressKind::Socket(named), Address::Other(text("10.0.0.1")));
        let pipe = Pipe {
            path: text("/run/app.sock"),
        };
        check(
            AddressKind::Pipe(pipe),
            Address::Pipe(text("/run/app.sock")),
        );
        let internal = EnvoyInternalAddress {
            server_listener_name: text("connect_originate"),
        };
        check(
            AddressKind::Internal(internal),
            Address::Internal(text("connect_originate")),
        );
    }

    #[test]
    fn an_address_without_a_kind_is_absent() {
        let limits = Limits::default();
        let mut values = Values::new(&limits);
        assert_eq!(Address::from_message(None, &mut values), Address::Absent);
        let empty = Some(messages::Address { address: None });
        assert_eq!(Address::from_message(empty, &mut values), Address::Absent);
    }

    #[test]
    fn addresses_of_command_operators() {
        let limits = Limits::default();
        for (written, expected) in [
            (
                "10.0.0.1:80",
                Address::Socket("10.0.0.1:80".parse().unwrap()),
            ),
            ("[::1]:8080", Address::Socket("[::1]:8080".parse().unwrap())),
            (
                "envoy://inner/10.0.0.1:80",
                Address::Internal(text("inner")),
            ),
            ("envoy://inner", Address::Internal(text("inner"))),
            ("/run/app.sock", Address::Pipe(text("/run/app.sock"))),
            ("@app", Address::Pipe(text("@app"))),
            ("db.example:5432", Address::Other(text("db.example:5432"))),
            ("10.0.0.1", Address::Other(text("10.0.0.1"))),
        ] {
            let found = Address::from_text(text(written), &mut Values::new(&limits));
            assert_eq!(found, expected, "{written}");
            let has_socket = matches!(expected, Address::Socket(_));
            assert_eq!(found.socket().is_some(), has_socket, "{written}");
        }
    }
}
