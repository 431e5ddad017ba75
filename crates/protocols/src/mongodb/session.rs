//! Requests with their replies.

use super::{
    super::{
        Direction, Exchange, Limits, Options, Outcome, Protocol, Status, WrongProtocol,
        framed::Speech,
        frames::{Extent, Frame},
        named::Named,
    },
    message::{HEADER, Header, Message, Reply, is_length, read},
};

#[derive(Debug)]
pub(super) struct MongodbSession {
    limits: Limits,
    /// With the ids of requests.
    open: Named<u32>,
}

/// Bytes of a request that may hold the name of its command.
const KEPT_REQUEST: usize = HEADER + 512;
/// Bytes of a reply that may hold how it went.
const KEPT_REPLY: usize = HEADER + 2048;

impl MongodbSession {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            limits: options.limits,
            open: Named::new(options.limits.open_exchanges),
        }
    }

    fn request(
        &mut self,
        header: &Header,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let body = frame.head.get(HEADER..).unwrap_or_default();
        let (name, collection, is_silent) = match read(header, body) {
            Some(Message::Command {
                name,
                collection,
                is_silent,
            }) => (name, collection, is_silent),
            Some(Message::Opaque) => (None, None, false),
            Some(Message::Silent) => return Ok(()),
            Some(Message::Reply(_)) | None => return Err(WrongProtocol),
        };
        let mut exchange = self.open.request(Protocol::MongoDb, frame);
        exchange.route = match (&name, collection) {
            (Some(name), Some(collection)) => Some(format!("{name} {collection}")),
            (name, _) => name.clone(),
        };
        exchange.method = name;
        if is_silent {
            // All that there will be of it.
            exchange.outcome = Outcome::Ok;
            out.push(exchange);
            return Ok(());
        }
        self.open.wait(exchange, header.request_id, out);
        Ok(())
    }

    fn reply(
        &mut self,
        header: &Header,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let body = frame.head.get(HEADER..).unwrap_or_default();
        let message = read(header, body).ok_or(WrongProtocol)?;
        let is_asked = |id: &u32| *id == header.response_to;
        // To a request that was not seen, or one more to a request that has had its reply (exhaust).
        let Some((mut exchange, _)) = self.open.answered(frame, is_asked) else {
            return Ok(());
        };
        let reply = match message {
            Message::Reply(reply) => reply,
            Message::Opaque | Message::Command { .. } | Message::Silent => Reply::NotCaptured,
        };
        (exchange.status, exchange.outcome) = match reply {
            Reply::Fine => (Some(Status::Fine), Outcome::Ok),
            Reply::ProbablyFine => (None, Outcome::Ok),
            Reply::Failed { code, name } => {
                let shown = name.or_else(|| code.map(|code| code.to_string()));
                (shown.map(Status::Code), outcome_of(code))
            }
            Reply::NotCaptured => (None, Outcome::Unknown),
        };
        // Its end was seen all the same.
        exchange.is_timed = exchange.outcome == Outcome::Unknown;
        out.push(exchange);
        Ok(())
    }
}

impl Speech for MongodbSession {
    fn protocol(&self) -> Protocol {
        Protocol::MongoDb
    }

    fn header(&self, _direction: Direction) -> usize {
        HEADER
    }

    fn measure(&self, direction: Direction, header: &[u8]) -> Option<Extent> {
        let header = Header::read(header)?;
        let keep = match direction {
            Direction::ToServer if header.response_to != 0 => return None,
            Direction::ToServer => KEPT_REQUEST,
            Direction::ToClient => KEPT_REPLY,
        };
        Some(Extent {
            length: u64::from(header.length),
            keep: keep.min(self.limits.pending_bytes.max(HEADER)),
        })
    }

    /// Go's driver reads the four bytes of the length alone.
    fn is_length(&self, bytes: &[u8]) -> bool {
        let length = bytes.try_into().map(u32::from_le_bytes);
        length.is_ok_and(is_length)
    }

    fn resumes(&self, direction: Direction, bytes: &[u8], _at_ns: u64) -> bool {
        let Some(header) = Header::read(bytes) else {
            return false;
        };
        match direction {
            Direction::ToServer => header.response_to == 0,
            Direction::ToClient => self.open.awaits(|id| *id == header.response_to),
        }
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let header = Header::read(frame.head).ok_or(WrongProtocol)?;
        match direction {
            Direction::ToServer => self.request(&header, frame, out),
            Direction::ToClient => self.reply(&header, frame, out),
        }
    }

    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        self.open.lost(direction, at_ns, out);
    }

    fn resumed_answers(&mut self, at_ns: u64) {
        self.open.skipped(at_ns);
    }

    fn skipped_answers(&mut self, at_ns: u64, _out: &mut Vec<Exchange>) {
        self.open.skipped(at_ns);
    }

    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        self.open.close(at_ns, answered_ns, out);
    }
}

/// Codes of errors that are the server's (`error_codes.yml`: network, shut-down,
/// interruption, not primary, time limits).
fn outcome_of(code: Option<i64>) -> Outcome {
    match code {
        Some(
            1 | 6 | 7 | 24 | 50 | 63 | 64 | 89 | 91 | 112 | 133 | 189 | 202 | 262 | 365 | 9001
            | 10_107 | 11_600 | 11_602 | 13_435 | 13_436,
        ) => Outcome::ServerError,
        _ => Outcome::ClientError,
    }
}
