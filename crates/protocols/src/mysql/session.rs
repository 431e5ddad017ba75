//! Packets of both ends to exchanges.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    super::{
        Direction, Exchange, Limits, Options, Outcome, Piece, Protocol, Status, WrongProtocol,
        framed::Speech,
        frames::{Extent, Frame},
        order::Order,
        reader::Reader,
        sql::{Dialect, Folded, fold},
        text::printable,
    },
    HEADER, MOST_PACKET,
    answer::{Answer, Effect, Ending, Next, ending, failure},
    command::Command,
    handshake::Capabilities,
    packet,
};

#[derive(Debug)]
pub(super) struct MysqlSession {
    limits: Limits,
    phase: Phase,
    /// What the server offered, then what both ends have.
    capabilities: Capabilities,
    open: VecDeque<Open>,
    statements: HashMap<u32, Arc<Folded>>,
    /// MariaDB's clients may refer to it without knowing its number.
    last_prepared: Option<Arc<Folded>>,
    /// The client's packet goes on in the next one.
    continues: bool,
    order: Order,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    /// The client's answer comes next.
    Answering,
    /// Proofs go to and fro.
    Authenticating,
    Commands,
    Encrypted,
    /// Compressed, or replication.
    Opaque,
}

#[derive(Debug)]
struct Open {
    exchange: Exchange,
    command: Command,
    answer: Answer,
    /// Of a statement that is being prepared.
    statement: Option<Arc<Folded>>,
    /// The number of the server's next packet.
    number: u8,
    /// More of the answer goes by behind the captured bytes.
    tail: Option<Tail>,
}

/// See [`Open::tail`]: how the answer ended, if its last piece shows it.
#[derive(Debug)]
struct Tail(Option<Ending>);

/// Bytes of a packet of the server that are of use.
const KEPT_ANSWER: usize = HEADER + 64;
const KEPT_GREETING: usize = HEADER + 256;
/// The client's answer to the greeting up to the name of the user.
const KEPT_CAPABILITIES: usize = HEADER + 4;
/// A request for TLS is an answer without what follows the capabilities.
const TLS_REQUEST: u64 = HEADER as u64 + 32;

impl MysqlSession {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        Self {
            limits: options.limits,
            phase: if joined {
                Phase::Commands
            } else {
                Phase::Greeting
            },
            capabilities: Capabilities::default(),
            open: VecDeque::new(),
            statements: HashMap::new(),
            last_prepared: None,
            continues: false,
            order: Order::new(joined, options.limits.open_exchanges),
            count: 0,
        }
    }

    fn begin(&mut self, frame: &Frame<'_>) -> Exchange {
        let mut exchange = Exchange::new(Protocol::MySql, frame.begin_ns);
        exchange.request_end_ns = Some(frame.end_ns);
        exchange.end_ns = frame.end_ns;
        exchange.request_bytes = frame.length;
        exchange.stream = self.count;
        self.count += 1;
        exchange
    }

    /// The client's answer to the greeting.
    fn answer(&mut self, frame: &Frame<'_>) -> Result<(), WrongProtocol> {
        let client = Capabilities::of_client(frame.head).ok_or(WrongProtocol)?;
        if client.asks_for_tls() && frame.length == TLS_REQUEST {
            self.phase = Phase::Encrypted;
            return Ok(());
        }
        self.capabilities = self.capabilities.both(client);
        self.phase = Phase::Authenticating;
        let mut exchange = self.begin(frame);
        exchange.method = Some("CONNECT".to_owned());
        exchange.route = Some("CONNECT".to_owned());
        self.open.push_back(Open {
            exchange,
            command: Command::ChangeUser,
            answer: Answer::new(Command::ChangeUser, false),
            statement: None,
            number: 0,
            tail: None,
        });
        Ok(())
    }

    /// The server's part of an authentication: only its end is looked at.
    fn authenticated(&mut self, frame: &Frame<'_>, out: &mut Vec<Exchange>) {
        if let Some(open) = self.open.front_mut() {
            open.exchange.first_byte_ns.get_or_insert(frame.begin_ns);
            open.exchange.response_bytes += frame.length;
        }
        let payload = frame.head.get(HEADER..).unwrap_or_default();
        let ending = match payload.first() {
            Some(0) => Ending::Fine,
            Some(0xff) => failure(payload),
            _ => return,
        };
        self.phase = if self.capabilities.compresses() {
            Phase::Opaque
        } else {
            Phase::Commands
        };
        if let Some(open) = self.open.pop_front() {
            let exchange = finished(open.exchange, &ending, frame.end_ns);
            self.order.give(exchange, out);
        }
    }

    fn client_packet(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let (length, number) = packet(frame.head).ok_or(WrongProtocol)?;
        let continued = std::mem::replace(&mut self.continues, length == MOST_PACKET);
        let sends_file = self
            .open
            .front()
            .is_some_and(|open| open.answer.next == Next::File);
        if continued || sends_file {
            let open = if sends_file {
                self.open.front_mut()
            } else {
                self.open.back_mut()
            };
            if let Some(open) = open {
                open.exchange.request_bytes += frame.length;
                open.exchange.request_end_ns = Some(frame.end_ns);
                open.exchange.end_ns = open.exchange.end_ns.max(frame.end_ns);
                open.number = number.wrapping_add(1);
            }
            return Ok(());
        }
        if number != 0 {
            // A part of something whose beginning was not seen.
            return if self.order.is_dirty() {
                Ok(())
            } else {
                Err(WrongProtocol)
            };
        }
        self.command(frame, length, out)
    }

    fn command(
        &mut self,
        frame: &Frame<'_>,
        length: u32,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let mut reader = Reader::new(frame.head.get(HEADER..).unwrap_or_default());
        let command = reader.u8().and_then(Command::of).ok_or(WrongProtocol)?;
        let mut exchange = self.begin(frame);
        exchange.method = Some(command.name().to_owned());
        exchange.route = Some(command.name().to_owned());
        let whole = frame.head.len() as u64 == frame.length && length < MOST_PACKET;
        let mut statement = None;
        match command {
            Command::Query => {
                let folded = fold(reader.rest(), whole, Dialect::MySql, self.limits.text_bytes);
                name(&mut exchange, Some(&folded));
            }
            Command::Prepare => {
                let most = self.limits.text_bytes.saturating_sub(8);
                let folded = fold(reader.rest(), whole, Dialect::MySql, most);
                exchange.route = Some(format!("PREPARE {}", folded.text));
                let folded = Arc::new(folded);
                self.last_prepared = Some(Arc::clone(&folded));
                statement = Some(folded);
            }
            Command::Execute | Command::BulkExecute => {
                let known = match reader.u32_le() {
                    Some(u32::MAX) => self.last_prepared.as_deref(),
                    Some(id) => self.statements.get(&id).map(Arc::as_ref),
                    None => None,
                };
                name(&mut exchange, known);
            }
            Command::CloseStatement => {
                if let Some(id) = reader.u32_le() {
                    self.statements.remove(&id);
                }
            }
            Command::InitDb => {
                let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$-".contains(byte);
                let database = reader.rest();
                if database.len() <= 64 && database.iter().all(plain) {
                    exchange.route = Some(format!("USE {}", printable(database, 64)));
                }
            }
            Command::ResetConnection | Command::ChangeUser => self.statements.clear(),
            Command::Replication => self.phase = Phase::Opaque,
            _ => {}
        }
        if command.is_silent() {
            return Ok(());
        }
        if self.open.len() >= self.limits.open_exchanges {
            self.lose(frame.end_ns, out);
        }
        if self.order.is_dirty() || self.phase == Phase::Opaque {
            give_unknown(exchange, frame.end_ns, out);
            return Ok(());
        }
        self.open.push_back(Open {
            exchange,
            command,
            answer: Answer::new(command, self.capabilities.has_optional_metadata()),
            statement,
            number: 1,
            tail: None,
        });
        Ok(())
    }

    fn server_packet(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        if self.order.is_dirty() {
            return Ok(());
        }
        let (length, number) = packet(frame.head).ok_or(WrongProtocol)?;
        if self.open.front().is_none_or(|open| open.number != number) {
            return after_an_answer(frame, length).inspect_err(|_| self.order.contradict(out));
        }
        if self.order.answer(out) {
            self.lose(frame.end_ns, out);
            return Ok(());
        }
        let Some(open) = self.open.front_mut() else {
            return Err(WrongProtocol);
        };
        open.number = number.wrapping_add(1);
        open.exchange.first_byte_ns.get_or_insert(frame.begin_ns);
        open.exchange.response_bytes += frame.length;
        if open.command == Command::ChangeUser {
            self.phase = Phase::Authenticating;
            self.authenticated(frame, out);
            return Ok(());
        }
        let ending = match open.answer.take(frame) {
            Effect::More => return Ok(()),
            Effect::Strange => {
                self.order.contradict(out);
                return Err(WrongProtocol);
            }
            Effect::Unread => {
                self.lose(frame.end_ns, out);
                return Ok(());
            }
            Effect::Done(ending) => ending,
        };
        let Some(open) = self.open.pop_front() else {
            return Err(WrongProtocol);
        };
        self.remember(&ending, open.statement);
        let exchange = finished(open.exchange, &ending, frame.end_ns);
        self.order.give(exchange, out);
        Ok(())
    }

    /// Remembers a statement that has been prepared.
    fn remember(&mut self, ending: &Ending, statement: Option<Arc<Folded>>) {
        if let (Ending::Prepared(id), Some(statement)) = (ending, statement) {
            if self.statements.len() >= self.limits.open_exchanges {
                self.statements.clear();
            }
            self.statements.insert(*id, statement);
        }
    }

    /// The end of an answer was not captured, and the client has gone on: it ended with what came last.
    fn finish_tail(&mut self, open: Open, ending: Option<Ending>) -> Exchange {
        // What follows the number of a statement cannot fail; an error may follow rows.
        let ending = open.answer.prepared_statement().or(ending);
        let ending = ending.unwrap_or(Ending::Unread);
        let end_ns = open.exchange.end_ns;
        self.remember(&ending, open.statement);
        finished(open.exchange, &ending, end_ns)
    }

    fn lose(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.order.lose(out);
        self.continues = false;
        for open in self.open.drain(..) {
            give_unknown(open.exchange, at_ns, out);
        }
        if self.phase != Phase::Encrypted && self.phase != Phase::Opaque {
            self.phase = Phase::Commands;
        }
    }
}

impl Speech for MysqlSession {
    fn protocol(&self) -> Protocol {
        Protocol::MySql
    }

    fn header(&self, _direction: Direction) -> usize {
        HEADER
    }

    fn measure(&self, direction: Direction, header: &[u8]) -> Option<Extent> {
        let (length, _) = packet(header)?;
        let keep = match (self.phase, direction) {
            (Phase::Greeting, Direction::ToClient) => KEPT_GREETING,
            (Phase::Answering, Direction::ToServer) => KEPT_CAPABILITIES,
            (Phase::Commands, Direction::ToServer) if !self.continues => self.limits.pending_bytes,
            (_, Direction::ToServer) => HEADER,
            (_, Direction::ToClient) => KEPT_ANSWER,
        };
        Some(Extent {
            length: HEADER as u64 + u64::from(length),
            keep,
        })
    }

    fn resumes(&self, direction: Direction, bytes: &[u8], _at_ns: u64) -> bool {
        let Some((length, number)) = packet(bytes) else {
            return false;
        };
        match direction {
            Direction::ToServer => {
                let command = bytes.get(HEADER).copied().and_then(Command::of);
                number == 0 && length > 0 && command.is_some()
            }
            Direction::ToClient => {
                let wanted = self.open.front().map(|open| open.number);
                !self.order.is_dirty() && wanted == Some(number) && length > 0
            }
        }
    }

    fn begin_tail(&mut self, bytes: u64, at_ns: u64) -> bool {
        let asks_once = self.open.len() == 1 && self.order.may_wait();
        let Some(open) = self.open.front_mut() else {
            return false;
        };
        let is_begun = !matches!(open.answer.next, Next::First | Next::File);
        if self.phase != Phase::Commands || !asks_once || !is_begun {
            return false;
        }
        open.exchange.response_bytes += bytes;
        open.exchange.end_ns = at_ns.max(open.exchange.end_ns);
        open.tail = Some(Tail(None));
        true
    }

    fn pass_tail(&mut self, piece: &Piece<'_>) {
        if let Some(open) = self.open.front_mut() {
            open.exchange.response_bytes += piece.length;
            open.exchange.end_ns = piece.at_ns.max(open.exchange.end_ns);
            let is_whole = piece.uncaptured() == 0;
            open.tail = Some(Tail(if is_whole { ending(piece.bytes) } else { None }));
        }
    }

    fn skipped_answers(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if !self.open.is_empty() && !self.order.is_dirty() {
            self.lose(at_ns, out);
        }
    }

    fn call(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Some(mut open) = self.open.pop_front_if(|open| open.tail.is_some()) {
            let ending = open.tail.take().and_then(|Tail(ending)| ending);
            let ended = self.finish_tail(open, ending);
            self.order.call_behind(at_ns, Some(ended), out);
            return;
        }
        let sends_file = self
            .open
            .front()
            .is_some_and(|open| open.answer.next == Next::File);
        if self.phase == Phase::Commands && !sends_file && !self.continues {
            self.order.call(at_ns, self.open.len());
        }
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        match (self.phase, direction) {
            (Phase::Greeting, Direction::ToClient) => {
                self.capabilities = Capabilities::of_greeting(frame.head).ok_or(WrongProtocol)?;
                self.phase = Phase::Answering;
                Ok(())
            }
            (Phase::Answering, Direction::ToServer) => self.answer(frame),
            (Phase::Authenticating, Direction::ToClient) => {
                self.authenticated(frame, out);
                Ok(())
            }
            (Phase::Authenticating, Direction::ToServer) => {
                if let Some(open) = self.open.front_mut() {
                    open.exchange.request_bytes += frame.length;
                    open.exchange.request_end_ns = Some(frame.end_ns);
                    open.exchange.end_ns = open.exchange.end_ns.max(frame.end_ns);
                }
                Ok(())
            }
            (Phase::Commands, Direction::ToServer) => self.client_packet(frame, out),
            (Phase::Commands, Direction::ToClient) => self.server_packet(frame, out),
            (Phase::Greeting, Direction::ToServer) | (Phase::Answering, Direction::ToClient) => {
                Err(WrongProtocol)
            }
            (Phase::Encrypted | Phase::Opaque, _) => Ok(()),
        }
    }

    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        self.lose(at_ns, out);
        if direction == Direction::ToServer {
            // A statement may have been closed and its number given to another.
            self.statements.clear();
        }
        self.last_prepared = None;
    }

    fn passed(&mut self, _direction: Direction, at_ns: u64) {
        self.order.passed(at_ns);
    }

    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        let open = self.open.drain(..).map(|open| open.exchange);
        self.order.close(open, at_ns, answered_ns, out);
    }

    fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.rest(now_ns, self.open.len(), out);
    }

    fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.stop(now_ns, self.open.len(), out);
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

/// The end of the descriptions behind a prepared statement comes when that is taken for whole.
fn after_an_answer(frame: &Frame<'_>, length: u32) -> Result<(), WrongProtocol> {
    let is_end = length == 5 && frame.head.get(HEADER) == Some(&0xfe);
    if is_end { Ok(()) } else { Err(WrongProtocol) }
}

fn name(exchange: &mut Exchange, statement: Option<&Folded>) {
    exchange.method = statement.and_then(|statement| statement.method.clone());
    let text = statement.map(|statement| statement.text.clone());
    exchange.route = text.filter(|text| !text.is_empty());
}

fn finished(mut exchange: Exchange, ending: &Ending, at_ns: u64) -> Exchange {
    (exchange.status, exchange.outcome) = match ending {
        Ending::Fine | Ending::Prepared(_) => (Some(Status::Fine), Outcome::Ok),
        Ending::Failed { code, state } => {
            let outcome = outcome_of(*code, state.as_deref());
            (Some(Status::Code(code.to_string())), outcome)
        }
        Ending::Unread => (None, Outcome::Unknown),
    };
    exchange.is_timed = exchange.outcome == Outcome::Unknown;
    exchange.end_ns = at_ns.max(exchange.end_ns);
    exchange
}

fn give_unknown(mut exchange: Exchange, at_ns: u64, out: &mut Vec<Exchange>) {
    exchange.outcome = Outcome::Unknown;
    exchange.lose_sizes();
    exchange.end_ns = at_ns.max(exchange.end_ns);
    out.push(exchange);
}

/// Numbers of errors (MySQL, "Server Error Message Reference") that are the server's, and classes of
/// states that are: connections, roll-backs.
fn outcome_of(code: u16, state: Option<&str>) -> Outcome {
    let class = state.and_then(|state| state.get(..2));
    match code {
        // Full disks, no memory, no threads, too many connections, shut-down, read-only, lock waits.
        1021
        | 1037
        | 1038
        | 1040
        | 1041
        | 1053
        | 1079
        | 1080
        | 1135
        | 1152
        | 1158..=1161
        | 1203
        | 1205
        | 1206
        | 1290
        | 1317
        | 1836
        | 3024
        | 3572 => Outcome::ServerError,
        _ if matches!(class, Some("08" | "40" | "70")) => Outcome::ServerError,
        _ => Outcome::ClientError,
    }
}
