//! Commands with their replies.

use std::collections::VecDeque;

use super::{
    super::{Exchange, Limits, Options, Outcome, Protocol, Status, order::Order},
    commands,
    values::Value,
};

#[derive(Debug)]
pub(super) struct Session {
    limits: Limits,
    open: VecDeque<Open>,
    count: u64,
    /// Channels are listened to: what comes without being asked for is no reply.
    subscribed: bool,
    monitored: bool,
    replies: Replies,
    opaque: bool,
    order: Order,
}

/// Whether commands get replies (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    On,
    Off,
    /// The next command gets none.
    Skip,
}

#[derive(Debug)]
struct Open {
    exchange: Exchange,
    kind: Kind,
    /// Replies to come: one, or with subscriptions one for each channel.
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usual,
    Subscription,
    Monitor,
    Replication,
    Reset,
}

impl Session {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        Self {
            limits: options.limits,
            open: VecDeque::new(),
            count: 0,
            subscribed: false,
            monitored: false,
            replies: Replies::On,
            opaque: false,
            order: Order::new(joined),
        }
    }

    pub(super) fn command(&mut self, value: &Value, out: &mut Vec<Exchange>) {
        if value.elements == 0 {
            return;
        }
        let mut exchange = self.begin(value);
        exchange.request_end_ns = Some(value.end_ns);
        exchange.end_ns = value.end_ns;
        let words: Vec<&str> = value.words.iter().map(String::as_str).collect();
        if let ["CLIENT", "REPLY", mode, ..] = words.as_slice() {
            self.replies = match *mode {
                "OFF" => Replies::Off,
                "SKIP" => Replies::Skip,
                _ => Replies::On,
            };
            if self.replies != Replies::On {
                give_unanswered(exchange, out);
                return;
            }
        } else if self.replies != Replies::On {
            if self.replies == Replies::Skip {
                self.replies = Replies::On;
            }
            give_unanswered(exchange, out);
            return;
        }
        if self.order.is_dirty() {
            // Commands of which nobody knows whose reply is whose.
            give_unknown(exchange, out);
            return;
        }
        let (kind, left) = match words.first().copied() {
            Some("SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE") => {
                (Kind::Subscription, value.elements.saturating_sub(1).max(1))
            }
            // Without channels: one confirmation for each that was subscribed, how many is unknown;
            // the first one is taken.
            Some("UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE") => {
                (Kind::Subscription, value.elements.saturating_sub(1).max(1))
            }
            Some("MONITOR") => (Kind::Monitor, 1),
            Some("PSYNC" | "SYNC") => (Kind::Replication, 1),
            Some("RESET") => (Kind::Reset, 1),
            _ => (Kind::Usual, 1),
        };
        if self.open.len() >= self.limits.open_exchanges {
            self.lost(value.end_ns, out);
            give_unknown(exchange, out);
            return;
        }
        self.open.push_back(Open {
            exchange,
            kind,
            left,
        });
    }

    /// A command whose end was not captured.
    pub(super) fn cut_command(&mut self, value: &Value, out: &mut Vec<Exchange>) {
        if value.words.is_empty() {
            return;
        }
        let mut exchange = self.begin(value);
        exchange.lose_sizes();
        give_unknown(exchange, out);
    }

    fn begin(&mut self, value: &Value) -> Exchange {
        let mut exchange = Exchange::new(Protocol::Redis, value.begin_ns);
        exchange.stream = self.count;
        self.count += 1;
        exchange.request_bytes = value.bytes;
        if let Some((method, route)) = operation(value) {
            exchange.method = Some(method);
            exchange.route = Some(route);
        }
        exchange
    }

    pub(super) fn reply(&mut self, value: &Value, out: &mut Vec<Exchange>) {
        if self.is_push(value) || value.kind == b'|' {
            return;
        }
        if self.order.answer() {
            self.lost(value.end_ns, out);
        }
        let Some(open) = self.open.front_mut() else {
            // A reply to nothing: the pairs are off by what was not seen.
            if !self.monitored && !self.subscribed && !self.order.is_dirty() {
                self.order.lose();
            }
            return;
        };
        open.exchange.first_byte_ns.get_or_insert(value.begin_ns);
        open.exchange.response_bytes += value.bytes;
        if value.error.is_none() {
            open.left = open.left.saturating_sub(1);
            if open.left > 0 {
                return;
            }
        }
        let Some(Open {
            mut exchange, kind, ..
        }) = self.open.pop_front()
        else {
            return;
        };
        exchange.end_ns = value.end_ns;
        (exchange.status, exchange.outcome) = match &value.error {
            Some(code) => (Some(Status::Code(code.clone())), outcome_of(code)),
            None => (Some(Status::Fine), Outcome::Ok),
        };
        if value.error.is_none() {
            match kind {
                Kind::Usual => {}
                Kind::Subscription => self.subscribed = true,
                Kind::Monitor => self.monitored = true,
                // What follows is the data of the server, whose length is not that of a value.
                Kind::Replication => self.opaque = true,
                Kind::Reset => {
                    self.subscribed = false;
                    self.monitored = false;
                    self.replies = Replies::On;
                }
            }
        }
        out.push(exchange);
    }

    /// Whether a value came without being asked for.
    fn is_push(&self, value: &Value) -> bool {
        let front = self.open.front().map(|open| open.kind);
        let word = value.words.first().map(String::as_str);
        let confirms = matches!(
            word,
            Some(
                "SUBSCRIBE"
                    | "PSUBSCRIBE"
                    | "SSUBSCRIBE"
                    | "UNSUBSCRIBE"
                    | "PUNSUBSCRIBE"
                    | "SUNSUBSCRIBE"
            )
        );
        match value.kind {
            b'>' => !(confirms && front == Some(Kind::Subscription)),
            b'*' if self.subscribed || front == Some(Kind::Subscription) => {
                let message = matches!(word, Some("MESSAGE" | "PMESSAGE" | "SMESSAGE"));
                message || (confirms && front != Some(Kind::Subscription))
            }
            b'+' => self.monitored && front.is_none(),
            _ => false,
        }
    }

    /// What is open can no longer be told.
    pub(super) fn lost(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.order.lose();
        while let Some(Open { mut exchange, .. }) = self.open.pop_front() {
            exchange.end_ns = at_ns.max(exchange.begin_ns);
            give_unknown(exchange, out);
        }
    }

    pub(super) fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        for Open { mut exchange, .. } in self.open.drain(..) {
            exchange.end_ns = at_ns.max(exchange.begin_ns);
            exchange.outcome = Outcome::Broken;
            out.push(exchange);
        }
    }

    /// A call of the client begins with a command.
    pub(super) fn call(&mut self, at_ns: u64) {
        self.order.call(at_ns, self.open.len());
    }

    pub(super) fn passed(&mut self, at_ns: u64) {
        self.order.passed(at_ns);
    }

    /// The next reply is that of a command that is known.
    pub(super) fn awaits_reply(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.order.is_dirty()
    }

    /// What follows is none of the protocol.
    pub(super) fn is_opaque(&self) -> bool {
        self.opaque
    }
}

/// All that there will be of it: the client wants no reply.
fn give_unanswered(mut exchange: Exchange, out: &mut Vec<Exchange>) {
    exchange.outcome = Outcome::Ok;
    out.push(exchange);
}

fn give_unknown(mut exchange: Exchange, out: &mut Vec<Exchange>) {
    exchange.outcome = Outcome::Unknown;
    exchange.lose_sizes();
    out.push(exchange);
}

/// What a command does: its name, and that with `?` for its arguments.
fn operation(value: &Value) -> Option<(String, String)> {
    let method = value
        .words
        .first()
        .filter(|word| commands::is_known(word))?;
    let mut route = method.clone();
    let mut named = 1;
    if commands::has_subcommands(method)
        && let Some(subcommand) = value.words.get(1)
        && commands::is_known_subcommand(subcommand)
    {
        route.push(' ');
        route.push_str(subcommand);
        named = 2;
    }
    // How many there are of keys and values differs from call to call.
    match value.elements.saturating_sub(named) {
        0 => {}
        1 => route.push_str(" ?"),
        2 => route.push_str(" ? ?"),
        _ => route.push_str(" ? ? ..."),
    }
    Some((method.clone(), route))
}

/// Codes of server.c's shared errors.
fn outcome_of(code: &str) -> Outcome {
    match code {
        // Ask another node: nothing has failed.
        "MOVED" | "ASK" => Outcome::Ok,
        "BUSY" | "CLUSTERDOWN" | "INPROG" | "IOERR" | "LOADING" | "MASTERDOWN" | "MISCONF"
        | "NOGOODSLAVE" | "NOMASTERLINK" | "NOREPLICAS" | "OOM" | "READONLY" | "TRYAGAIN"
        | "UNKILLABLE" => Outcome::ServerError,
        _ => Outcome::ClientError,
    }
}
