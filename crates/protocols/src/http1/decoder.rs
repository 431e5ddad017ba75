//! The bytes of one connection: where messages begin and end, and what is done when some were missed.

use std::collections::VecDeque;

use super::{
    body::{Body, Chunked, End, Taken},
    claims::Claim,
    head::{Extent, Malformed, Progress, RequestKind},
    holes::{Holes, Settled},
    recognise::begins_within_method,
    side::{NextPart, Side},
};
use crate::{
    Decoder, Direction, Exchange, Options, Outcome, PerDirection, Piece, Protocol, Verdict,
    WrongProtocol, http2::Http2,
};

/// The end of a chunked body, when a call wrote nothing else, and at the end of what it wrote.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const END_OF_CHUNKS: &[u8] = b"\r\n0\r\n\r\n";

/// Whether the next answer is known to be that of the first open request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    Sound,
    Lost,
}

/// A request whose answer is not complete.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) exchange: Exchange,
    pub(super) kind: RequestKind,
    /// Of its final answer, once the head of that was seen.
    pub(super) status: Option<u16>,
    /// Sizes of bodies whose ends were not captured.
    pub(super) request_claim: Option<Claim>,
    pub(super) response_claim: Option<Claim>,
}

impl Open {
    pub(super) fn new(exchange: Exchange, kind: RequestKind) -> Self {
        Self {
            exchange,
            kind,
            status: None,
            request_claim: None,
            response_claim: None,
        }
    }
}

/// What the connection has become.
#[derive(Debug)]
pub(super) enum Then {
    Http1,
    /// Bytes that are not looked at.
    Opaque(Protocol),
    Http2(Box<Http2>),
}

#[derive(Debug)]
pub(super) struct Http1 {
    pub(super) options: Options,
    pub(super) requests: Side,
    pub(super) responses: Side,
    pub(super) open: VecDeque<Open>,
    /// Requests so far.
    pub(super) count: u64,
    pub(super) pairing: Pairing,
    /// A head of HTTP/1 was seen.
    pub(super) is_certain: bool,
    /// The next byte of the server would be the first of the body of an answer to an unseen request.
    pub(super) begins_unseen_body: bool,
    /// The client was seen to send a request before the answer to the last.
    pub(super) is_pipelined: bool,
    pub(super) holes: Holes,
    pub(super) settled: Option<Settled>,
    /// When payload last went by before the head of a request began.
    pub(super) quiet_since_ns: u64,
    pub(super) then: Then,
}

/// Where to go on in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// This many bytes further on.
    Behind(usize),
    /// The rest after this many bytes cannot be read.
    Drop(usize),
}

impl Decoder for Http1 {
    fn protocol(&self) -> Protocol {
        match &self.then {
            Then::Http1 => Protocol::Http1,
            Then::Opaque(protocol) => *protocol,
            Then::Http2(decoder) => decoder.protocol(),
        }
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        let is_torn = std::mem::take(&mut self.side(piece.direction).is_torn);
        if self.requests.head.is_empty() && piece.direction == Direction::ToServer {
            let last_ns = self.requests.last_ns.max(self.responses.last_ns);
            // What is missing was said since.
            self.quiet_since_ns = if is_torn { piece.at_ns } else { last_ns };
        }
        self.confirm(Some(piece.direction), out);
        let side = self.side(piece.direction);
        side.last_ns = piece.at_ns;
        side.moved = side.moved.saturating_add(piece.bytes.len() as u64);
        let mut from = 0;
        while from < piece.bytes.len() && matches!(self.then, Then::Http1) {
            match self.step(piece, from, out)? {
                Next::Behind(used) => from += used,
                Next::Drop(used) => {
                    let dropped = piece.bytes.len().saturating_sub(from + used);
                    self.side(piece.direction).not_understood += dropped as u64;
                    from = piece.bytes.len();
                }
            }
        }
        let rest = behind(piece, from);
        match &mut self.then {
            _ if rest.length == 0 => {}
            Then::Http1 => self.hole(piece, rest.length, out)?,
            Then::Opaque(_) => self.side(piece.direction).not_understood += rest.length,
            Then::Http2(decoder) => decoder.feed(&rest, out)?,
        }
        let side = self.side(piece.direction);
        side.moved = side.moved.saturating_add(piece.uncaptured());
        Ok(())
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        match &mut self.then {
            Then::Http1 => {}
            Then::Opaque(_) => return,
            Then::Http2(decoder) => return decoder.gap(direction, missing, out),
        }
        self.drop_claims(direction);
        self.side(direction).is_torn = true;
        self.doubt(direction, out);
        // Bytes from the middle of a body can be counted; an end that was missed has no time.
        if let (Some(missing), NextPart::Body(mut body)) = (missing, self.side(direction).place) {
            let taken = body.skip(missing);
            if taken.end == End::More && body.is_framed() {
                self.side(direction).place = NextPart::Body(body);
                self.add_content(direction, taken.content);
                self.miss_content(direction);
                return;
            }
        }
        self.lose(direction, out);
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Then::Http2(decoder) = &mut self.then {
            decoder.close(at_ns, out);
        }
        self.confirm(None, out);
        while let Some(mut open) = self.open.pop_front() {
            let exchange = &mut open.exchange;
            exchange.end_ns = at_ns;
            match (open.status, self.responses.place) {
                // Of an answer to an unseen request.
                _ if open.kind == RequestKind::Unseen => exchange.response_size_known = false,
                (
                    Some(_),
                    NextPart::Body(Body::UntilClose | Body::Chunked(Chunked::LikelyEnded)),
                ) => {
                    exchange.end_ns = self.responses.last_ns;
                    if self.responses.is_torn {
                        exchange.outcome = Outcome::Unknown;
                    }
                }
                (Some(_), NextPart::Body(Body::Unknown | Body::LostChunks) | NextPart::Lost) => {
                    exchange.end_ns = self.responses.last_ns;
                    exchange.outcome = Outcome::Unknown;
                    exchange.response_size_known = false;
                }
                (None, NextPart::Lost) if self.responses.last_ns >= exchange.begin_ns => {
                    exchange.outcome = Outcome::Unknown;
                    exchange.response_size_known = false;
                }
                (Some(_), NextPart::Body(Body::Length(_) | Body::Chunked(_)) | NextPart::Head)
                | (None, NextPart::Head | NextPart::Body(_) | NextPart::Lost) => {
                    exchange.outcome = Outcome::Broken;
                }
            }
            exchange.request_size_known &= exchange.request_end_ns.is_some();
            out.push(open.exchange);
        }
    }

    fn stop(&mut self, _now_ns: u64, out: &mut Vec<Exchange>) {
        self.confirm(None, out);
    }

    fn is_pipelined(&self) -> bool {
        self.is_pipelined
    }

    fn is_dirty(&self) -> bool {
        match &self.then {
            Then::Http1 => {
                self.pairing == Pairing::Lost
                    || self.requests.place == NextPart::Lost
                    || self.responses.place == NextPart::Lost
            }
            // No requests follow.
            Then::Opaque(_) => false,
            Then::Http2(decoder) => decoder.is_dirty(),
        }
    }

    fn gaps(&self) -> u64 {
        let behind = match &self.then {
            Then::Http1 | Then::Opaque(_) => 0,
            Then::Http2(decoder) => decoder.gaps(),
        };
        self.holes.gaps + behind
    }

    fn not_understood(&self) -> PerDirection<u64> {
        let behind = match &self.then {
            Then::Http1 | Then::Opaque(_) => PerDirection::default(),
            Then::Http2(decoder) => decoder.not_understood(),
        };
        PerDirection {
            to_server: self.requests.not_understood + behind.to_server,
            to_client: self.responses.not_understood + behind.to_client,
        }
    }
}

impl Http1 {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        let (place, pairing) = if joined {
            (NextPart::Lost, Pairing::Lost)
        } else {
            (NextPart::Head, Pairing::Sound)
        };
        Self {
            options: options.clone(),
            requests: Side::new(place),
            responses: Side::new(place),
            open: VecDeque::new(),
            count: 0,
            pairing,
            is_certain: false,
            begins_unseen_body: false,
            is_pipelined: false,
            holes: Holes::default(),
            settled: None,
            quiet_since_ns: 0,
            then: Then::Http1,
        }
    }

    pub(super) fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::ToServer => &mut self.requests,
            Direction::ToClient => &mut self.responses,
        }
    }

    fn step(
        &mut self,
        piece: &Piece<'_>,
        from: usize,
        out: &mut Vec<Exchange>,
    ) -> Result<Next, WrongProtocol> {
        let place = self.side(piece.direction).place;
        match place {
            NextPart::Head => self.read_head(piece, from, out),
            NextPart::Lost if from > 0 => Ok(Next::Drop(0)),
            NextPart::Lost => self.find_head(piece, out),
            NextPart::Body(_) if self.is_answer_to_head(piece, from) => {
                self.end_response(piece.at_ns, out);
                Ok(Next::Behind(0))
            }
            NextPart::Body(mut body) => {
                let limit = self.options.privacy.body_bytes;
                let mut exchange = self.exchange_of(piece.direction);
                let mut keep = |content: &[u8]| {
                    if let Some(exchange) = &mut exchange {
                        exchange.keep_body(piece.direction, content, limit);
                    }
                };
                let bytes = piece.bytes.get(from..).unwrap_or_default();
                let taken = body.take(bytes, &mut keep);
                self.took(piece.direction, body, taken, piece.at_ns, out);
                if body == Body::LostChunks && is_end_of_chunks(piece) {
                    self.lost_chunks_end(piece.direction, piece.at_ns, out);
                }
                Ok(Next::Behind(
                    usize::try_from(taken.used).unwrap_or(usize::MAX),
                ))
            }
        }
    }

    /// A head is due.
    fn read_head(
        &mut self,
        piece: &Piece<'_>,
        from: usize,
        out: &mut Vec<Exchange>,
    ) -> Result<Next, WrongProtocol> {
        let limit = self.options.limits.pending_bytes;
        let side = self.side(piece.direction);
        let (used, progress) = side.head.push(piece, from, limit);
        if side.head.is_empty() {
            return Ok(Next::Behind(used));
        }
        self.progress(piece.direction, used, progress, piece.at_ns, out)
    }

    fn progress(
        &mut self,
        direction: Direction,
        used: usize,
        progress: Progress,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<Next, WrongProtocol> {
        match (self.side(direction).head.verdict(direction), progress) {
            (Verdict::Yes | Verdict::Undecided, Progress::More) => Ok(Next::Behind(used)),
            (Verdict::Yes, Progress::Whole | Progress::TooLong)
                if self.has_torn_method(direction) =>
            {
                self.garbage(direction, out)?;
                Ok(Next::Drop(used))
            }
            (Verdict::Yes, Progress::Whole) => {
                self.head_ended(direction, Extent::Whole, at_ns, out)?;
                Ok(Next::Behind(used))
            }
            (Verdict::Yes, Progress::TooLong) => {
                self.head_ended(direction, Extent::Cut, at_ns, out)?;
                Ok(Next::Drop(used))
            }
            (Verdict::No, _) | (Verdict::Undecided, Progress::Whole | Progress::TooLong) => {
                self.garbage(direction, out)?;
                Ok(Next::Drop(used))
            }
        }
    }

    /// Looks for a head at the beginning of a piece, or at that of pieces before when these were too
    /// short to tell.
    fn find_head(
        &mut self,
        piece: &Piece<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<Next, WrongProtocol> {
        let limit = self.options.limits.pending_bytes;
        let direction = piece.direction;
        self.note_lost_request(piece);
        for _ in 0..2 {
            let side = self.side(direction);
            let is_first = side.head.is_empty();
            let earlier = side.head.bytes().len() as u64;
            let (used, progress) = side.head.push(piece, 0, limit);
            match (side.head.verdict(direction), progress) {
                (Verdict::Undecided, Progress::More) => return Ok(Next::Behind(used)),
                (Verdict::Yes, _) if self.may_begin(direction) && !self.is_torn(direction) => {
                    let side = self.side(direction);
                    side.place = NextPart::Head;
                    side.is_found_again = true;
                    return self.progress(direction, used, progress, piece.at_ns, out);
                }
                _ => {
                    let side = self.side(direction);
                    side.head.clear();
                    side.not_understood += earlier;
                }
            }
            if is_first {
                break;
            }
        }
        self.pass_over(direction, out);
        Ok(Next::Drop(0))
    }

    /// Whether the answer to an unseen request has no body, as the next answer stands in its place.
    fn is_answer_to_head(&mut self, piece: &Piece<'_>, from: usize) -> bool {
        piece.direction == Direction::ToClient
            && std::mem::take(&mut self.begins_unseen_body)
            && piece
                .bytes
                .get(from..)
                .is_some_and(|bytes| bytes.starts_with(b"HTTP/1."))
    }

    /// Whether what looks like a head is the rest of one whose first letters were in an earlier call.
    fn is_torn(&self, direction: Direction) -> bool {
        direction == Direction::ToServer && begins_within_method(self.requests.head.bytes())
    }

    /// Whether the first letters of the head that is due were among bytes that were taken for the end of a line.
    pub(super) fn has_torn_method(&mut self, direction: Direction) -> bool {
        std::mem::take(&mut self.side(direction).may_be_torn) && self.is_torn(direction)
    }

    /// Whether a head that a lost side shows can be believed.
    pub(super) fn may_begin(&self, direction: Direction) -> bool {
        match (direction, self.pairing) {
            (Direction::ToServer, Pairing::Lost) => true,
            // Before the answer it may be the body of the request before.
            (Direction::ToServer, Pairing::Sound) => self.open.is_empty() || self.is_settled(),
            (Direction::ToClient, Pairing::Lost) => false,
            (Direction::ToClient, Pairing::Sound) => {
                self.open.front().is_some_and(|open| open.status.is_none())
            }
        }
    }

    pub(super) fn head_ended(
        &mut self,
        direction: Direction,
        extent: Extent,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let done = match direction {
            Direction::ToServer => self.begin_request(extent, at_ns, out),
            Direction::ToClient => self.begin_response(extent, at_ns, out),
        };
        match done {
            Ok(()) => Ok(()),
            Err(Malformed) => self.garbage(direction, out),
        }
    }

    /// Bytes of a body were taken.
    pub(super) fn took(
        &mut self,
        direction: Direction,
        body: Body,
        taken: Taken,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) {
        self.side(direction).place = NextPart::Body(body);
        self.add_content(direction, taken.content);
        match (taken.end, direction) {
            (End::More, Direction::ToServer) if !body.is_framed() => self.lose_request_body(at_ns),
            (End::More, _) => {
                if !body.is_framed() && self.open.len() > 1 {
                    self.lose(direction, out);
                }
            }
            (End::Complete, Direction::ToServer) => {
                self.requests.place = NextPart::Head;
                if let Some(exchange) = self.request_in_progress() {
                    exchange.request_end_ns = Some(at_ns);
                }
            }
            (End::Complete, Direction::ToClient) => self.end_response(at_ns, out),
            (End::Malformed, _) => self.lose(direction, out),
        }
    }

    /// The request whose body is being sent, unless its answer came before.
    pub(super) fn request_in_progress(&mut self) -> Option<&mut Exchange> {
        let count = self.count;
        let last = self.open.back_mut().map(|open| &mut open.exchange);
        last.filter(|exchange| exchange.stream == count)
    }

    /// The exchange whose body goes this way.
    fn exchange_of(&mut self, direction: Direction) -> Option<&mut Exchange> {
        match direction {
            Direction::ToServer => self.request_in_progress(),
            Direction::ToClient => {
                let open = self.open.front_mut().filter(|open| open.status.is_some());
                open.map(|open| &mut open.exchange)
            }
        }
    }

    fn add_content(&mut self, direction: Direction, bytes: u64) {
        if let Some(exchange) = self.exchange_of(direction) {
            match direction {
                Direction::ToServer => exchange.request_bytes += bytes,
                Direction::ToClient => exchange.response_bytes += bytes,
            }
        }
    }

    /// Content was not captured.
    pub(super) fn miss_content(&mut self, direction: Direction) {
        let limit = self.options.privacy.body_bytes;
        if let Some(exchange) = self.exchange_of(direction) {
            exchange.miss_body(direction, limit);
        }
    }

    pub(super) fn end_response(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.responses.place = NextPart::Head;
        out.extend(self.answered(at_ns));
    }

    /// The first request, with its answer.
    pub(super) fn answered(&mut self, end_ns: u64) -> Option<Exchange> {
        let mut open = self.open.pop_front_if(|open| open.status.is_some())?;
        open.claim_request(self.requests.moved);
        let mut exchange = open.exchange;
        exchange.end_ns = end_ns;
        exchange.request_size_known &= exchange.request_end_ns.is_some();
        Some(exchange)
    }

    /// An unidentified piece came: most likely the rest of the last request.
    fn note_lost_request(&mut self, piece: &Piece<'_>) {
        if piece.direction == Direction::ToServer
            && let Some(open) = self.open.back_mut()
            && open.status.is_none()
        {
            open.exchange.request_end_ns = Some(piece.at_ns);
        }
    }

    fn lost_chunks_end(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        if direction == Direction::ToClient {
            if let Some(open) = self.open.front_mut() {
                open.exchange.response_size_known = false;
            }
            if self.holes.may_hide_requests() {
                // It may be the end of the answer to another one.
                self.give_up_pairs(out);
            } else {
                self.confirm(None, out);
                self.settled = self
                    .answered(at_ns)
                    .map(|exchange| Settled::until(Direction::ToServer, exchange));
            }
            self.responses.lose();
        }
    }

    /// What came is none of HTTP/1.
    pub(super) fn garbage(
        &mut self,
        direction: Direction,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        if !self.is_certain {
            return Err(WrongProtocol);
        }
        self.lose(direction, out);
        Ok(())
    }
}

/// The part of a piece after `from` bytes.
fn behind<'a>(piece: &Piece<'a>, from: usize) -> Piece<'a> {
    Piece {
        length: piece.length.saturating_sub(from as u64),
        bytes: piece.bytes.get(from..).unwrap_or_default(),
        ..*piece
    }
}

fn is_end_of_chunks(piece: &Piece<'_>) -> bool {
    piece.uncaptured() == 0 && (piece.bytes == LAST_CHUNK || piece.bytes.ends_with(END_OF_CHUNKS))
}
