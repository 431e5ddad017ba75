//! Turns records of payload into reports to a listener.

use std::collections::HashMap;

use profiler_common::{
    network::{DIRECTION_CLIENT, DIRECTION_SERVER, FLAG_JOINED},
    payload::{
        DATAGRAM_REST_NS, PIECE_FOLLOWS, PIECE_SAMPLING_SHIFT, PIECE_SENT, PIECE_TLS,
        PieceConnection, PieceHead, Sampling,
    },
};
use profiler_network::{
    edges::socket_address,
    requests::{ByteTotals, Drawn, PayloadEvent, PayloadPiece, Plaintext, SocketFacts, unix_end},
};

use crate::bpf::PieceRecord;

/// `IPPROTO_UDP`.
const UDP: u32 = 17;
/// `AF_UNIX`.
const UNIX: u32 = 1;

/// What one record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PayloadRecord<'a> {
    Connection {
        cookie: u64,
        facts: SocketFacts,
    },
    Piece {
        /// Pieces before it that were lost.
        lost: Option<PayloadEvent<'static>>,
        piece: PayloadPiece<'a>,
    },
    End(PayloadEvent<'static>),
}

/// A UDP socket is taken for closed after this time without a piece, because its end is not reported. The
/// kernel side reports it anew when it is used after a pause.
const DATAGRAM_END_NS: u64 = 3 * DATAGRAM_REST_NS;

/// Remembers what was lost of each open connection that lost something, and which sockets of UDP are in
/// use.
#[derive(Debug, Default)]
pub(super) struct PayloadDemux {
    lost: HashMap<u64, u32>,
    lost_in_all: u64,
    /// Sockets of UDP with the time of their last piece.
    datagrams: HashMap<u64, u64>,
}

impl PayloadDemux {
    pub(super) fn tell<'a>(&mut self, record: PieceRecord<'a>) -> PayloadRecord<'a> {
        match record {
            PieceRecord::Connection(connection) => {
                let (cookie, facts) = (connection.cookie, facts(&connection));
                if facts.is_udp {
                    self.datagrams.insert(cookie, connection.header.time_ns);
                }
                PayloadRecord::Connection { cookie, facts }
            }
            PieceRecord::Piece { head, bytes } => {
                if let Some(used_ns) = self.datagrams.get_mut(&head.cookie) {
                    *used_ns = head.header.time_ns;
                }
                PayloadRecord::Piece {
                    lost: self.lost_before(&head),
                    piece: piece(&head, bytes),
                }
            }
            PieceRecord::End(end) => {
                let totals = ByteTotals {
                    sent: Some(end.sent_bytes),
                    received: Some(end.received_bytes),
                    // None of it was read at a TLS library.
                    tls: true,
                };
                PayloadRecord::End(self.closed(end.cookie, end.header.time_ns, totals))
            }
        }
    }

    /// The end of a connection.
    pub(super) fn closed(
        &mut self,
        cookie: u64,
        at_ns: u64,
        totals: ByteTotals,
    ) -> PayloadEvent<'static> {
        self.lost.remove(&cookie);
        PayloadEvent::Closed {
            cookie,
            at_ns,
            totals,
        }
    }

    /// Ends of sockets of UDP that were not used for long.
    pub(super) fn rested(&mut self, now_ns: u64) -> Vec<PayloadEvent<'static>> {
        let rests = |used_ns: &mut u64| now_ns.saturating_sub(*used_ns) > DATAGRAM_END_NS;
        let ended: Vec<(u64, u64)> = self
            .datagrams
            .extract_if(|_cookie, used_ns| rests(used_ns))
            .collect();
        ended
            .into_iter()
            .map(|(cookie, used_ns)| self.closed(cookie, used_ns, ByteTotals::UNCOUNTED))
            .collect()
    }

    /// Pieces that were lost until the newest piece of their connection.
    pub(super) fn lost(&self) -> u64 {
        self.lost_in_all
    }

    fn lost_before(&mut self, head: &PieceHead) -> Option<PayloadEvent<'static>> {
        if head.lost == 0 {
            return None;
        }
        let known = self.lost.insert(head.cookie, head.lost).unwrap_or(0);
        // A connection that had left the kernel's table begins anew there.
        let more = head.lost.checked_sub(known).unwrap_or(head.lost);
        self.lost_in_all = self.lost_in_all.saturating_add(u64::from(more));
        (more > 0).then_some(PayloadEvent::Lost {
            cookie: head.cookie,
            pieces: u64::from(more),
        })
    }
}

fn facts(connection: &PieceConnection) -> SocketFacts {
    let PieceConnection {
        family,
        local,
        local_port,
        remote,
        remote_port,
        ..
    } = *connection;
    let end = |bytes: [u8; 16], port| {
        if family == UNIX {
            let [cookie @ .., _, _, _, _, _, _, _, _] = bytes;
            unix_end(u64::from_ne_bytes(cookie))
        } else {
            socket_address(family, bytes, port)
        }
    };
    SocketFacts {
        local: end(local, local_port),
        remote: end(remote, remote_port),
        is_client: match connection.direction {
            DIRECTION_CLIENT => Some(true),
            DIRECTION_SERVER => Some(false),
            _ => None,
        },
        joined: connection.flags & FLAG_JOINED != 0,
        is_udp: connection.protocol == UDP,
    }
}

fn piece<'a>(head: &PieceHead, bytes: &'a [u8]) -> PayloadPiece<'a> {
    let is_send = head.flags & PIECE_SENT != 0;
    let since_ns = (head.since_ns != 0).then_some(head.since_ns);
    let sampling = Sampling::from_bits(head.flags >> PIECE_SAMPLING_SHIFT);
    PayloadPiece {
        follows: head.flags & PIECE_FOLLOWS != 0,
        drawn: Drawn::new(sampling.halvings(), sampling.round(head.header.time_ns)),
        cookie: head.cookie,
        pid: head.pid,
        tid: head.tid,
        at_ns: head.header.time_ns,
        ready_ns: since_ns.filter(|_| !is_send),
        began_ns: since_ns.filter(|_| is_send),
        is_send,
        plaintext: if head.flags & PIECE_TLS == 0 {
            Plaintext::Wire
        } else {
            Plaintext::Tls
        },
        offset: head.offset,
        length: u64::from(head.length),
        bytes,
    }
}

#[cfg(test)]
#[path = "requests_events_tests.rs"]
mod tests;
