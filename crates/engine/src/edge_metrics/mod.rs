//! Metrics of the always-on network collection: what each edge has counted, with a bound on their number.
//!
//! Edges of the same names are one. The first have series of their own, the others are one edge `other`;
//! no counter ever becomes less, whichever edges come and go (`choice`).

mod choice;
mod encoding;
mod readings;

pub use choice::Choice;
pub use encoding::NetworkMetrics;
pub(crate) use encoding::signed;

/// Series of an edge of which both ends are on the node, about: for the help.
pub const SERIES_OF_EDGE: usize = 124;

/// What edges are told apart by. Names are not escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Names {
    client: String,
    client_container: String,
    server: String,
    server_container: String,
    /// Empty for Unix sockets and for `other`.
    server_port: String,
}

impl Names {
    /// The edge that stands for all without series of their own.
    fn other() -> Self {
        Self {
            client: "other".to_owned(),
            server: "other".to_owned(),
            ..Self::default()
        }
    }
}

/// Which end of an edge measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

#[cfg(test)]
mod tests;
