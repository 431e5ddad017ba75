//! The kernel's lists of sockets as plain values, as read from a network namespace before ends are joined.

use core::net::{IpAddr, SocketAddr};

use crate::ProcessKey;

/// A TCP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagSocket {
    /// `None`: where it was listed does not tell.
    pub cookie: Option<u64>,
    pub inode: u64,
    pub listening: bool,
    /// The socket's own family; a mapped address is shown as IPv4 nevertheless.
    pub is_ipv6: bool,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Payload sent for the first time, and received; 0 before 4.19, and without a cookie.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Segments.
    pub retransmits: u32,
    /// Smoothed round-trip time in microseconds; 0: not measured, or where it was listed does not tell.
    pub rtt_us: u32,
}

impl DiagSocket {
    /// An address of this socket in the form that its family has in the kernel.
    pub fn address_bytes(&self, address: IpAddr) -> [u8; 16] {
        let mut bytes = [0; 16];
        match address {
            IpAddr::V6(address) => bytes = address.octets(),
            IpAddr::V4(address) if self.is_ipv6 => bytes = address.to_ipv6_mapped().octets(),
            IpAddr::V4(address) => {
                for (slot, byte) in bytes.iter_mut().zip(address.octets()) {
                    *slot = byte;
                }
            }
        }
        bytes
    }
}

/// A Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixDiagSocket {
    pub cookie: u64,
    pub inode: u64,
    /// 0: no peer, or one that no process has.
    pub peer_inode: u64,
    /// `SOCK_*`.
    pub kind: u32,
    pub listening: bool,
    pub network_namespace: u32,
    /// As it stands in `sun_path`: abstract names begin with a zero byte.
    pub name: Vec<u8>,
}

/// A process that holds a socket, and its number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub process: ProcessKey,
    pub descriptor: i32,
}

/// Both ends of a connection as seen from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

/// A connection as it comes into a namespace, and as it leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    pub before: Ends,
    pub after: Ends,
}

/// What connection tracking reported about a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    pub translations: Vec<Translation>,
    /// There were more than are kept.
    pub cut: bool,
}

/// Where a redirected connection was to go, by its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    /// Connection tracking does not know it, or it was not redirected.
    Same,
    At(SocketAddr),
}

/// What one namespace said.
#[derive(Debug)]
pub struct Listing {
    pub sockets: Vec<DiagSocket>,
    pub addresses: Vec<IpAddr>,
    pub tracked: Result<Tracked, String>,
    /// Why the sockets come from `/proc`, where they have neither cookies nor counts.
    pub without_diag: Option<String>,
}
