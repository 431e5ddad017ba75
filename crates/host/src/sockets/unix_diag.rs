//! The Unix sockets of network namespaces, as the kernel lists them (`unix_diag` over netlink).

use std::{collections::BTreeSet, io, os::unix::ffi::OsStrExt as _};

use netlink_packet_sock_diag::{
    SockDiagMessage,
    unix::{ShowFlags, StateFlags, UnixRequest, UnixResponse, nlas::UnixDiagName},
};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use profiler_model::sockets::UnixDiagSocket;

use super::{
    namespaces,
    netlink::{Next, list},
};
use crate::process::ProcessTable;

/// Sockets of one namespace that are kept.
const MAX_SOCKETS: usize = 262_144;
/// State of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;

/// Lists the sockets of the `wanted` namespaces, or of every one that has a process. A namespace that cannot be read is
/// left out. Blocks.
pub fn unix_sockets(
    table: &ProcessTable,
    wanted: Option<&BTreeSet<u32>>,
) -> Vec<(u32, Vec<UnixDiagSocket>)> {
    let mut found = Vec::new();
    for (inode, pids) in namespaces::with_processes(table) {
        if wanted.is_some_and(|wanted| !wanted.contains(&inode)) {
            continue;
        }
        let sockets = namespaces::ask_inside(inode, &pids, || sockets_here(inode));
        found.extend(sockets.map(|sockets| (inode, sockets)));
    }
    found
}

/// Lists the sockets of the calling thread's namespace.
fn sockets_here(network_namespace: u32) -> io::Result<Vec<UnixDiagSocket>> {
    let mut found = Vec::new();
    let question = SockDiagMessage::UnixRequest(UnixRequest {
        // The crate knows two states; datagram sockets have others.
        state_flags: StateFlags::from_bits_retain(u32::MAX),
        inode: 0,
        show_flags: ShowFlags::NAME | ShowFlags::PEER,
        cookie: [0xff; 8],
    });
    list(NETLINK_SOCK_DIAG, question, |answer| {
        if let SockDiagMessage::UnixResponse(response) = answer {
            found.push(decode(&response, network_namespace));
        }
        if found.len() < MAX_SOCKETS {
            Next::More
        } else {
            Next::Enough
        }
    })?;
    Ok(found)
}

fn decode(response: &UnixResponse, network_namespace: u32) -> UnixDiagSocket {
    let header = &response.header;
    UnixDiagSocket {
        cookie: u64::from_ne_bytes(header.cookie),
        inode: u64::from(header.inode),
        peer_inode: response.peer().map_or(0, u64::from),
        kind: u32::from(header.kind),
        listening: header.state == LISTEN,
        network_namespace,
        name: match response.name() {
            None => Vec::new(),
            Some(UnixDiagName::Pathname(path)) => path.as_bytes().to_vec(),
            Some(UnixDiagName::Abstract(name)) => [&[0], name.as_slice()].concat(),
        },
    }
}
