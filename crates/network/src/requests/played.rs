//! A kernel side for tests of what is made of requests.

use core::net::{Ipv4Addr, SocketAddr};
use std::collections::HashMap;

use profiler_model::{Address, EdgeKey, Endpoint, RequestTable};

use super::{
    ByteTotals, Drawn, PayloadEvent, PayloadPiece, Plaintext, SocketFacts, Tracker, TrackerOptions,
};
use crate::edges::EdgeOfConnection;

pub const CLIENT_PID: u32 = 100;
pub const SERVER_PID: u32 = 200;
/// Of the two ends of a connection: the client's has the number of the connection.
pub const SERVER_COOKIE: u64 = 1_000_000;
const MS: u64 = 1_000_000;

pub fn server() -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 2), 6379).into()
}

/// The client's end of the connection with this number.
pub fn client(number: u64) -> SocketAddr {
    let port = 40_000 + u16::try_from(number % 20_000).unwrap_or_default();
    (Ipv4Addr::new(10, 0, 0, 1), port).into()
}

/// One end of a connection that is seen from its beginning.
pub fn facts(number: u64, is_client: bool) -> SocketFacts {
    let (local, remote) = if is_client {
        (client(number), server())
    } else {
        (server(), client(number))
    };
    SocketFacts {
        local,
        remote,
        is_client: Some(is_client),
        joined: false,
        is_udp: false,
    }
}

/// The edge of all connections here.
pub fn edge() -> EdgeKey {
    let end = |pid, comm: &str, address: SocketAddr| Endpoint {
        pid: Some(pid),
        start_ticks: Some(7),
        comm: comm.to_owned(),
        container: None,
        address: Address::Ip(address.ip()),
    };
    EdgeKey {
        client: end(CLIENT_PID, "app", client(0)),
        server: end(SERVER_PID, "redis-server", server()),
        server_port: Some(6379),
        original_destination: None,
    }
}

/// Plays the kernel side.
#[derive(Debug)]
pub struct Play {
    pub tracker: Tracker,
    /// Bytes so far by socket and whether they were sent.
    pub(super) offsets: HashMap<(u64, bool), u64>,
    pub now_ns: u64,
    pub plaintext: Plaintext,
    /// Nanoseconds that each write has waited for room.
    pub waited_ns: u64,
    pub drawn: Drawn,
    /// Whether the next piece follows the one before; true again behind it.
    pub follows: bool,
}

impl Play {
    #[expect(clippy::new_without_default, reason = "a play has no usual beginning")]
    pub fn new() -> Self {
        Self::with(TrackerOptions::default())
    }

    pub fn with(options: TrackerOptions) -> Self {
        Self {
            tracker: Tracker::new(options),
            offsets: HashMap::new(),
            now_ns: 1000 * MS,
            plaintext: Plaintext::Wire,
            waited_ns: 0,
            drawn: Drawn::ALL,
            follows: true,
        }
    }

    /// Moves bytes over a socket.
    pub fn moved(&mut self, cookie: u64, is_send: bool, bytes: &[u8]) {
        self.moved_in_part(cookie, is_send, bytes, bytes.len());
    }

    /// The same in a call of which only the first bytes were captured.
    pub fn moved_in_part(&mut self, cookie: u64, is_send: bool, bytes: &[u8], captured: usize) {
        let is_server = cookie >= SERVER_COOKIE;
        let pid = if is_server { SERVER_PID } else { CLIENT_PID };
        let length = bytes.len() as u64;
        let offset = self.offsets.entry((cookie, is_send)).or_default();
        let piece = PayloadPiece {
            drawn: self.drawn,
            follows: std::mem::replace(&mut self.follows, true),
            cookie,
            pid,
            tid: pid + 1,
            at_ns: self.now_ns,
            ready_ns: (!is_send).then_some(self.now_ns - MS / 2),
            began_ns: (is_send && self.waited_ns > 0).then(|| self.now_ns - self.waited_ns),
            is_send,
            plaintext: self.plaintext,
            offset: *offset,
            length,
            bytes: bytes.get(..captured).unwrap_or(bytes),
        };
        *offset += length;
        self.tracker.take(PayloadEvent::Piece(piece));
    }

    /// Bytes go over a socket unseen.
    pub fn miss(&mut self, cookie: u64, is_send: bool, bytes: u64) {
        *self.offsets.entry((cookie, is_send)).or_default() += bytes;
    }

    /// A command and its answer on the client's socket, 3 ms apart.
    pub fn ask(&mut self, number: u64, command: &str, answer: &str) {
        self.now_ns += MS;
        self.moved(number, true, &resp(command));
        self.now_ns += 3 * MS;
        self.moved(number, false, answer.as_bytes());
    }

    /// The same on both sockets: the server sees it 1 ms after, and answers within 1 ms.
    pub fn ask_seen_by_both(&mut self, number: u64, command: &str, answer: &str) {
        let server = SERVER_COOKIE + number;
        self.now_ns += MS;
        self.moved(number, true, &resp(command));
        self.now_ns += MS;
        self.moved(server, false, &resp(command));
        self.now_ns += MS;
        self.moved(server, true, answer.as_bytes());
        self.now_ns += MS;
        self.moved(number, false, answer.as_bytes());
    }

    pub fn close(&mut self, cookie: u64) {
        let at_ns = self.now_ns;
        let went = |is_send| self.offsets.get(&(cookie, is_send)).copied().or(Some(0));
        let totals = ByteTotals {
            sent: went(true),
            received: went(false),
            tls: self.drawn == Drawn::ALL,
        };
        self.tracker.take(PayloadEvent::Closed {
            cookie,
            at_ns,
            totals,
        });
    }

    /// Says to which edge the sockets belong, and reports.
    pub fn report(&mut self, sockets: &[u64]) -> RequestTable {
        let edges = sockets
            .iter()
            .map(|cookie| (*cookie, edge_of(edge())))
            .collect();
        self.tracker.edges(&edges, self.now_ns, false);
        self.now_ns += 1000 * MS;
        self.tracker.table(self.now_ns)
    }
}

/// Where a connection belongs of whose bytes nothing is known.
pub fn edge_of(edge: EdgeKey) -> EdgeOfConnection {
    EdgeOfConnection {
        edge,
        traffic: None,
        http: None,
        has_ended: false,
    }
}

/// A command as clients send it.
pub fn resp(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let count = words.len();
    let words = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{count}\r\n{}", words.collect::<String>()).into_bytes()
}
