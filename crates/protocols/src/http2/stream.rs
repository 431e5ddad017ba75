//! One stream: a request with its answer.

use super::{
    fields::Fields,
    grpc::{self, MessageCounter},
};
use crate::{
    Direction, Exchange, Messages, Options, Outcome, Protocol, Status,
    http_message::{Intake, outcome_of_status},
    route::fold_grpc_path,
};

#[derive(Debug)]
pub(super) struct Stream {
    exchange: Exchange,
    call: Call,
    purpose: Purpose,
    has_answer: bool,
    status: Option<u16>,
    grpc_status: Option<u32>,
    /// The answer may have a `grpc-status` that could not be read.
    may_hide_status: bool,
    to_server: MessageCounter,
    to_client: MessageCounter,
    /// The beginning or the end of the answer may have been missed.
    may_have_ended: bool,
    /// Of each body that is kept.
    body_bytes: usize,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Request,
    Tunnel,
    /// A request that was missed: only its answer is seen.
    Unseen,
}

/// Whether a stream is a call of gRPC. Its status is then that of `grpc-status`, whatever `:status` says.
#[derive(Debug)]
enum Call {
    Yes,
    No,
    /// Neither content type could be read. The route is the one of a call.
    Unresolved {
        route: Option<String>,
    },
}

/// What a block of an answer means for its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    GoesOn,
    /// The stream carries another protocol from here on.
    Tunnel,
}

impl Stream {
    /// A stream that a request opens.
    pub(super) fn open(id: u32, begin_ns: u64, fields: &Fields, options: &Options) -> Self {
        let mut exchange = Exchange::new(Protocol::Http2, begin_ns);
        exchange.stream = u64::from(id);
        let method = fields.text(":method");
        let path = fields.text(":path");
        let call = match fields.get("content-type") {
            Some(content_type) if grpc::is_grpc(content_type) => Call::Yes,
            // Calls are always sent by POST.
            None if fields.has_unknown && method.as_deref().is_none_or(|it| it == "POST") => {
                Call::Unresolved {
                    route: path.as_deref().map(fold_grpc_path),
                }
            }
            Some(_) | None => Call::No,
        };
        if matches!(call, Call::Yes) {
            exchange.protocol = Protocol::Grpc;
        }
        let purpose = if method.as_deref() == Some("CONNECT") {
            Purpose::Tunnel
        } else {
            Purpose::Request
        };
        if purpose == Purpose::Tunnel && fields.get(":protocol") == Some(b"websocket") {
            exchange.protocol = Protocol::WebSocket;
        }
        let mut intake = Intake::new(&mut exchange, options);
        if let Some(method) = &method {
            intake.method(method);
        }
        if let Some(path) = &path {
            intake.target(path);
        }
        if let Some(authority) = fields.text(":authority").or_else(|| fields.text("host")) {
            intake.authority(&authority);
        }
        for (name, value) in fields.headers().filter(|(name, _)| *name != "host") {
            intake.request_header(name, value);
        }
        Self {
            body_bytes: options.privacy.body_bytes,
            ..Self::of(exchange, purpose, call)
        }
    }

    /// The stream of a request that was sent as HTTP/1 (RFC 7540, section 3.2).
    pub(super) fn upgraded(mut exchange: Exchange) -> Self {
        exchange.protocol = Protocol::Http2;
        exchange.stream = 1;
        Self::of(exchange, Purpose::Request, Call::No)
    }

    /// A stream of which the answer comes and the request was missed.
    pub(super) fn unseen(id: u32, begin_ns: u64) -> Self {
        let mut exchange = Exchange::new(Protocol::Http2, begin_ns);
        exchange.stream = u64::from(id);
        exchange.request_size_known = false;
        Self::of(exchange, Purpose::Unseen, Call::Unresolved { route: None })
    }

    fn of(exchange: Exchange, purpose: Purpose, call: Call) -> Self {
        Self {
            exchange,
            call,
            purpose,
            has_answer: false,
            status: None,
            grpc_status: None,
            may_hide_status: true,
            to_server: MessageCounter::default(),
            to_client: MessageCounter::default(),
            may_have_ended: false,
            body_bytes: 0,
        }
    }

    /// Takes a block of the answer: its head, an interim answer, or its trailers.
    pub(super) fn answer(
        &mut self,
        begin_ns: u64,
        fields: &Fields,
        is_end: bool,
        options: &Options,
    ) -> Answer {
        let status = fields.number::<u16>(":status");
        let is_interim = status.is_some_and(|status| status < 200) && !is_end;
        if is_interim {
            return Answer::GoesOn;
        }
        // Trailers end the answer; a head whose status cannot be read may have been an interim one.
        let is_head = fields.has(":status") || !self.has_answer || !is_end;
        if !is_head && self.status.is_none() && fields.has_unknown {
            self.exchange.first_byte_ns = None;
        }
        if is_head {
            self.has_answer = true;
            self.status = status;
            let is_first = fields.has(":status") || !self.may_have_ended;
            self.exchange.first_byte_ns = is_first.then_some(begin_ns);
        }
        self.learn_call(fields);
        if let Some(status) = fields.number("grpc-status") {
            self.grpc_status = Some(status);
        }
        // A status stands in the last block: in trailers, or in a head that is the whole answer.
        self.may_hide_status = is_end && fields.has_unknown;
        let mut intake = Intake::new(&mut self.exchange, options);
        for (name, value) in fields.headers() {
            intake.response_header(name, value);
        }
        if self.purpose == Purpose::Tunnel && self.status.is_some_and(|status| status < 300) {
            return Answer::Tunnel;
        }
        Answer::GoesOn
    }

    /// Finds out from a block of the answer whether this is a call of gRPC.
    fn learn_call(&mut self, fields: &Fields) {
        let is_unresolved = matches!(self.call, Call::Unresolved { .. });
        let is_call = match fields.get("content-type") {
            Some(content_type) if grpc::is_grpc(content_type) => true,
            Some(_) if is_unresolved => {
                self.call = Call::No;
                false
            }
            None if is_unresolved => fields.has("grpc-status"),
            Some(_) | None => false,
        };
        if is_call && self.exchange.protocol == Protocol::Http2 {
            self.exchange.protocol = Protocol::Grpc;
            if let Call::Unresolved { route: Some(route) } =
                std::mem::replace(&mut self.call, Call::Yes)
            {
                self.exchange.route = Some(route);
            }
        }
    }

    pub(super) fn content(&mut self, direction: Direction, bytes: &[u8]) {
        self.add(direction, bytes.len() as u64);
        self.exchange.keep_body(direction, bytes, self.body_bytes);
        self.counter(direction).take(bytes);
    }

    pub(super) fn missing_content(&mut self, direction: Direction, count: u64) {
        self.add(direction, count);
        self.exchange.miss_body(direction, self.body_bytes);
        self.counter(direction).skip(count);
    }

    pub(super) fn missing_padding(&mut self, direction: Direction) {
        self.exchange.lose_size(direction);
        self.counter(direction).lose();
    }

    /// Frames of this direction may have been missed.
    pub(super) fn missed(&mut self, direction: Direction) {
        self.missing_padding(direction);
        self.exchange.miss_body(direction, self.body_bytes);
        self.may_have_ended |= direction == Direction::ToClient;
    }

    pub(super) fn request_ended(&mut self, at_ns: u64) {
        self.exchange.request_end_ns = Some(at_ns);
    }

    /// The stream ended as it should.
    pub(super) fn finish(mut self, at_ns: u64) -> Exchange {
        (self.exchange.status, self.exchange.outcome) = self.result();
        if self.purpose == Purpose::Unseen {
            self.exchange.outcome = Outcome::Unknown;
        }
        self.check_request();
        self.give_out(at_ns)
    }

    /// The stream was reset, or the connection ended.
    pub(super) fn break_off(mut self, at_ns: u64) -> Exchange {
        self.may_hide_status = true;
        (self.exchange.status, _) = self.result();
        self.exchange.outcome = if self.may_have_ended || self.purpose == Purpose::Unseen {
            Outcome::Unknown
        } else {
            Outcome::Broken
        };
        self.check_request();
        self.give_out(at_ns)
    }

    /// Of a request whose end was not seen more may be missing than has shown yet.
    fn check_request(&mut self) {
        if self.exchange.request_end_ns.is_none() && self.purpose != Purpose::Tunnel {
            self.to_server.lose();
            self.exchange.request_size_known = false;
        }
    }

    /// Nothing more of the stream will be looked at.
    pub(super) fn give_up(mut self, at_ns: u64) -> Exchange {
        self.may_hide_status = true;
        (self.exchange.status, _) = self.result();
        self.exchange.outcome = Outcome::Unknown;
        self.exchange.lose_sizes();
        self.give_out(at_ns)
    }

    fn result(&self) -> (Option<Status>, Outcome) {
        if self.exchange.protocol == Protocol::Grpc {
            return match (self.grpc_status, self.status) {
                (Some(status), None | Some(200)) => {
                    (Some(Status::Grpc(status)), grpc::outcome_of_grpc(status))
                }
                (_, Some(status)) if status != 200 => {
                    (Some(Status::Http(status)), outcome_of_status(status))
                }
                (None | Some(_), None | Some(_)) => (None, Outcome::Unknown),
            };
        }
        let is_unresolved = matches!(self.call, Call::Unresolved { .. }) && self.may_hide_status;
        match self.status {
            Some(200) if is_unresolved => (None, Outcome::Unknown),
            Some(status) => (Some(Status::Http(status)), outcome_of_status(status)),
            None => (None, Outcome::Unknown),
        }
    }

    fn give_out(mut self, at_ns: u64) -> Exchange {
        if self.exchange.protocol == Protocol::Grpc
            && self.purpose != Purpose::Unseen
            && let (Some(to_server), Some(to_client)) =
                (self.to_server.count(), self.to_client.count())
        {
            self.exchange.messages = Some(Messages {
                to_server,
                to_client,
            });
        }
        self.exchange.end_ns = at_ns;
        self.exchange
    }

    fn add(&mut self, direction: Direction, bytes: u64) {
        match direction {
            Direction::ToServer => self.exchange.request_bytes += bytes,
            Direction::ToClient => self.exchange.response_bytes += bytes,
        }
    }

    fn counter(&mut self, direction: Direction) -> &mut MessageCounter {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}
