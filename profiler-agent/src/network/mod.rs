//! From sockets to edges: which process talks to which, over connections that the kernel side saw
//! and over those that were there before.
//!
//! [`flow`] decodes what the kernel side counted. Over [`netlink`], inside of [`namespaces`], [`diag`] lists the sockets of a
//! network namespace, or [`proc_tcp`] where that is not allowed, and [`addresses`] its addresses; [`owners`] finds whose they are, [`listeners`]
//! who listens; [`conntrack`] lists translated connections, [`nat`] follows them, [`originals`] asks
//! sockets where that fails. [`directory`] puts all of it together. [`mates`] joins both ends of a
//! connection, [`names`] keeps what addresses and processes are called, [`resting`] keeps connections
//! for which the kernel's table has no room, and [`book`] adds everything up, [`homes`] tells of single connections where they are; [`connections`] lists the largest ones. [`unix_diag`] and
//! [`unix_book`] do the same for Unix sockets; [`silent`] keeps what has no end small.

mod flow;
mod netlink;
mod namespaces;
mod diag;
mod proc_tcp;
mod addresses;
mod owners;
mod listeners;
mod nat;
mod conntrack;
mod originals;
mod directory;
mod mates;
mod names;
mod resting;
mod book;
mod homes;
mod connections;
mod unix_diag;
mod unix_book;
mod silent;

pub(crate) use addresses::addresses_here;
pub(crate) use book::Book;
pub(crate) use connections::{Connections, MOST_OF_EDGE};
pub(crate) use diag::DiagSocket;
pub(crate) use directory::{Directory, Owner, Sources};
pub(crate) use flow::{Flow, socket_address, user_of};
pub(crate) use homes::{Home, Met, Traffic};
pub(crate) use names::{Identity, read_answer};
pub(crate) use namespaces::{NamespacePath, enter_namespace_of};
pub(crate) use proc_tcp::{parse as read_socket_table, sockets_of};
pub(crate) use resting::Resting;
pub(crate) use silent::{Room, fold_silent};
pub(crate) use unix_book::{UNTOLD, UnixBook, UnixEnd, existing as existing_unix};
pub(crate) use unix_diag::{UNNAMED, UnixListing};
