//! Ends of connections.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use bytes::Bytes;

use crate::{encoded, values::Values};

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

    /// Of an address that is encoded in a message.
    pub(crate) fn at(message: &Bytes, read: &encoded::Address, values: &mut Values<'_>) -> Self {
        match *read {
            encoded::Address::Absent => Self::Absent,
            encoded::Address::Socket(socket) => Self::from_socket(message, socket, values),
            encoded::Address::Pipe(path) => Self::Pipe(values.text_at(message, path)),
            encoded::Address::Internal(name) => Self::Internal(values.text_at(message, name)),
        }
    }

    fn from_socket(message: &Bytes, socket: encoded::Socket, values: &mut Values<'_>) -> Self {
        let ip = message.get(socket.address.range()).and_then(ip);
        let port = u16::try_from(socket.port).ok();
        match (ip, port) {
            (Some(ip), Some(port)) if socket.named_port.is_empty() => {
                Self::Socket(SocketAddr::new(ip, port))
            }
            _ => Self::Other(values.text_at(message, socket.address)),
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

/// An address as it is written. The usual ones are read here, as the standard library needs several times as long.
fn ip(text: &[u8]) -> Option<IpAddr> {
    if let Some(ip) = plain_ipv4(text) {
        return Some(ip.into());
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Four numbers in decimal digits with dots between them.
fn plain_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut parts = [0_u8; 4];
    let mut rest = text.iter();
    let [first @ .., last] = &mut parts;
    for part in first {
        *part = number_before(&mut rest, Some(b'.'))?;
    }
    *last = number_before(&mut rest, None)?;
    Some(Ipv4Addr::from(parts))
}

/// A number without zeros in front of it, and what has to stand behind it; none: the end.
fn number_before(rest: &mut std::slice::Iter<'_, u8>, end: Option<u8>) -> Option<u8> {
    let mut number: Option<u8> = None;
    loop {
        let next = rest.next().copied();
        if next == end {
            return number;
        }
        let digit = next.filter(u8::is_ascii_digit)? - b'0';
        number = Some(match number {
            None => digit,
            Some(0) => return None,
            Some(number) => number.checked_mul(10)?.checked_add(digit)?,
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message as _;

    use super::{Address, plain_ipv4};
    use crate::{
        declared::{self, AddressKind, EnvoyInternalAddress, Pipe, SocketAddress},
        limits::Limits,
        testing::{Numbers, decode_all, field},
        values::Values,
    };

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    /// The client's address of an entry with this one.
    fn decoded(address: Option<AddressKind>) -> Address {
        let common = declared::Common {
            downstream_remote_address: Some(declared::Address { address }),
            ..declared::Common::default()
        };
        let entry = field(1, &common.encode_to_vec());
        let message = field(3, &field(1, &entry));
        let (_, mut entries) = decode_all(message, &Limits::default()).unwrap();
        entries.remove(0).addresses.downstream_remote
    }

    fn check(address: AddressKind, expected: Address) {
        assert_eq!(decoded(Some(address)), expected);
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
        assert_eq!(decoded(None), Address::Absent);
    }

    #[test]
    fn what_is_read_as_ipv4_is_what_the_standard_library_reads() {
        let check = |text: &str| {
            let expected: Option<std::net::Ipv4Addr> = text.parse().ok();
            assert_eq!(plain_ipv4(text.as_bytes()), expected, "{text}");
        };
        for text in [
            "",
            "0.0.0.0",
            "255.255.255.255",
            "256.0.0.1",
            "1.2.3",
            "1.2.3.",
            ".1.2.3.4",
            "1..2.3",
            "1.2.3.4.",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.00",
            "1.2.3.4 ",
            "+1.2.3.4",
            "::1",
            "1.2.3.4\0",
        ] {
            check(text);
        }
        let mut numbers = Numbers::new(7);
        for _ in 0..20_000 {
            let letters = ["0", "1", "2", "5", "9", ".", ".", "25", "x"];
            let length = numbers.below(16);
            let text: String = (0..length)
                .map(|_| letters[numbers.index(letters.len())])
                .collect();
            check(&text);
            let parts: Vec<String> = (0..4).map(|_| numbers.below(300).to_string()).collect();
            check(&parts.join("."));
        }
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
