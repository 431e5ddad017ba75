//! The bytes of one connection: where messages begin and end, and what is done when some were missed.

use std::collections::VecDeque;

use super::{
    body::{Body, Chunked, End, Taken},
    head::{Extent, HeadBuffer, Malformed, Progress, RequestKind},
};
use crate::{
    Decoder, Direction, Exchange, Options, Outcome, Piece, Protocol, Verdict, WrongProtocol,
    http2::Http2,
};

/// Bytes behind a request that may be the end of a line, and are not yet another request.
const LINE_END_BYTES: u64 = 2;
/// The end of a chunked body, when a call wrote nothing else, and at the end of what it wrote.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const END_OF_CHUNKS: &[u8] = b"\r\n0\r\n\r\n";

/// What comes next in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A head begins, or has begun.
    Head,
    Body(Body),
    /// Something was missed: a head is taken for one only at the beginning of a piece.
    Lost,
}

#[derive(Debug)]
pub(super) struct Side {
    pub(super) place: Place,
    pub(super) head: HeadBuffer,
    /// When the last piece was moved.
    pub(super) last_ns: u64,
    /// The head was found while the side was lost.
    pub(super) is_found_again: bool,
}

impl Side {
    fn new(place: Place) -> Self {
        Self {
            place,
            head: HeadBuffer::default(),
            last_ns: 0,
            is_found_again: false,
        }
    }

    pub(super) fn lose(&mut self) {
        self.place = Place::Lost;
        self.head.clear();
        self.is_found_again = false;
    }
}

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
    /// The client was seen to send a request before the answer to the last.
    pub(super) is_pipelined: bool,
    pub(super) then: Then,
}

/// Where to go on in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// So many bytes further on.
    Behind(usize),
    /// The rest cannot be read.
    Drop,
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
        self.side(piece.direction).last_ns = piece.at_ns;
        let mut from = 0;
        while from < piece.bytes.len() {
            match &mut self.then {
                Then::Http1 => {}
                Then::Opaque(_) => return Ok(()),
                Then::Http2(decoder) => return decoder.feed(&behind(piece, from), out),
            }
            match self.step(piece, from, out)? {
                Next::Behind(used) => from += used,
                Next::Drop => break,
            }
        }
        if piece.uncaptured() == 0 {
            return Ok(());
        }
        match &mut self.then {
            Then::Http1 => self.hole(piece.direction, piece.uncaptured(), piece.at_ns, out),
            Then::Opaque(_) => Ok(()),
            Then::Http2(decoder) => decoder.feed(&behind(piece, from), out),
        }
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        match &mut self.then {
            Then::Http1 => {}
            Then::Opaque(_) => return,
            Then::Http2(decoder) => return decoder.gap(direction, missing, out),
        }
        // Bytes from the middle of a body can be counted; an end that was missed has no time.
        if let (Some(missing), Place::Body(mut body)) = (missing, self.side(direction).place) {
            let taken = body.skip(missing);
            if taken.end == End::More && body.is_framed() {
                self.side(direction).place = Place::Body(body);
                self.add_content(direction, taken.content);
                return;
            }
        }
        self.lose(direction, out);
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Then::Http2(decoder) = &mut self.then {
            decoder.close(at_ns, out);
        }
        while let Some(mut open) = self.open.pop_front() {
            let exchange = &mut open.exchange;
            exchange.end_ns = at_ns;
            match (open.status, self.responses.place) {
                (Some(_), Place::Body(Body::UntilClose | Body::Chunked(Chunked::LikelyEnded))) => {
                    exchange.end_ns = self.responses.last_ns;
                }
                (Some(_), Place::Body(Body::Unknown | Body::LostChunks) | Place::Lost) => {
                    exchange.end_ns = self.responses.last_ns;
                    exchange.outcome = Outcome::Unknown;
                    exchange.sizes_known = false;
                }
                (None, Place::Lost) if self.responses.last_ns >= exchange.begin_ns => {
                    exchange.outcome = Outcome::Unknown;
                    exchange.sizes_known = false;
                }
                (Some(_), Place::Body(Body::Length(_) | Body::Chunked(_)) | Place::Head)
                | (None, Place::Head | Place::Body(_) | Place::Lost) => {
                    exchange.outcome = Outcome::Broken;
                }
            }
            exchange.sizes_known &= exchange.request_end_ns.is_some();
            out.push(open.exchange);
        }
    }
}

impl Http1 {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        let (place, pairing) = if joined {
            (Place::Lost, Pairing::Lost)
        } else {
            (Place::Head, Pairing::Sound)
        };
        Self {
            options: options.clone(),
            requests: Side::new(place),
            responses: Side::new(place),
            open: VecDeque::new(),
            count: 0,
            pairing,
            is_certain: false,
            is_pipelined: false,
            then: Then::Http1,
        }
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
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
        match self.side(piece.direction).place {
            Place::Head => self.read_head(piece, from, out),
            Place::Lost if from > 0 => Ok(Next::Drop),
            Place::Lost => self.find_head(piece, out),
            Place::Body(mut body) => {
                let taken = body.take(piece.bytes.get(from..).unwrap_or_default());
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
            (Verdict::Yes, Progress::Whole) => {
                self.head_ended(direction, Extent::Whole, at_ns, out)?;
                Ok(Next::Behind(used))
            }
            (Verdict::Yes, Progress::TooLong) => {
                self.head_ended(direction, Extent::Cut, at_ns, out)?;
                Ok(Next::Drop)
            }
            (Verdict::No, _) | (Verdict::Undecided, Progress::Whole | Progress::TooLong) => {
                self.garbage(direction, out)?;
                Ok(Next::Drop)
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
            let (used, progress) = side.head.push(piece, 0, limit);
            match (side.head.verdict(direction), progress) {
                (Verdict::Undecided, Progress::More) => return Ok(Next::Behind(used)),
                (Verdict::Yes, _) if self.may_begin(direction) => {
                    let side = self.side(direction);
                    side.place = Place::Head;
                    side.is_found_again = true;
                    return self.progress(direction, used, progress, piece.at_ns, out);
                }
                _ => self.side(direction).head.clear(),
            }
            if is_first {
                break;
            }
        }
        Ok(Next::Drop)
    }

    /// Whether a head that a lost side shows can be believed.
    fn may_begin(&self, direction: Direction) -> bool {
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

    fn head_ended(
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
            Ok(()) => {
                self.side(direction).head.clear();
                Ok(())
            }
            Err(Malformed) => self.garbage(direction, out),
        }
    }

    /// Bytes of a body were taken.
    fn took(
        &mut self,
        direction: Direction,
        body: Body,
        taken: Taken,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) {
        self.side(direction).place = Place::Body(body);
        self.add_content(direction, taken.content);
        match (taken.end, direction) {
            (End::More, Direction::ToServer) if !body.is_framed() => self.lose_request_body(at_ns),
            (End::More, _) => {
                if !body.is_framed() && self.open.len() > 1 {
                    self.lose(direction, out);
                }
            }
            (End::Complete, Direction::ToServer) => {
                self.requests.place = Place::Head;
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

    fn add_content(&mut self, direction: Direction, bytes: u64) {
        match direction {
            Direction::ToServer => {
                if let Some(exchange) = self.request_in_progress() {
                    exchange.request_bytes += bytes;
                }
            }
            Direction::ToClient => {
                if let Some(open) = self.open.front_mut()
                    && open.status.is_some()
                {
                    open.exchange.response_bytes += bytes;
                }
            }
        }
    }

    pub(super) fn end_response(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.responses.place = Place::Head;
        if self.open.front().is_none_or(|open| open.status.is_none()) {
            return;
        }
        if let Some(mut open) = self.open.pop_front() {
            open.exchange.end_ns = at_ns;
            open.exchange.sizes_known &= open.exchange.request_end_ns.is_some();
            out.push(open.exchange);
        }
    }

    /// The end of a body is not known; what follows is searched for the next request.
    pub(super) fn lose_request_body(&mut self, at_ns: u64) {
        self.requests.lose();
        if let Some(exchange) = self.request_in_progress() {
            exchange.sizes_known = false;
            exchange.request_end_ns = Some(at_ns);
        }
    }

    /// A piece came of which nobody knows what it is: most likely the rest of the last request.
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
                open.exchange.sizes_known = false;
            }
            self.end_response(at_ns, out);
            self.responses.lose();
        }
    }

    /// Bytes were moved that were not captured.
    fn hole(
        &mut self,
        direction: Direction,
        count: u64,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let side = self.side(direction);
        match side.place {
            Place::Lost => side.head.clear(),
            Place::Head if side.head.is_empty() => {
                if direction == Direction::ToServer {
                    if count <= LINE_END_BYTES {
                        return Ok(());
                    }
                    self.is_pipelined |= !self.open.is_empty();
                }
                self.lose(direction, out);
            }
            Place::Head => {
                let head = &mut self.side(direction).head;
                let has_method = head.bytes().contains(&b' ');
                match (head.verdict(direction), direction) {
                    (Verdict::Yes, _) => self.head_ended(direction, Extent::Cut, at_ns, out)?,
                    (Verdict::Undecided, Direction::ToServer) if has_method => {
                        self.head_ended(direction, Extent::Cut, at_ns, out)?;
                    }
                    (Verdict::Undecided, _) => self.lose(direction, out),
                    (Verdict::No, _) => self.garbage(direction, out)?,
                }
            }
            Place::Body(mut body) => {
                let taken = body.skip(count);
                self.took(direction, body, taken, at_ns, out);
                if taken.used < count {
                    return self.hole(direction, count - taken.used, at_ns, out);
                }
            }
        }
        Ok(())
    }

    /// What came is none of HTTP/1.
    fn garbage(
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

    pub(super) fn lose(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        match direction {
            Direction::ToServer => {
                let is_body = matches!(self.requests.place, Place::Body(_));
                if is_body && let Some(exchange) = self.request_in_progress() {
                    exchange.sizes_known = false;
                }
                self.requests.lose();
            }
            Direction::ToClient => {
                self.give_up_pairs(out);
                self.responses.lose();
            }
        }
    }
}

/// The part of a piece that is of another protocol.
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
