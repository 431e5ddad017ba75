//! What every network namespace that has a process reports about its TCP sockets.

use std::{io, path::Path};

use profiler_model::sockets::{Listing, Tracked};

use super::{
    addresses::addresses_here, conntrack::translations_here, diag::sockets_here, namespaces,
    proc_tcp::sockets_of,
};
use crate::process::ProcessTable;

/// Is there where the kernel tracks connections.
const TRACKED_CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// Sources of answers that a user has switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Sockets are listed as where a namespace may not be entered.
    pub without_diag: bool,
    pub without_conntrack: bool,
    pub without_originals: bool,
}

/// Lists the sockets of every network namespace that has a process, by the namespaces' inodes. A namespace that cannot be
/// read is left out. Blocks.
pub fn list_namespaces(table: &ProcessTable, sources: Sources) -> Vec<(u32, Listing)> {
    let mut found = Vec::new();
    for (inode, pids) in namespaces::with_processes(table) {
        let listing = of(inode, &pids, sources);
        found.extend(listing.map(|listing| (inode, listing)));
    }
    found
}

/// Of the calling thread's namespace.
fn here(sources: Sources) -> io::Result<Listing> {
    Ok(Listing {
        without_diag: None,
        sockets: sockets_here()?,
        addresses: addresses_here()?,
        tracked: tracked_here(sources),
    })
}

/// Of the namespace with this inode, as well as it can be read.
fn of(inode: u32, pids: &[u32], sources: Sources) -> io::Result<Listing> {
    let refused = if sources.without_diag {
        io::Error::other("inet_diag is denied by --deny-probe")
    } else {
        match namespaces::ask_inside(inode, pids, || here(sources)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                io::Error::other("the namespace cannot be entered (needs CAP_SYS_ADMIN)")
            }
            other => return other,
        }
    };
    // A process may have ended, or have left the namespace.
    let sockets = pids
        .iter()
        .filter(|pid| namespaces::is_in(**pid, inode))
        .find_map(|pid| sockets_of(*pid).ok());
    Ok(Listing {
        sockets: sockets.ok_or_else(|| io::Error::other("its processes have ended"))?,
        addresses: Vec::new(),
        tracked: Err(format!("list tracked connections: {refused}")),
        without_diag: Some(refused.to_string()),
    })
}

/// What connection tracking says in the calling thread's namespace.
fn tracked_here(sources: Sources) -> Result<Tracked, String> {
    if sources.without_conntrack {
        return Err("conntrack is denied by --deny-probe".to_owned());
    }
    translations_here().or_else(|error| {
        if Path::new(TRACKED_CONNECTIONS).exists() {
            Err(format!("list tracked connections: {error}"))
        } else {
            // Nothing is tracked here, so nothing is translated.
            Ok(Tracked::default())
        }
    })
}
