//! The node's sockets beside the network programs: who of a target is there when a task begins, what
//! was connected before, and the sources of answers that are not programs.

use std::collections::{BTreeSet, HashMap};

use profiler_common::{
    config::FILTER_PIDS,
    network::{
        Connection, DIRECTION_CLIENT, DIRECTION_SERVER, DIRECTION_UNKNOWN, FLAG_COMPLETE,
        FLAG_JOINED,
    },
    process::start_ns,
};
use profiler_host::{
    process::{ProcessTable, is_below},
    sockets::{Owners, Sources, list_namespaces, original_of},
};
use profiler_model::{ProcessKey, sockets::DiagSocket};
use profiler_network::edges::{Identity, Owner, SocketTable};
use profiler_recording::{ProbeState, ProbeStatus};

use super::{board::ProbeStatuses, targets::ResolvedTarget};

/// Names of sources that are not programs, for `--deny-probe`.
const CONNTRACK: &str = "conntrack";
const ORIGINALS: &str = "original_destination";
const DIAG: &str = "inet_diag";
/// With the oldest kernel that has them.
const SOURCES: [(&str, &str); 3] = [(CONNTRACK, "2.6"), (ORIGINALS, "5.6"), (DIAG, "3.3")];

/// Which sources are used.
fn sources(denied: &[String]) -> Sources {
    Sources {
        without_diag: is_denied(denied, DIAG),
        without_conntrack: is_denied(denied, CONNTRACK),
        without_originals: is_denied(denied, ORIGINALS),
    }
}

/// Reads the sockets of the node, and remembers whose they are.
#[derive(Debug)]
pub(super) struct SocketReader {
    sources: Sources,
    owners: Owners,
}

impl SocketReader {
    pub(super) fn new(denied: &[String]) -> Self {
        Self {
            sources: sources(denied),
            owners: Owners::default(),
        }
    }

    /// Reads the sockets of every network namespace that has a process. Where several processes hold
    /// a socket, one of `preferred` is its owner. `before` is the last reading, of which is kept what
    /// still holds. Blocks.
    pub(super) fn read(
        &mut self,
        table: &ProcessTable,
        preferred: &BTreeSet<u32>,
        before: &SocketTable,
    ) -> SocketTable {
        table.refresh();
        let found = list_namespaces(table, self.sources);
        let mut wanted = HashMap::new();
        for (namespace, listing) in &found {
            let inodes = listing.sockets.iter().map(|socket| socket.inode);
            // A socket that is not accepted yet, or was left behind, belongs to no process.
            wanted.extend(
                inodes
                    .filter(|inode| *inode != 0)
                    .map(|inode| (inode, *namespace)),
            );
        }
        self.owners.find(&wanted, table, preferred);
        let owners = &self.owners;
        let process = |inode| owners.holder(inode).map(|holder| holder.process);
        let mut socket_table = SocketTable::new(found, process);
        if !self.sources.without_originals {
            socket_table.ask_for_originals(before, |socket| {
                let holder = owners.holder(socket.inode);
                let holder = holder.ok_or_else(|| "no process holds the socket".to_owned())?;
                original_of(socket, holder).map_err(|error| error.to_string())
            });
        }
        socket_table
    }
}

/// Writes down that the sources are there, before the first task.
pub(super) fn announce_sources(statuses: &ProbeStatuses, denied: &[String]) {
    for (name, minimum_kernel) in SOURCES {
        statuses.announce(name, minimum_kernel, denied);
    }
}

/// Writes down what came of the sources that may be used.
pub(super) fn report_sources(
    statuses: &ProbeStatuses,
    denied: &[String],
    socket_table: &SocketTable,
) {
    let (conntrack, originals) = socket_table.failures();
    let failures = [conntrack, originals, socket_table.without_diag()];
    for ((name, minimum_kernel), failure) in SOURCES.into_iter().zip(failures) {
        if is_denied(denied, name) {
            continue;
        }
        statuses.set(ProbeStatus {
            name: name.to_owned(),
            state: match failure {
                None => ProbeState::Attached,
                Some(_) => ProbeState::Unavailable,
            },
            reason: failure.map(str::to_owned),
            minimum_kernel: minimum_kernel.to_owned(),
        });
    }
}

fn is_denied(denied: &[String], name: &str) -> bool {
    denied.iter().any(|denied| denied == name)
}

/// The processes of the target that run now.
pub(super) fn wanted_pids(target: &ResolvedTarget, table: &ProcessTable) -> BTreeSet<u32> {
    if target.filter == FILTER_PIDS {
        return target.pids.clone();
    }
    table.refresh();
    table
        .snapshot()
        .iter()
        .filter(|process| {
            let paths = &target.cgroup_paths;
            paths.iter().any(|path| is_below(&process.cgroup, path))
        })
        .map(|process| process.key.pid)
        .collect()
}

/// The entry of a connection that is older than the programs. Its totals count from now on.
pub(super) fn existing(
    (socket, cookie): (&DiagSocket, u64),
    owner: Owner,
    listens: Option<bool>,
    now_ns: u64,
) -> Connection {
    let process = owner.process;
    Connection {
        cookie,
        seen_ns: now_ns,
        first_sent: socket.sent_bytes,
        last_sent: socket.sent_bytes,
        first_received: socket.received_bytes,
        last_received: socket.received_bytes,
        first_retransmits: socket.retransmits,
        last_retransmits: socket.retransmits,
        opened_by: process.map_or(0, |process| process.pid),
        opened_start_ns: process.map_or(0, |process| start_ns(process.start_ticks)),
        direction: match listens {
            Some(true) => DIRECTION_SERVER,
            Some(false) => DIRECTION_CLIENT,
            None => DIRECTION_UNKNOWN,
        },
        flags: FLAG_COMPLETE | FLAG_JOINED,
        network_namespace: owner.network_namespace,
        family: if socket.is_ipv6 { 10 } else { 2 },
        local_port: socket.local.port(),
        remote_port: socket.remote.port(),
        local: socket.address_bytes(socket.local.ip()),
        remote: socket.address_bytes(socket.remote.ip()),
        ..Connection::default()
    }
}

/// Name and container of a process that is in the table.
pub(super) fn identify(table: &ProcessTable, key: ProcessKey) -> Option<Identity> {
    let process = table.get(key.pid)?;
    (process.key == key).then(|| Identity {
        comm: process.comm.clone(),
        container: process
            .container
            .as_ref()
            .map(|container| container.id.clone()),
    })
}
