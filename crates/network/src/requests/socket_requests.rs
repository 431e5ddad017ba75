//! One end of a connection: what is known of it, and what goes over it.

use core::net::SocketAddr;

use crate::edges::EdgeOfConnection;
use profiler_model::{Address, EdgeKey, Endpoint, MAX_CAPTURE_BYTES, SeenBy, TlsSeen};
use profiler_protocols::{Exchange, Limits, Options, Privacy, Protocol};

use super::{
    decoded_stream::{DecodedStream, StopReason},
    event::{ByteTotals, Drawn, Plaintext},
    facts::{CaptureBytes, CaptureOrder, SocketFacts, is_unix_end},
    observed_request::ObservationPoint,
    shared_edge::SharedEdge,
    stamps::Stamps,
};

/// First bytes of each call that HTTP/2 needs: headers of several streams may be in one, behind bodies
/// of others. The kernel side does the same by itself when it meets the preface.
const HTTP2_BYTES: u32 = MAX_CAPTURE_BYTES;
/// First bytes of each call of a store, once messages were longer than what was captured: the ends of
/// answers lie behind them, and later commands of pipelines.
const STORE_BYTES: u32 = MAX_CAPTURE_BYTES;
/// Pieces of a handshake that are waited for before no more payload is asked for.
const HANDSHAKE_PIECES: u64 = 16;

/// Whether a connection is looked at any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    GoesOn,
    Ends,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(super) struct SocketRequests {
    pub(super) facts: SocketFacts,
    /// When it was met, in reports.
    pub(super) met: u64,
    /// The process that last moved something.
    pub(super) pid: u32,
    /// Why its last piece was captured.
    pub(super) drawn: Drawn,
    /// Holes that are there because others had their turn.
    others_turns: u64,
    /// What goes over the socket as it is.
    wire: Option<DecodedStream>,
    /// What a TLS library gives and takes; then the wire carries nothing to be read.
    tls: Option<DecodedStream>,
    pieces: u64,
    /// Pieces that were lost on their way here.
    pub(super) lost_pieces: u64,
    pub(super) edge: Option<SharedEdge>,
    /// The edge is not confirmed by the table of connections: it is made of what this end knows.
    pub(super) is_guess: bool,
    /// Of the two ends of its connection, the one whose requests are counted; `None`: not settled, or only
    /// one is seen.
    pub(super) counting_end: Option<SeenBy>,
    /// A request of it has been counted.
    pub(super) is_counted: bool,
    /// When the last request ended that was counted at once because no other end was known.
    pub(super) counted_until_ns: u64,
    /// What it sent before encryption began has been counted.
    pub(super) is_greeted: bool,
    /// Requests of HTTP/1 without TLS, and when the last of them ended.
    http1: u64,
    http1_end_ns: u64,
    /// One of them began before the one before it had ended.
    is_pipelined: bool,
    /// Requests of HTTP/2 and gRPC without TLS.
    http2: u64,
    /// The other end of the connection was read inside TLS.
    pub(super) is_read_at_other_end: bool,
    /// When it ended, in reports.
    pub(super) gone: Option<u64>,
    ordered: CaptureOrder,
}

impl SocketRequests {
    pub(super) fn new(facts: SocketFacts, met: u64) -> Self {
        Self {
            facts,
            met,
            pid: 0,
            drawn: Drawn::ALL,
            others_turns: 0,
            wire: None,
            tls: None,
            pieces: 0,
            lost_pieces: 0,
            edge: None,
            is_guess: false,
            counting_end: None,
            is_counted: false,
            counted_until_ns: 0,
            is_greeted: false,
            http1: 0,
            http2: 0,
            http1_end_ns: 0,
            is_pipelined: false,
            is_read_at_other_end: false,
            gone: None,
            ordered: CaptureOrder::USUAL,
        }
    }

    /// Nothing has gone over it yet.
    pub(super) fn is_new(&self) -> bool {
        self.pieces == 0
    }

    /// Where a piece of this kind goes; `None`: nowhere, because better is known.
    pub(super) fn stream_of(
        &mut self,
        plaintext: Plaintext,
        limits: Limits,
        privacy: &Privacy,
    ) -> Option<&mut DecodedStream> {
        self.pieces += 1;
        let start = |facts| {
            let privacy = privacy.clone();
            DecodedStream::new(&Options { limits, privacy }, facts)
        };
        let facts = &self.facts;
        match plaintext {
            Plaintext::Tls => Some(self.tls.get_or_insert_with(|| start(facts))),
            Plaintext::Wire if self.tls.is_some() => None,
            Plaintext::Wire => Some(self.wire.get_or_insert_with(|| start(facts))),
        }
    }

    pub(super) fn stream_mut(&mut self, plaintext: Plaintext) -> Option<&mut DecodedStream> {
        match plaintext {
            Plaintext::Wire => self.wire.as_mut(),
            Plaintext::Tls => self.tls.as_mut(),
        }
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &DecodedStream> {
        self.wire.iter().chain(&self.tls)
    }

    /// The kernel side has made its entry anew: offsets may begin anew. What was ordered of it, which has to be
    /// said again.
    pub(super) fn restart(&mut self) -> Option<CaptureOrder> {
        for stream in self.wire.iter_mut().chain(&mut self.tls) {
            stream.restart();
        }
        (self.ordered != CaptureOrder::USUAL).then_some(self.ordered)
    }

    /// Which end it is has become known; what one kind of plaintext has brought until then comes out.
    pub(super) fn direct(
        &mut self,
        plaintext: Plaintext,
        is_client: bool,
        out: &mut Vec<Exchange>,
    ) {
        let is_client = *self.facts.is_client.get_or_insert(is_client);
        let end = if is_client {
            SeenBy::Client
        } else {
            SeenBy::Server
        };
        if let Some(stream) = self.stream_mut(plaintext) {
            stream.direct(end, out);
        }
    }

    /// Which end it is, as far as that is known.
    pub(super) fn seen_by(&self) -> Option<SeenBy> {
        let protocol =
            |stream: &Option<DecodedStream>| stream.as_ref().and_then(|stream| stream.seen_by);
        protocol(&self.tls).or_else(|| protocol(&self.wire))
    }

    /// The client's address, once it is known which end this is.
    pub(super) fn client(&self) -> Option<SocketAddr> {
        self.seen_by().map(|seen_by| match seen_by {
            SeenBy::Client => self.facts.local,
            SeenBy::Server => self.facts.remote,
        })
    }

    /// The connection has ended. Where not all of it was seen, what is open is unknown and not broken.
    pub(super) fn close(
        &mut self,
        plaintext: Plaintext,
        totals: ByteTotals,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) {
        // The rest was not asked for.
        let is_stopped = self.tls.is_some() || self.ordered.bytes == CaptureBytes::Stop;
        let gaps = self.gaps();
        let Some(stream) = self.stream_mut(plaintext) else {
            return;
        };
        match plaintext {
            Plaintext::Wire if is_stopped => {}
            Plaintext::Wire => stream.reaches(totals.sent, totals.received, out),
            Plaintext::Tls if totals.tls => {}
            Plaintext::Tls => stream.lose(out),
        }
        // What was missed since its last piece was missed because others had their turn.
        if plaintext == Plaintext::Wire && self.drawn.round() != 0 {
            self.expect_gaps_since(gaps);
        }
        if let Some(stream) = self.stream_mut(plaintext) {
            stream.close(at_ns, out);
        }
    }

    /// Ends what is open of every kind of plaintext.
    pub(super) fn end_all(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        for stream in self.wire.iter_mut().chain(&mut self.tls) {
            stream.close(at_ns, out);
        }
    }

    /// Gives up what only requests need that have not ended.
    pub(super) fn shrink(&mut self) {
        for stream in self.wire.iter_mut().chain(&mut self.tls) {
            stream.stamps = Stamps::default();
        }
    }

    /// Holes in what was seen of it.
    pub(super) fn holes(&self) -> u64 {
        self.lost_pieces.saturating_add(self.gaps())
    }

    /// Gaps in the payload that turns do not explain.
    pub(super) fn gaps(&self) -> u64 {
        let gaps = self.streams().map(|stream| stream.trouble().gaps);
        gaps.sum::<u64>().saturating_sub(self.others_turns)
    }

    /// Other connections were captured: what went over this one since its last piece is not known. Nothing is missing from here on.
    pub(super) fn begin_turn(&mut self, out: &mut Vec<Exchange>) {
        let gaps = self.gaps();
        for stream in self.wire.iter_mut().chain(&mut self.tls) {
            stream.lose(out);
        }
        self.expect_gaps_since(gaps);
    }

    /// Those that have come since there were so many are there because others were captured.
    fn expect_gaps_since(&mut self, gaps: u64) {
        self.others_turns += self.gaps().saturating_sub(gaps);
    }

    /// What its requests are seen with.
    pub(super) fn place(&self, cookie: u64) -> ObservationPoint {
        ObservationPoint {
            cookie,
            pid: self.pid,
            drawn: self.drawn,
            local: self.facts.local,
            remote: self.facts.remote,
        }
    }

    /// Nothing has come until now, or the task has ended: what was held back is given out.
    pub(super) fn rest(
        &mut self,
        plaintext: Plaintext,
        rest: Rest,
        now_ns: u64,
        out: &mut Vec<Exchange>,
    ) {
        let Some(stream) = self.stream_mut(plaintext) else {
            return;
        };
        match rest {
            Rest::GoesOn => stream.rest(now_ns, out),
            Rest::Ends => stream.stop(now_ns, out),
        }
    }

    pub(super) fn exchanges(&self) -> u64 {
        self.streams().map(|stream| stream.exchanges).sum()
    }

    /// A request without TLS is over.
    pub(super) fn note(&mut self, exchange: &Exchange) {
        match exchange.protocol {
            Protocol::Http1 => {
                self.http1 += 1;
                // Behind what was lost an answer may be taken for that of another request.
                self.is_pipelined |= self.lost_pieces == 0 && exchange.begin_ns < self.http1_end_ns;
                self.http1_end_ns = self.http1_end_ns.max(exchange.end_ns);
            }
            Protocol::Http2 | Protocol::Grpc => self.http2 += 1,
            _ => {}
        }
    }

    /// The protocols of which there were more requests than the kernel counted. While a connection goes on one side may be ahead of
    /// the other.
    pub(super) fn missed_of(
        &self,
        counted: Option<&EdgeOfConnection>,
        is_last: bool,
    ) -> impl Iterator<Item = Protocol> + use<> {
        let ended = counted.filter(|counted| counted.has_ended || is_last);
        let is_less = |protocol, decoded| {
            ended.is_some_and(|ended| {
                let http = ended.http.as_ref();
                let http = http.filter(|http| http.protocol == Some(protocol));
                http.map_or(0, |http| http.outcomes.all()) < decoded
            })
        };
        let http1 = self.is_pipelined || is_less(Protocol::Http1, self.http1);
        let http2 = is_less(Protocol::Http2, self.http2);
        let missed = [(http1, Protocol::Http1), (http2, Protocol::Http2)];
        let missed = missed.into_iter().filter(|(is_missed, _)| *is_missed);
        missed.map(|(_, protocol)| protocol)
    }

    /// What it speaks, by name. `None`: nothing was moved, it has not shown yet, or it is encrypted and the other end's
    /// plaintext was read.
    pub(super) fn protocol_name(&self) -> Option<&'static str> {
        let stream = self.tls.as_ref().or(self.wire.as_ref())?;
        match (stream.protocol, stream.stop_reason()) {
            (Some(Protocol::Tls), _) if self.is_read_at_other_end => None,
            (Some(protocol), _) => Some(protocol.name()),
            (None, Some(StopReason::Unknown | StopReason::Undirected)) => Some("unknown"),
            (None, Some(StopReason::Ended)) => Some("unknown"),
            (None, None) => None,
        }
    }

    /// What it sent before encryption began, when that is all that it will say, or nothing more is
    /// heard.
    pub(super) fn greeting(&self, is_last: bool) -> Option<TlsSeen> {
        let wire = self.wire.as_ref()?;
        let facts = wire.tls.as_ref()?;
        let is_over =
            facts.version.is_some() || self.gone.is_some() || self.tls.is_some() || is_last;
        is_over.then(|| TlsSeen {
            server_name: facts.server_name.clone(),
            offered: facts.alpn_offered.clone(),
            chosen: facts.alpn_chosen.clone(),
            version: facts.version.map(|version| version.name().to_owned()),
            connections: 1,
        })
    }

    /// What the kernel side should do from now on, when that has changed.
    pub(super) fn order(&mut self) -> Option<CaptureOrder> {
        let before = self.ordered;
        let bytes = match (before.bytes, self.wanted_bytes()) {
            (CaptureBytes::Stop, _) | (_, None) => before.bytes,
            (_, Some(bytes)) => bytes,
        };
        self.ordered = CaptureOrder {
            bytes,
            is_steady: before.is_steady || self.is_steady(),
        };
        (self.ordered != before).then_some(self.ordered)
    }

    /// Whether it would be understood badly in turns: headers stand in tables that were filled before, statements have the names
    /// that they were given before, and answers that belong to requests by their order alone belong to unknown ones.
    fn is_steady(&self) -> bool {
        let mut protocols = self
            .streams()
            .filter_map(|stream| Some((stream.protocol?, stream.is_pipelined())));
        protocols.any(|(protocol, is_pipelined)| match protocol {
            Protocol::Http2 | Protocol::Grpc => true,
            // An order has its price. A turn that is missed before it does them less harm.
            Protocol::WebSocket | Protocol::Redis | Protocol::PostgreSql | Protocol::MySql => {
                self.drawn != Drawn::ALL
            }
            Protocol::Http1 => is_pipelined && self.drawn != Drawn::ALL,
            Protocol::Dns
            | Protocol::Kafka
            | Protocol::MongoDb
            | Protocol::Tls
            | Protocol::Http => false,
        })
    }

    fn wanted_bytes(&self) -> Option<CaptureBytes> {
        if self.tls.is_some() {
            return Some(CaptureBytes::Stop);
        }
        let wire = self.wire.as_ref()?;
        match (wire.protocol, wire.stop_reason()) {
            (_, Some(StopReason::Unknown | StopReason::Undirected)) => Some(CaptureBytes::Stop),
            (_, Some(StopReason::Ended)) => None,
            (Some(Protocol::Tls), None) => {
                let is_known = wire.tls.as_ref().is_some_and(|tls| tls.version.is_some());
                (is_known || self.pieces >= HANDSHAKE_PIECES).then_some(CaptureBytes::Stop)
            }
            (Some(Protocol::Http2 | Protocol::Grpc), None) => {
                Some(CaptureBytes::First(HTTP2_BYTES))
            }
            (
                Some(
                    Protocol::Dns
                    | Protocol::Redis
                    | Protocol::PostgreSql
                    | Protocol::MySql
                    | Protocol::Kafka
                    | Protocol::MongoDb,
                ),
                None,
            ) => wire
                .wants_bytes()
                .then_some(CaptureBytes::First(STORE_BYTES)),
            (None | Some(Protocol::Http1 | Protocol::WebSocket | Protocol::Http), None) => None,
        }
    }

    /// The edge as far as this end alone knows it, for connections that ended before the table of connections was read.
    pub(super) fn own_edge(&self, seen_by: SeenBy) -> EdgeKey {
        let SocketFacts { local, remote, .. } = self.facts;
        let is_unix = is_unix_end(local);
        let end = |address: SocketAddr, pid| Endpoint {
            pid,
            start_ticks: None,
            comm: String::new(),
            container: None,
            address: if is_unix {
                Address::Unix(Address::UNKNOWN_PEER.to_owned())
            } else {
                Address::Ip(address.ip().to_canonical())
            },
        };
        let (own, other) = (end(local, Some(self.pid)), end(remote, None));
        let (client, server, port) = match seen_by {
            SeenBy::Client => (own, other, remote.port()),
            SeenBy::Server => (other, own, local.port()),
        };
        EdgeKey {
            client,
            server,
            server_port: Some(port).filter(|_port| !is_unix),
            original_destination: None,
        }
    }
}
