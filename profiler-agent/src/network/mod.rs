//! From sockets to edges: which process talks to which, over connections that the kernel side saw
//! and over those that were there before.
//!
//! [`flow`] decodes what the kernel side counted, [`diag`] lists the sockets of a network namespace,
//! [`owners`] finds whose they are, [`directory`] puts both together, and [`book`] adds everything up.
//! [`unix_diag`] and [`unix_book`] do the same for Unix sockets; [`silent`] keeps what has no end small.

mod flow;
mod diag;
mod owners;
mod directory;
mod book;
mod unix_diag;
mod unix_book;
mod silent;

pub(crate) use book::{Book, Identity};
pub(crate) use diag::DiagSocket;
pub(crate) use directory::{Directory, Owner};
pub(crate) use flow::Flow;
pub(crate) use silent::Room;
pub(crate) use unix_book::{UnixBook, UnixEnd, existing as existing_unix};
pub(crate) use unix_diag::UnixListing;
