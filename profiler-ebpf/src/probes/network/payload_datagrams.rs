//! Questions to name servers and their answers, over UDP.
//!
//! A socket of UDP is in no table of connections. One that a wanted process uses with the port of name
//! servers gets an entry here, which makes room when others need it. A socket that is not connected
//! says with each datagram where it goes; the first one that goes to a name server makes the entry, and
//! what the socket receives from then on is taken for answers. Cost: other sockets of UDP cost two
//! comparisons, those that are not connected the reading of an address of the process.

use aya_ebpf::{
    bindings::BPF_NOEXIST, helpers::bpf_probe_read_user, macros::map, maps::LruHashMap,
};
use profiler_common::{
    network::{DIRECTION_CLIENT, DIRECTION_SERVER},
    payload::{DATAGRAM_ENTRIES, DATAGRAM_REST_NS, DatagramSocket, SCRATCH_SENT},
};

use super::{
    connection::{add, add_one, current_is_wanted, is_in_scope, now},
    payload::{Moved, Scratch, Turn, fill, reserve_connection, sampling, scratch, send},
    payload_bytes::find_source,
    socket::Socket,
};
use crate::emit::Urgency;

/// The port of name servers.
const NAME_SERVER: u16 = 53;
/// `IPPROTO_UDP`.
const UDP: u32 = 17;
/// `AF_INET6`.
const IPV6: u16 = 10;

/// Sockets that ask or answer, by cookie.
#[map]
static DATAGRAM_SOCKETS: LruHashMap<u64, DatagramSocket> =
    LruHashMap::with_max_entries(DATAGRAM_ENTRIES, 0);

/// The first bytes of a `struct sockaddr_in` or `struct sockaddr_in6`. That of IPv4 is shorter, but
/// padded to 16 of these bytes; what is behind is not looked at. In an area of the CPU for the
/// same reason as [`super::payload_bytes::Source`].
#[repr(C)]
pub(super) struct Name {
    /// 0: there is none.
    family: u16,
    /// In network order.
    port: u16,
    ipv4: [u8; 4],
    ipv6: [u8; 16],
}

/// The running task has moved something over a UDP socket, which is in no table.
#[inline(never)]
pub(super) fn datagram<const AREA: u32>(socket: Socket, bytes: u64) -> u64 {
    let (local, remote) = socket.ports_of_argument();
    let serves = local == NAME_SERVER;
    if !serves && remote != NAME_SERVER && remote != 0 {
        return 0;
    }
    let Some(scratch) = scratch(AREA) else {
        return 0;
    };
    find_source(&mut scratch.source, socket, bytes);
    scratch.name.family = 0;
    if !serves && remote == 0 {
        if AREA == SCRATCH_SENT {
            if read_name(scratch) == 0 {
                return 0;
            }
        } else if find(socket.cookie_so_far()).is_none() {
            return 0;
        }
    }
    let cookie = socket.cookie();
    let Some(entry) = entry_of(socket, cookie) else {
        return 0;
    };
    let sampling = sampling();
    let at_ns = now();
    let turn = Turn {
        sampling,
        is_captured: sampling.has(sampling_key(cookie, local, remote), at_ns),
        follows: entry.captured != 0,
    };
    entry.captured = u32::from(turn.is_captured);
    if !turn.is_captured {
        return 0;
    }
    let rested = at_ns.saturating_sub(entry.used_ns) > DATAGRAM_REST_NS;
    entry.used_ns = at_ns;
    if rested && announce(socket, cookie, &scratch.name, at_ns) == 0 {
        entry.used_ns = 0;
        add_one(&mut entry.lost);
        return 0;
    }
    let number = if AREA == SCRATCH_SENT {
        &mut entry.sent_bytes
    } else {
        &mut entry.received_bytes
    };
    let offset = *number;
    add(number, bytes);
    let moved = Moved {
        cookie,
        offset,
        bytes,
        since_ns: 0,
        lost: entry.lost,
        turn,
    };
    fill::<AREA>(scratch, bytes, &moved);
    let is_sent = send(scratch, at_ns);
    if is_sent == 0 {
        add_one(&mut entry.lost);
    }
    is_sent
}

/// The client's port, as for connections. A name server's socket that is not connected serves many
/// clients, and is captured or not as a whole.
#[inline(always)]
fn sampling_key(cookie: u64, local: u16, remote: u16) -> u64 {
    match (local, remote) {
        (NAME_SERVER, 0) => cookie,
        (NAME_SERVER, client) | (client, _) => u64::from(client),
    }
}

/// Reads where the datagram goes that the running call sends; 0 when that is not a name server.
#[inline(never)]
fn read_name(scratch: &mut Scratch) -> u64 {
    let Some(address) = scratch.source.name() else {
        return 0;
    };
    // SAFETY: the helper checks the address.
    let Ok(head) = (unsafe { bpf_probe_read_user(address as *const [u32; 2]) }) else {
        return 0;
    };
    let port = (head[0] >> 16) as u16;
    if u16::from_be(port) != NAME_SERVER {
        return 0;
    }
    // SAFETY: as above; read for IPv4 as well, where it says nothing.
    let rest = unsafe { bpf_probe_read_user((address + 8) as *const [u8; 16]) };
    let family = head[0] as u16;
    scratch.name.ipv6 = match rest {
        Ok(rest) => rest,
        Err(_) if family == IPV6 => return 0,
        Err(_) => [0; 16],
    };
    scratch.name.port = port;
    scratch.name.ipv4 = head[1].to_ne_bytes();
    scratch.name.family = family;
    1
}

#[inline(always)]
fn find(cookie: u64) -> Option<&'static mut DatagramSocket> {
    let entry = DATAGRAM_SOCKETS.get_ptr_mut(cookie)?;
    // SAFETY: a map value; numbers in it are added to atomically, and its time is any of the latest.
    Some(unsafe { &mut *entry })
}

/// The socket's entry, made now when the running task is a target.
#[inline(always)]
fn entry_of(socket: Socket, cookie: u64) -> Option<&'static mut DatagramSocket> {
    if let Some(entry) = find(cookie) {
        return Some(entry);
    }
    if !is_in_scope(socket) || !current_is_wanted() {
        return None;
    }
    const NONE: DatagramSocket = DatagramSocket {
        sent_bytes: 0,
        received_bytes: 0,
        used_ns: 0,
        lost: 0,
        captured: 0,
    };
    // Fails when another CPU was faster.
    let _made = DATAGRAM_SOCKETS.insert(cookie, NONE, u64::from(BPF_NOEXIST));
    find(cookie)
}

/// Tells the agent of a socket; where it is not connected, `name` is where its first datagram goes. 0
/// when the ring buffer is full.
#[inline(never)]
fn announce(socket: Socket, cookie: u64, name: &Name, at_ns: u64) -> u64 {
    let Some(mut record) = reserve_connection(at_ns) else {
        return 0;
    };
    // SAFETY: the record is reserved, of this type, and every member was written.
    let connection = unsafe { &mut *record.as_mut_ptr() };
    let family = socket.family();
    connection.cookie = cookie;
    connection.network_namespace = socket.network_namespace();
    connection.family = u32::from(family);
    connection.protocol = UDP;
    connection.pid = super::connection::current_pid();
    connection.local_port = socket.local_port();
    connection.direction = if connection.local_port == NAME_SERVER {
        DIRECTION_SERVER
    } else {
        DIRECTION_CLIENT
    };
    socket.addresses(family, &mut connection.local, &mut connection.remote);
    connection.remote_port = socket.remote_port();
    if name.family != 0 {
        connection.remote_port = u16::from_be(name.port);
        if name.family == IPV6 {
            connection.remote = name.ipv6;
        } else {
            connection.remote = [0; 16];
            connection.remote[..4].copy_from_slice(&name.ipv4);
        }
    }
    record.submit(Urgency::Polled.flags());
    1
}
