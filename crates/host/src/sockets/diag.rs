//! The TCP sockets of a network namespace, as the kernel lists them (`inet_diag` over netlink).

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas::Nla},
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use profiler_model::sockets::DiagSocket;

use super::netlink::{Next, list};

/// Sockets of one namespace that are kept; a node has some thousand.
pub(super) const MAX_SOCKETS: usize = 262_144;
/// State of `include/net/tcp_states.h`.
pub(super) const LISTEN: u8 = 10;
/// Places in the kernel's `struct tcp_info`.
const SMOOTHED_RTT: usize = 68;
const TOTAL_RETRANSMITS: usize = 100;
const BYTES_RECEIVED: usize = 128;
const BYTES_SENT: usize = 200;
const BYTES_SENT_AGAIN: usize = 208;

/// Lists the sockets of the calling thread's namespace.
pub(super) fn sockets_here() -> io::Result<Vec<DiagSocket>> {
    let mut found = Vec::new();
    for (family, id) in [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ] {
        list_family(family, id, &mut found)?;
    }
    Ok(found)
}

fn list_family(family: u8, socket_id: SocketId, found: &mut Vec<DiagSocket>) -> io::Result<()> {
    let question = SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        // Those of no process have nothing to show.
        states: StateFlags::all() - StateFlags::TIME_WAIT - StateFlags::SYN_RECV,
        socket_id,
    });
    list(NETLINK_SOCK_DIAG, question, |answer| {
        if let SockDiagMessage::InetResponse(response) = answer {
            found.push(decode(&response));
        }
        if found.len() < MAX_SOCKETS {
            Next::More
        } else {
            Next::Enough
        }
    })
}

fn decode(response: &InetResponse) -> DiagSocket {
    let header = &response.header;
    let id = &header.socket_id;
    let canonical = |address: IpAddr, port| SocketAddr::new(address.to_canonical(), port);
    let information = response.nlas.iter().find_map(|nla| match nla {
        Nla::TcpInfo(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    let bytes = information.unwrap_or_default();
    DiagSocket {
        cookie: Some(u64::from_ne_bytes(id.cookie)),
        inode: u64::from(header.inode),
        listening: header.state == LISTEN,
        is_ipv6: header.family == AF_INET6,
        local: canonical(id.source_address, id.source_port),
        remote: canonical(id.destination_address, id.destination_port),
        sent_bytes: number(bytes, BYTES_SENT).wrapping_sub(number(bytes, BYTES_SENT_AGAIN)),
        received_bytes: number(bytes, BYTES_RECEIVED),
        retransmits: small(bytes, TOTAL_RETRANSMITS),
        rtt_us: small(bytes, SMOOTHED_RTT),
    }
}

/// A 32-bit number of `struct tcp_info`.
fn small(bytes: &[u8], offset: usize) -> u32 {
    bytes
        .get(offset..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |chunk| u32::from_ne_bytes(*chunk))
}

/// A 64-bit number of `struct tcp_info`; 0 where an older kernel's is shorter.
fn number(bytes: &[u8], offset: usize) -> u64 {
    bytes
        .get(offset..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
    };

    use super::{super::netlink::take, *};

    #[test]
    fn own_sockets_are_listed_with_their_bytes() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(port).unwrap();
            let (mut server, from) = listener.accept().unwrap();
            client.write_all(&[7; 300]).unwrap();
            server.read_exact(&mut [0; 300]).unwrap();
            let sockets = sockets_here().unwrap();
            assert!(
                sockets
                    .iter()
                    .any(|socket| socket.listening && socket.local == port)
            );
            let seen = |local, remote| {
                let mut ends = sockets
                    .iter()
                    .filter(|socket| (socket.local, socket.remote) == (local, remote));
                ends.next()
                    .cloned()
                    .unwrap_or_else(|| panic!("{local} to {remote} is missing"))
            };
            assert_eq!(seen(from, port).sent_bytes, 300);
            assert_eq!(seen(port, from).received_bytes, 300);
            let rtt_us = seen(from, port).rtt_us;
            assert!((1..1_000_000).contains(&rtt_us), "{rtt_us}");
            assert_ne!(seen(from, port).cookie, seen(port, from).cookie);
            assert_ne!(seen(from, port).inode, 0);
        }
    }

    #[test]
    fn cut_datagrams_are_refused_or_empty() {
        for length in 1..64 {
            let bytes = vec![0xff; length];
            assert!(
                take::<SockDiagMessage>(&bytes, &mut |_| Next::More).is_err(),
                "{length}"
            );
        }
    }
}
