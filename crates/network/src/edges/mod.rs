//! From sockets to edges: which process talks to which, over connections that the kernel side saw
//! and over those that were there before.
//!
//! `flow` decodes what the kernel side counted, `http_end` its requests of HTTP. `socket_table` holds the sockets of the node, as the kernel lists them: `listeners`
//! finds listening ones, `nat` follows translated connections. `match_peers` joins both ends of a connection, `names` keeps what
//! addresses and processes are called, `evicted` keeps connections for which the kernel's table has no room, and `aggregator` adds
//! everything up; `edge_of_connection` finds the edges of single connections, and `connections` lists the largest ones.
//! `unix_listing` and `unix_aggregator` do the same for Unix sockets; `fold_idle` bounds collections without end.

mod http_end;
mod flow;
mod listeners;
mod nat;
mod socket_table;
mod match_peers;
mod names;
mod evicted;
mod aggregator;
mod edge_of_connection;
mod connections;
mod unix_listing;
mod unix_aggregator;
mod fold_idle;

pub use aggregator::EdgeAggregator;
pub use connections::{Connections, MOST_OF_EDGE};
pub use edge_of_connection::{EdgeOfConnection, Met, Traffic};
pub use evicted::EvictedConnections;
pub use flow::{Flow, socket_address, user_of};
pub use fold_idle::{EdgeLimit, fold_idle};
pub use http_end::HttpEnd;
pub use names::{Identity, read_answer};
pub use socket_table::{Owner, SocketTable};
pub use unix_aggregator::{UnixEdgeAggregator, UnixEnd, existing as existing_unix};
pub use unix_listing::UnixListing;
