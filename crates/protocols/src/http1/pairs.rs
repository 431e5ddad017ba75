//! Requests with their answers.
//!
//! Answers come in the order of the requests, so a pair is certain as long as no request was missed.
//! What was not captured may hold requests; then pairs are certain again from the next request that
//! begins a piece and finds everything before it answered. This takes one thing for granted: a client
//! that was never seen to send a request before the answer to the last did not do so unseen either. Once
//! it was, nothing is paired behind a gap before a silence, and requests are given out as unknown until then.

use super::{
    body::{Body, Chunked},
    decoder::{Http1, Open, Pairing, Then},
    head::{Extent, Malformed, RequestKind, ResponseHead, Upgrade, read_request, read_response},
    holes::Settled,
    side::NextPart,
};
use crate::{
    Direction, Exchange, Outcome, Protocol, Status, http_message::outcome_of_status, http2::Http2,
    order::is_silence,
};

impl Http1 {
    pub(super) fn begin_request(
        &mut self,
        extent: Extent,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), Malformed> {
        let side = &mut self.requests;
        let mut exchange = Exchange::new(Protocol::Http1, side.head.begin_ns);
        let read = read_request(side.head.bytes(), extent, &mut exchange, &self.options)?;
        side.head.clear();
        let is_found_again = std::mem::take(&mut side.is_found_again);
        let begins_piece = side.head.begins_piece;
        let is_silent = is_silence(self.quiet_since_ns, side.head.begin_ns);
        let is_alone = begins_piece && !self.is_pipelined;
        self.is_certain = true;
        self.count += 1;
        exchange.stream = self.count;
        if is_alone && self.is_settled() {
            self.settle(out);
        }
        let is_idle = self.open.is_empty();
        // Behind a hole it may have been answered in there.
        self.is_pipelined |= !is_idle && !is_found_again;
        if is_found_again || self.pairing == Pairing::Lost {
            let is_between = !matches!(self.responses.place, NextPart::Body(_));
            if is_idle && (is_alone || begins_piece && is_silent && is_between) {
                self.pairing = Pairing::Sound;
                self.holes.forget();
                if self.responses.place != NextPart::Head {
                    self.responses.lose();
                }
            } else {
                self.give_up_pairs(out);
            }
        } else if self.is_settled() || self.open.len() >= self.options.limits.open_exchanges {
            self.give_up_pairs(out);
        }
        if read.body == Body::Length(0) {
            exchange.request_end_ns = Some(at_ns);
        }
        match self.pairing {
            Pairing::Sound => {
                let request_claim = self.claim_of_head(Direction::ToServer, read.said);
                self.open.push_back(Open {
                    request_claim,
                    ..Open::new(exchange, read.kind)
                });
            }
            Pairing::Lost => {
                exchange.end_ns = at_ns;
                exchange.lose_sizes();
                out.push(exchange);
                self.holes.owed += 1;
            }
        }
        match read.body {
            Body::Length(0) => self.requests.place = NextPart::Head,
            body if body.is_framed() => self.requests.place = NextPart::Body(body),
            _ => self.lose_request_body(at_ns),
        }
        Ok(())
    }

    pub(super) fn begin_response(
        &mut self,
        extent: Extent,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), Malformed> {
        let side = &mut self.responses;
        let open = self
            .open
            .front_mut()
            .filter(|open| self.pairing == Pairing::Sound && open.status.is_none());
        let kind = open.as_ref().map(|open| open.kind);
        let begin_ns = side.head.begin_ns;
        let (head, is_answer) = match open {
            Some(open) => {
                let exchange = Some(&mut open.exchange);
                let head = read_response(side.head.bytes(), extent, exchange, &self.options)?;
                if is_final(head.status) {
                    open.status = Some(head.status);
                    open.exchange.status = Some(Status::Http(head.status));
                    open.exchange.outcome = outcome_of_status(head.status);
                    open.exchange.first_byte_ns = Some(begin_ns);
                }
                (head, true)
            }
            None => (
                read_response(side.head.bytes(), extent, None, &self.options)?,
                false,
            ),
        };
        side.head.clear();
        side.is_found_again = false;
        self.is_certain = true;
        if !is_final(head.status) {
            match extent {
                Extent::Whole => self.responses.place = NextPart::Head,
                // The answer itself may be behind it.
                Extent::Cut => self.lose(Direction::ToClient, out),
            }
            return Ok(());
        }
        if is_answer {
            let is_empty = has_no_body(kind, head.status);
            let said = match extent {
                Extent::Cut if is_empty => Some(0),
                Extent::Cut | Extent::Whole => head.said,
            };
            let response_claim = self.claim_of_head(Direction::ToClient, said);
            let moved = self.requests.moved;
            if let Some(open) = self.open.front_mut() {
                open.claim_request(moved);
                open.response_claim = response_claim;
            }
        }
        let is_answer = is_answer || self.answers_unseen(head.status, begin_ns);
        if self.is_upgraded(head, kind, at_ns, out) {
            return Ok(());
        }
        let body = match extent {
            Extent::Whole if has_no_body(kind, head.status) => Body::Length(0),
            Extent::Whole | Extent::Cut => head.body,
        };
        self.responses.place = NextPart::Body(body);
        self.begins_unseen_body = self
            .open
            .front()
            .is_some_and(|open| open.kind == RequestKind::Unseen);
        match body {
            Body::Length(0) => self.end_response(at_ns, out),
            _ if body.is_framed() => {}
            _ if !is_answer => self.responses.lose(),
            // Where the answers to the others begin is unknown.
            _ if self.open.len() > 1 => self.lose(Direction::ToClient, out),
            _ => {}
        }
        Ok(())
    }

    /// Whether the connection has left HTTP/1; the exchange that did it is given out.
    fn is_upgraded(
        &mut self,
        head: ResponseHead,
        kind: Option<RequestKind>,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> bool {
        let is_tunnel = kind == Some(RequestKind::Connect) && (200..300).contains(&head.status);
        let protocol = match head.upgrade {
            _ if is_tunnel => Protocol::Http1,
            _ if head.status != 101 => return false,
            Upgrade::WebSocket => Protocol::WebSocket,
            Upgrade::Http2 => Protocol::Http2,
            Upgrade::None | Upgrade::Other => Protocol::Http1,
        };
        // The answer to the request comes as HTTP/2 (RFC 7540, section 3.2).
        if protocol == Protocol::Http2
            && let Some(mut open) = self.open.pop_front()
        {
            open.exchange.status = None;
            open.exchange.first_byte_ns = None;
            let decoder = Http2::upgraded(&self.options, open.exchange);
            self.then = Then::Http2(Box::new(decoder));
            return true;
        }
        self.then = Then::Opaque(protocol);
        if let Some(open) = self.open.front_mut()
            && protocol == Protocol::WebSocket
        {
            open.exchange.protocol = protocol;
        }
        self.end_response(at_ns, out);
        true
    }

    /// Whether nothing but the end of the only answer is unknown.
    pub(super) fn is_settled(&self) -> bool {
        let is_open = match self.responses.place {
            NextPart::Body(body) => !body.is_framed(),
            NextPart::Head | NextPart::Lost => false,
        };
        let mut open = self.open.iter();
        is_open && open.next().is_some_and(|open| open.status.is_some()) && open.next().is_none()
    }

    /// The next request has come, so the answer ended with what was seen last.
    fn settle(&mut self, out: &mut Vec<Exchange>) {
        let is_certain =
            self.responses.place == NextPart::Body(Body::Chunked(Chunked::LikelyEnded));
        if let Some(open) = self.open.front_mut() {
            open.exchange.response_size_known &= is_certain;
            open.claim_response(self.responses.moved);
        }
        self.confirm(None, out);
        self.settled = self
            .answered(self.responses.last_ns)
            .map(|exchange| Settled::until(Direction::ToClient, exchange));
        self.responses.lose();
    }

    /// Which answer belongs to which request is no longer known.
    pub(super) fn give_up_pairs(&mut self, out: &mut Vec<Exchange>) {
        self.pairing = Pairing::Lost;
        let end_ns = self.requests.last_ns.max(self.responses.last_ns);
        for mut open in self.open.drain(..) {
            self.holes.owed += u64::from(open.status.is_none());
            open.exchange.outcome = Outcome::Unknown;
            open.exchange.lose_sizes();
            open.exchange.end_ns = end_ns.max(open.exchange.begin_ns);
            out.push(open.exchange);
        }
    }
}

/// Whether an answer has no body, whatever its head says (RFC 9112, section 6.3).
fn has_no_body(kind: Option<RequestKind>, status: u16) -> bool {
    kind == Some(RequestKind::Head) || matches!(status, 204 | 304)
}

/// Whether an answer is the last one of its request (RFC 9110, section 15.2).
fn is_final(status: u16) -> bool {
    status >= 200 || status == 101
}
