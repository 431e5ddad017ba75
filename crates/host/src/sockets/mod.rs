//! The sockets of the node, as the kernel lists them: the edge at which they are read. What follows from them is the
//! network stage's.
//!
//! Over `netlink`, inside of `namespaces`, `diag` lists the TCP sockets of a network namespace, or `proc_tcp` where
//! that is not allowed, `addresses` its addresses, and `conntrack` its translated connections; `listing` puts that
//! together. `unix_diag` lists Unix sockets. `owners` finds whose sockets are, `originals` asks a socket where its
//! connection was to go, `segments` reads how many TCP segments a namespace has sent and sent again.

mod netlink;
mod namespaces;
mod diag;
mod proc_tcp;
mod addresses;
mod conntrack;
mod listing;
mod unix_diag;
mod owners;
mod originals;
mod segments;

pub use addresses::addresses_here;
pub use listing::{Sources, list_namespaces};
pub use namespaces::{NamespacePath, enter_namespace_of};
pub use originals::original_of;
pub use owners::Owners;
pub use proc_tcp::sockets_of;
pub use segments::{SegmentCounts, segments_of};
pub use unix_diag::unix_sockets;

/// Reads bytes as a list of sockets in `/proc`, which the kernel writes.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    drop(proc_tcp::parse(bytes));
}
