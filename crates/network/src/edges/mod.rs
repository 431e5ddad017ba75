//! From sockets to edges: which process talks to which, over connections that the kernel side saw
//! and over those that were there before.
//!
//! `flow` decodes what the kernel side counted. `directory` holds the sockets of the node, which others list: `listeners`
//! tells who listens, `nat` follows translated connections. `mates` joins both ends of a connection, `names` keeps what
//! addresses and processes are called, `resting` keeps connections for which the kernel's table has no room, and `book` adds
//! everything up; `homes` tells of single connections where they are, and `connections` lists the largest ones.
//! `unix_listing` and `unix_book` do the same for Unix sockets; `silent` keeps what has no end small.

mod flow;
mod listeners;
mod nat;
mod directory;
mod mates;
mod names;
mod resting;
mod book;
mod homes;
mod connections;
mod unix_listing;
mod unix_book;
mod silent;

pub use book::Book;
pub use connections::{Connections, MOST_OF_EDGE};
pub use directory::{Directory, Owner};
pub use flow::{Flow, socket_address, user_of};
pub use homes::{Home, Met, Traffic};
pub use names::{Identity, read_answer};
pub use resting::Resting;
pub use silent::{Room, fold_silent};
pub use unix_book::{UNTOLD, UnixBook, UnixEnd, existing as existing_unix};
pub use unix_listing::{UNNAMED, UnixListing};
