//! Unseen bytes, and what may have been in them.
//!
//! Where the rest of a piece was not captured, it may hold requests. Their answers come all the same: an
//! answer to nothing is given out as a request of which only the answer is known, so that none is missing
//! unreported.

use super::{
    body::End,
    decoder::{Http1, Open},
    head::{Extent, RequestKind},
    recognise::begins_with_known_target,
    side::NextPart,
};
use crate::{Direction, Exchange, Outcome, Piece, Protocol, Status, Verdict, WrongProtocol};

/// Bytes behind a request that may be the end of a line, and are not yet another request.
const LINE_END_BYTES: u64 = 2;
/// What a server says to a client that has asked nothing (RFC 9110, section 15.5.9).
const REQUEST_TIMEOUT: u16 = 408;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holes {
    /// Pieces of which the rest may hold messages.
    pub(super) gaps: u64,
    requests: Unseen,
    /// Requests that were given out before their answers came: these are not answers to unseen ones.
    pub(super) owed: u64,
}

/// Requests that went unseen since answers could last be assigned to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unseen {
    #[default]
    None,
    /// The end of one request was not seen: as far as is known, nothing but its rest is missing.
    Rest,
    Requests,
}

/// A request whose answer is taken for ended, as long as nothing turns out to be missing before the next
/// piece of a direction: of the server it may be more of the answer, of the client the request whose answer
/// this is the end of.
#[derive(Debug)]
pub(super) struct Settled {
    exchange: Exchange,
    direction: Direction,
}

impl Settled {
    pub(super) fn until(direction: Direction, exchange: Exchange) -> Self {
        Self {
            exchange,
            direction,
        }
    }
}

impl Holes {
    /// Requests were missed since it was last known whose answer is whose.
    pub(super) fn may_hide_requests(&self) -> bool {
        self.requests == Unseen::Requests
    }

    /// From here on it is known again whose answer is whose.
    pub(super) fn forget(&mut self) {
        self.requests = Unseen::None;
        self.owed = 0;
    }
}

impl Http1 {
    /// The last `count` bytes of a piece were not captured.
    pub(super) fn hole(
        &mut self,
        piece: &Piece<'_>,
        count: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let (direction, at_ns) = (piece.direction, piece.at_ns);
        let is_cut_request = self.is_cut_request(direction);
        let is_torn = !self.side(direction).head.is_empty() && self.has_torn_method(direction);
        let side = self.side(direction);
        match side.place {
            NextPart::Lost if is_cut_request => {
                self.requests.place = NextPart::Head;
                self.requests.is_found_again = true;
                self.cut_head(direction, count, at_ns, out)?;
            }
            NextPart::Lost => {
                side.drop_head();
                side.not_understood += count;
                self.pass_over(direction, out);
            }
            NextPart::Head if side.head.is_empty() => {
                if direction == Direction::ToServer {
                    if count <= LINE_END_BYTES {
                        side.may_be_torn = true;
                        return Ok(());
                    }
                    self.is_pipelined |= !self.open.is_empty() || !piece.bytes.is_empty();
                }
                self.miss(direction, count, out);
            }
            NextPart::Head if is_torn => {
                self.garbage(direction, out)?;
                self.side(direction).not_understood += count;
            }
            NextPart::Head => {
                let has_method = side.head.bytes().contains(&b' ');
                match (side.head.verdict(direction), direction) {
                    (Verdict::Yes, _) => self.cut_head(direction, count, at_ns, out)?,
                    (Verdict::Undecided, Direction::ToServer) if has_method => {
                        self.cut_head(direction, count, at_ns, out)?;
                    }
                    (Verdict::Undecided, _) => self.miss(direction, count, out),
                    (Verdict::No, _) => {
                        self.garbage(direction, out)?;
                        self.side(direction).not_understood += count;
                    }
                }
            }
            NextPart::Body(mut body) => {
                let taken = body.skip(count);
                let more = taken.end == End::More && !body.is_framed();
                // More answers may be in it.
                if more && direction == Direction::ToClient && self.open.len() > 1 {
                    self.holes.gaps += 1;
                }
                self.miss_content(direction);
                self.took(direction, body, taken, at_ns, out);
                if more && direction == Direction::ToServer {
                    self.claim_chunks(body, count);
                    self.tell_rest(count);
                }
                if taken.used < count {
                    return self.hole(piece, count - taken.used, out);
                }
            }
        }
        Ok(())
    }

    /// Messages begin in what was not captured.
    fn miss(&mut self, direction: Direction, count: u64, out: &mut Vec<Exchange>) {
        self.holes.gaps += 1;
        self.side(direction).not_understood += count;
        self.lose(direction, out);
    }

    /// The end of a head was not captured, nor what follows it.
    fn cut_head(
        &mut self,
        direction: Direction,
        count: u64,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        self.head_ended(direction, Extent::Cut, at_ns, out)?;
        match (direction, self.responses.place) {
            (Direction::ToServer, _) => self.tell_rest(count),
            // The only answer that is due goes on in there.
            (Direction::ToClient, NextPart::Body(_)) => {}
            (Direction::ToClient, NextPart::Head | NextPart::Lost) => {
                self.holes.gaps += 1;
                self.responses.not_understood += count;
            }
        }
        Ok(())
    }

    /// The next piece of a direction has come, or nothing more will (`None`): what waited for it is so.
    pub(super) fn confirm(&mut self, next: Option<Direction>, out: &mut Vec<Exchange>) {
        let is_due = |settled: &mut Settled| next.is_none_or(|next| next == settled.direction);
        let settled = self.settled.take_if(is_due);
        out.extend(settled.map(|settled| settled.exchange));
    }

    /// Bytes of a direction are missing: when the answer ended is not known after all.
    pub(super) fn doubt(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        let settled = self
            .settled
            .take_if(|settled| settled.direction == direction);
        if let Some(Settled { mut exchange, .. }) = settled {
            exchange.outcome = Outcome::Unknown;
            exchange.response_size_known = false;
            out.push(exchange);
        }
    }

    /// Whether a lost side shows the beginning of a request whose first line goes on behind the captured bytes.
    fn is_cut_request(&self, direction: Direction) -> bool {
        direction == Direction::ToServer
            && self.may_begin(direction)
            && begins_with_known_target(self.requests.head.bytes())
    }

    /// Unidentified bytes: the client's may be a request whose answer is in what comes now.
    pub(super) fn pass_over(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        if direction == Direction::ToServer && self.is_settled() {
            self.give_up_pairs(out);
        }
    }

    /// The end of a request was not captured. A client that sends ahead may have put others behind it.
    fn tell_rest(&mut self, count: u64) {
        if self.is_pipelined {
            self.holes.gaps += 1;
            self.requests.not_understood += count;
            self.holes.requests = Unseen::Requests;
        }
    }

    /// The end of a body is not known; what follows is searched for the next request.
    pub(super) fn lose_request_body(&mut self, at_ns: u64) {
        if self.holes.requests == Unseen::None {
            self.holes.requests = Unseen::Rest;
        }
        self.requests.lose();
        if let Some(exchange) = self.request_in_progress() {
            exchange.request_size_known = false;
            exchange.request_end_ns = Some(at_ns);
        }
    }

    pub(super) fn lose(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        match direction {
            Direction::ToServer => {
                self.pass_over(direction, out);
                let is_body = matches!(self.requests.place, NextPart::Body(_));
                if is_body && let Some(exchange) = self.request_in_progress() {
                    exchange.request_size_known = false;
                }
                self.requests.lose();
                self.holes.requests = Unseen::Requests;
            }
            Direction::ToClient => {
                self.give_up_pairs(out);
                self.responses.lose();
            }
        }
    }

    /// Whether a final answer without a known request is that to an unseen request, which
    /// is open from here on.
    pub(super) fn answers_unseen(&mut self, status: u16, begin_ns: u64) -> bool {
        if !self.open.is_empty() || status == REQUEST_TIMEOUT {
            return false;
        }
        if self.holes.owed > 0 {
            self.holes.owed -= 1;
            return false;
        }
        match self.holes.requests {
            Unseen::None => return false,
            Unseen::Rest => {
                // More than the rest of one request was missed, and no gap was counted for it.
                self.holes.gaps += 1;
                self.holes.requests = Unseen::Requests;
                self.is_pipelined = true;
            }
            Unseen::Requests => {}
        }
        let mut exchange = Exchange::new(Protocol::Http1, begin_ns);
        exchange.first_byte_ns = Some(begin_ns);
        exchange.status = Some(Status::Http(status));
        // Nor is the size of the answer: it may be one to HEAD.
        exchange.lose_sizes();
        self.open.push_back(Open {
            status: Some(status),
            ..Open::new(exchange, RequestKind::Unseen)
        });
        true
    }
}
