//! Messages of both ends to exchanges.

use std::{collections::VecDeque, sync::Arc};

use super::{
    super::{
        Direction, Exchange, Limits, Options, Outcome, Piece, Protocol, WrongProtocol,
        framed::Speech,
        frames::{Extent, Frame},
        order::Order,
        reader::Reader,
        sql::{Dialect, Folded, fold},
    },
    HEADER, STARTUP_HEADER, Startup,
    ending::{Ending, Failure, Tail, ending, error_state, is_notice, tell},
    message,
    units::{Prepared, Statements, Unit},
};

#[derive(Debug)]
pub(super) struct PostgresqlSession {
    limits: Limits,
    phase: Phase,
    units: VecDeque<Unit>,
    statements: Statements,
    /// Messages since the last request: they belong to the next.
    group: Option<Prepared>,
    /// What the server has sent for the unit in front.
    answer: Option<Answer>,
    /// The client sends rows, which are not a request.
    copies_in: bool,
    /// More of the only answer that is open goes by behind the captured bytes.
    tail: Option<Tail>,
    order: Order,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's next message has no type.
    Startup,
    /// The server's next byte says whether what follows is encrypted.
    Asked,
    Typed,
    Encrypted,
    /// Replication.
    Opaque,
}

#[derive(Debug)]
struct Answer {
    first_byte_ns: u64,
    bytes: u64,
    error: Option<Failure>,
}

impl PostgresqlSession {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        let limits = options.limits;
        Self {
            limits,
            phase: if joined { Phase::Typed } else { Phase::Startup },
            units: VecDeque::new(),
            statements: Statements::new(limits.open_exchanges),
            group: None,
            answer: None,
            copies_in: false,
            tail: None,
            order: Order::new(joined, options.limits.open_exchanges),
            count: 0,
        }
    }

    fn begin(&mut self, begin_ns: u64, end_ns: u64, bytes: u64) -> Exchange {
        let mut exchange = Exchange::new(Protocol::PostgreSql, begin_ns);
        exchange.request_end_ns = Some(end_ns);
        exchange.end_ns = end_ns;
        exchange.request_bytes = bytes;
        exchange.stream = self.count;
        self.count += 1;
        exchange
    }

    fn startup(&mut self, frame: &Frame<'_>) -> Result<(), WrongProtocol> {
        let (kind, _) = Startup::of(frame.head).ok_or(WrongProtocol)?;
        match kind {
            Startup::Session => {
                let mut exchange = self.begin(frame.begin_ns, frame.end_ns, frame.length);
                exchange.method = Some("CONNECT".to_owned());
                exchange.route = Some("CONNECT".to_owned());
                self.phase = Phase::Typed;
                self.units.push_back(Unit::Startup(exchange));
            }
            Startup::Encryption => self.phase = Phase::Asked,
            // The server closes without an answer.
            Startup::Cancel => {}
        }
        Ok(())
    }

    fn client_message(&mut self, frame: &Frame<'_>, out: &mut Vec<Exchange>) {
        let mut reader = Reader::new(frame.head);
        let kind = reader.u8();
        let _length = reader.u32_be();
        match kind {
            Some(b'Q') => {
                let statement = self.fold(reader.rest(), frame);
                let mut exchange = self.begin(frame.begin_ns, frame.end_ns, frame.length);
                name(&mut exchange, Some(&statement));
                self.push(Unit::Query(exchange), frame.end_ns, out);
            }
            Some(b'F') => {
                let mut exchange = self.begin(frame.begin_ns, frame.end_ns, frame.length);
                exchange.method = Some("FUNCTION".to_owned());
                exchange.route = Some("FUNCTION ?".to_owned());
                self.push(Unit::Query(exchange), frame.end_ns, out);
            }
            Some(b'P') => {
                let prepared = self.join_group(frame);
                let statement_name = reader.until_nul();
                let statement = match statement_name {
                    Some(_) => Arc::new(self.fold(reader.rest(), frame)),
                    None => Arc::default(),
                };
                match statement_name {
                    Some(name) => self.statements.parse(name, Arc::clone(&statement)),
                    // One that is known may stand for this now: which, was not captured.
                    None => self.statements.forget(),
                }
                self.push(Unit::Parse(prepared, statement), frame.end_ns, out);
            }
            Some(b'B') => {
                let prepared = self.join_group(frame);
                let names = reader.until_nul().zip(reader.until_nul());
                if names.is_none() {
                    // Which portal it is for was not captured.
                    self.statements.forget();
                }
                let statement = names.and_then(|(portal, name)| self.statements.bind(portal, name));
                let statement = statement.unwrap_or_default();
                self.push(Unit::Bind(prepared, statement), frame.end_ns, out);
            }
            Some(b'E') => {
                let Prepared {
                    begin_ns, bytes, ..
                } = self.join_group(frame);
                self.group = None;
                let mut exchange = self.begin(begin_ns, frame.end_ns, bytes);
                let portal = reader.until_nul();
                name(
                    &mut exchange,
                    portal.and_then(|portal| self.statements.portal(portal)),
                );
                self.push(Unit::Execute(exchange), frame.end_ns, out);
            }
            Some(b'D') => {
                self.join_group(frame);
                self.push(Unit::Describe, frame.end_ns, out);
            }
            Some(b'C') => {
                if let (Some(kind), Some(name)) = (reader.u8(), reader.until_nul()) {
                    self.statements.close(kind, name);
                }
                self.push(Unit::Close, frame.end_ns, out);
            }
            Some(b'S') => {
                self.group = None;
                self.push(Unit::Sync, frame.end_ns, out);
            }
            Some(b'd' | b'c' | b'f') => {
                if let Some(Unit::Query(exchange) | Unit::Execute(exchange)) =
                    self.units.front_mut()
                {
                    exchange.request_bytes += frame.length;
                    exchange.request_end_ns = Some(frame.end_ns);
                    exchange.end_ns = exchange.end_ns.max(frame.end_ns);
                }
                self.copies_in &= kind == Some(b'd');
            }
            // Passwords, `Flush`, `Terminate`.
            _ => {}
        }
    }

    fn fold(&self, text: &[u8], frame: &Frame<'_>) -> Folded {
        let end = text.iter().position(|byte| *byte == 0);
        let whole = end.is_some() || frame.head.len() as u64 == frame.length;
        let text = end.and_then(|end| text.get(..end)).unwrap_or(text);
        fold(text, whole, Dialect::PostgreSql, self.limits.text_bytes)
    }

    fn join_group(&mut self, frame: &Frame<'_>) -> Prepared {
        let group = self.group.get_or_insert(Prepared {
            begin_ns: frame.begin_ns,
            end_ns: frame.end_ns,
            bytes: 0,
        });
        group.bytes += frame.length;
        group.end_ns = frame.end_ns;
        *group
    }

    fn push(&mut self, unit: Unit, at_ns: u64, out: &mut Vec<Exchange>) {
        // Each request may have a few messages before it.
        if self.units.len() >= self.limits.open_exchanges.saturating_mul(4) {
            self.lose(at_ns, out);
        }
        if !self.order.is_dirty() {
            self.units.push_back(unit);
        } else if let Unit::Query(exchange) | Unit::Execute(exchange) = unit {
            give_unknown(exchange, at_ns, out);
        }
    }

    fn server_message(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let kind = frame.head.first().copied().unwrap_or_default();
        // Notices, notifications and settings come at any time.
        if matches!(kind, b'N' | b'A' | b'S') || self.order.is_dirty() {
            return Ok(());
        }
        if self.order.answer(out) {
            self.lose(frame.end_ns, out);
            return Ok(());
        }
        let answer = self.answer.get_or_insert(Answer {
            first_byte_ns: frame.begin_ns,
            bytes: 0,
            error: None,
        });
        answer.bytes += frame.length;
        match (kind, self.units.front()) {
            (b'E', _) => self.error(frame, out),
            (b'Z', _) => return self.ready(frame.end_ns, out),
            (b'1', Some(Unit::Parse(..)))
            | (b'2', Some(Unit::Bind(..)))
            | (b'3', Some(Unit::Close))
            | (b'T' | b'n', Some(Unit::Describe)) => drop(self.units.pop_front()),
            (b't', Some(Unit::Describe)) => {}
            (b'C' | b'I' | b's', Some(Unit::Execute(_))) => {
                if let Some(Unit::Execute(exchange)) = self.units.pop_front() {
                    self.finish(exchange, frame.end_ns, out);
                }
            }
            (b'G', Some(Unit::Query(_) | Unit::Execute(_))) => self.copies_in = true,
            (b'W', _) => self.phase = Phase::Opaque,
            (b'D' | b'd' | b'c' | b'H', Some(Unit::Query(_) | Unit::Execute(_)))
            | (b'T' | b'C' | b'I' | b'V', Some(Unit::Query(_)))
            | (b'R' | b'K' | b'v', Some(Unit::Startup(_))) => {}
            // An answer to something else: the order is not what it seems.
            _ => {
                self.order.contradict(out);
                return Err(WrongProtocol);
            }
        }
        Ok(())
    }

    /// `ErrorResponse`: in a group, what follows up to `Sync` is not run.
    fn error(&mut self, frame: &Frame<'_>, out: &mut Vec<Exchange>) {
        let state = error_state(frame.head.get(HEADER..).unwrap_or_default());
        if let Some(answer) = &mut self.answer {
            // The first of a query has the cause.
            if answer.error.is_none() {
                answer.error = Some(state);
            }
        }
        self.copies_in = false;
        if let Some(Unit::Startup(_)) = self.units.front() {
            if let Some(Unit::Startup(exchange)) = self.units.pop_front() {
                self.finish(exchange, frame.end_ns, out);
            }
            return;
        }
        let mut failed: Option<Exchange> = None;
        let mut is_told = false;
        while let Some(unit) = self.units.front()
            && !matches!(unit, Unit::Sync | Unit::Query(_))
        {
            match self.units.pop_front() {
                Some(Unit::Execute(mut exchange)) => {
                    if is_told {
                        exchange.outcome = Outcome::Broken;
                        exchange.end_ns = frame.end_ns.max(exchange.end_ns);
                        self.order.give(exchange, out);
                    } else {
                        is_told = true;
                        self.finish(exchange, frame.end_ns, out);
                    }
                }
                Some(Unit::Parse(prepared, statement) | Unit::Bind(prepared, statement))
                    if failed.is_none() =>
                {
                    let Prepared {
                        begin_ns,
                        end_ns,
                        bytes,
                    } = prepared;
                    let mut exchange = self.begin(begin_ns, end_ns, bytes);
                    name(&mut exchange, Some(&statement));
                    failed = Some(exchange);
                }
                _ => {}
            }
        }
        if let Some(exchange) = failed.filter(|_| !is_told) {
            self.finish(exchange, frame.end_ns, out);
        }
    }

    /// `ReadyForQuery` ends a query, a group or the start of the session.
    fn ready(&mut self, at_ns: u64, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        match self.units.pop_front() {
            Some(Unit::Query(exchange) | Unit::Startup(exchange)) => {
                self.finish(exchange, at_ns, out);
            }
            Some(Unit::Sync) => self.answer = None,
            Some(
                Unit::Parse(..) | Unit::Bind(..) | Unit::Describe | Unit::Close | Unit::Execute(_),
            )
            | None => {
                self.order.contradict(out);
                return Err(WrongProtocol);
            }
        }
        self.copies_in = false;
        Ok(())
    }

    fn finish(&mut self, mut exchange: Exchange, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Some(answer) = self.answer.take() {
            exchange.first_byte_ns = Some(answer.first_byte_ns.max(exchange.begin_ns));
            exchange.response_bytes = answer.bytes;
            tell(&mut exchange, answer.error);
        }
        exchange.end_ns = at_ns.max(exchange.end_ns);
        self.order.give(exchange, out);
    }

    /// The end of an answer was not captured, and the client has gone on: it ended with what came last.
    fn finish_tail(&mut self, tail: Tail) -> Option<Exchange> {
        let units = self.units.drain(..);
        let asked = units.filter_map(|unit| match unit {
            Unit::Query(exchange) | Unit::Execute(exchange) => Some(exchange),
            Unit::Startup(_)
            | Unit::Parse(..)
            | Unit::Bind(..)
            | Unit::Describe
            | Unit::Close
            | Unit::Sync => None,
        });
        let asked = asked.reduce(|_, last| last);
        let answer = self.answer.take();
        let (mut exchange, answer) = (asked?, answer?);
        exchange.first_byte_ns = Some(answer.first_byte_ns.max(exchange.begin_ns));
        exchange.response_bytes = answer.bytes;
        exchange.end_ns = tail.end_ns.max(exchange.end_ns);
        match (answer.error, tail.ending) {
            (Some(failure), _) => tell(&mut exchange, Some(failure)),
            (None, Some(Ending::Failed(state))) => tell(&mut exchange, Some(Some(state))),
            (None, Some(Ending::Fine)) => tell(&mut exchange, None),
            // An error may have come behind the rows that were captured.
            (None, None) => exchange.is_timed = true,
        }
        Some(exchange)
    }

    fn lose(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.order.lose(out);
        self.answer = None;
        self.tail = None;
        self.group = None;
        self.copies_in = false;
        for unit in self.units.drain(..) {
            if let Unit::Startup(exchange) | Unit::Query(exchange) | Unit::Execute(exchange) = unit
            {
                give_unknown(exchange, at_ns, out);
            }
        }
        if self.phase != Phase::Encrypted && self.phase != Phase::Opaque {
            self.phase = Phase::Typed;
        }
    }
}

impl Speech for PostgresqlSession {
    fn protocol(&self) -> Protocol {
        Protocol::PostgreSql
    }

    fn header(&self, direction: Direction) -> usize {
        match (self.phase, direction) {
            (Phase::Startup | Phase::Asked, Direction::ToServer) => STARTUP_HEADER,
            (Phase::Asked, Direction::ToClient) => 1,
            _ => HEADER,
        }
    }

    fn measure(&self, direction: Direction, header: &[u8]) -> Option<Extent> {
        match (self.phase, direction) {
            (Phase::Startup | Phase::Asked, Direction::ToServer) => {
                let (_, length) = Startup::of(header)?;
                Some(Extent {
                    length: u64::from(length),
                    keep: STARTUP_HEADER,
                })
            }
            (Phase::Asked, Direction::ToClient) => {
                let known = matches!(header.first(), Some(b'S' | b'N' | b'G'));
                known.then_some(Extent { length: 1, keep: 1 })
            }
            _ => message(direction, header, self.limits.pending_bytes),
        }
    }

    fn resumes(&self, direction: Direction, bytes: &[u8], _at_ns: u64) -> bool {
        match direction {
            Direction::ToServer => bytes.first().is_some_and(|kind| b"QPBSX".contains(kind)),
            Direction::ToClient => !self.order.is_dirty() && !self.units.is_empty(),
        }
    }

    fn begin_tail(&mut self, bytes: u64, at_ns: u64) -> bool {
        let is_asked = |unit: &&Unit| matches!(unit, Unit::Query(_) | Unit::Execute(_));
        let is_startup = matches!(self.units.front(), Some(Unit::Startup(_)));
        // The client waits for the `ReadyForQuery` of what it sent last.
        let is_ended = matches!(self.units.back(), Some(Unit::Query(_) | Unit::Sync));
        let asks_once = self.units.iter().filter(is_asked).count() <= 1;
        let asks_once = asks_once && is_ended && !is_startup;
        if self.phase != Phase::Typed || self.copies_in || !asks_once || !self.order.may_wait() {
            return false;
        }
        let answer = self.answer.get_or_insert(Answer {
            first_byte_ns: at_ns,
            bytes: 0,
            error: None,
        });
        answer.bytes += bytes;
        self.tail = Some(Tail {
            end_ns: at_ns,
            ending: None,
        });
        true
    }

    fn pass_tail(&mut self, piece: &Piece<'_>) {
        if is_notice(piece) {
            return;
        }
        if let (Some(answer), Some(tail)) = (&mut self.answer, &mut self.tail) {
            answer.bytes += piece.length;
            tail.end_ns = piece.at_ns.max(tail.end_ns);
            let is_whole = piece.uncaptured() == 0;
            tail.ending = if is_whole { ending(piece.bytes) } else { None };
        }
    }

    fn skipped_answers(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if !self.units.is_empty() && !self.order.is_dirty() {
            self.lose(at_ns, out);
        }
    }

    fn call(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Some(tail) = self.tail.take() {
            let ended = self.finish_tail(tail);
            self.order.call_behind(at_ns, ended, out);
            return;
        }
        // A group of messages up to `Sync` may be sent in several calls.
        let is_within = self.units.back().is_some_and(|unit| match unit {
            Unit::Parse(..) | Unit::Bind(..) | Unit::Describe | Unit::Close | Unit::Execute(_) => {
                true
            }
            Unit::Startup(_) | Unit::Query(_) | Unit::Sync => false,
        });
        if !self.copies_in && !is_within && self.phase == Phase::Typed {
            let starting = matches!(self.units.front(), Some(Unit::Startup(_)));
            let open = if starting { 0 } else { self.units.len() };
            self.order.call(at_ns, open);
        }
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        match (self.phase, direction) {
            (Phase::Startup | Phase::Asked, Direction::ToServer) => self.startup(frame),
            (Phase::Asked, Direction::ToClient) => {
                self.phase = match frame.head.first() {
                    Some(b'N') => Phase::Startup,
                    _ => Phase::Encrypted,
                };
                Ok(())
            }
            (_, Direction::ToServer) => {
                self.client_message(frame, out);
                Ok(())
            }
            (_, Direction::ToClient) => self.server_message(frame, out),
        }
    }

    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        self.lose(at_ns, out);
        if direction == Direction::ToServer {
            self.statements.forget();
        }
    }

    fn passed(&mut self, _direction: Direction, at_ns: u64) {
        self.order.passed(at_ns);
    }

    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        let open = self.units.drain(..).filter_map(|unit| match unit {
            Unit::Startup(exchange) | Unit::Query(exchange) | Unit::Execute(exchange) => {
                Some(exchange)
            }
            Unit::Parse(..) | Unit::Bind(..) | Unit::Describe | Unit::Close | Unit::Sync => None,
        });
        self.order.close(open, at_ns, answered_ns, out);
    }

    fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.rest(now_ns, self.units.len(), out);
    }

    fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.stop(now_ns, self.units.len(), out);
    }

    fn is_sure(&self) -> bool {
        self.order.is_sure()
    }

    fn is_dirty(&self) -> bool {
        self.order.is_dirty()
    }

    fn is_encrypted(&self) -> bool {
        self.phase == Phase::Encrypted
    }

    fn is_opaque(&self) -> bool {
        self.phase == Phase::Opaque
    }
}

fn name(exchange: &mut Exchange, statement: Option<&Folded>) {
    if let Some(Folded { method, text }) = statement.filter(|statement| !statement.text.is_empty())
    {
        exchange.method.clone_from(method);
        exchange.route = Some(text.clone());
    }
}

fn give_unknown(mut exchange: Exchange, at_ns: u64, out: &mut Vec<Exchange>) {
    exchange.outcome = Outcome::Unknown;
    exchange.lose_sizes();
    exchange.end_ns = at_ns.max(exchange.end_ns);
    out.push(exchange);
}
