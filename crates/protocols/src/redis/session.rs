//! Commands with their replies.

use std::collections::VecDeque;

use super::{
    super::{Exchange, Limits, Options, Outcome, Protocol, Status, order::Order},
    commands,
    values::Value,
};

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
#[derive(Debug)]
pub(super) struct RedisSession {
    limits: Limits,
    open: VecDeque<Open>,
    count: u64,
    /// Channels are listened to: what comes without being asked for is not a reply.
    subscribed: bool,
    monitored: bool,
    replies: Replies,
    opaque: bool,
    /// Commands went by behind the captured bytes: their replies follow those of `open`.
    unseen: bool,
    /// More of the only reply that is open goes by behind the captured bytes.
    tail: bool,
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

impl RedisSession {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        Self {
            limits: options.limits,
            open: VecDeque::new(),
            count: 0,
            subscribed: false,
            monitored: false,
            replies: Replies::On,
            opaque: false,
            unseen: false,
            tail: false,
            order: Order::new(joined, options.limits.open_exchanges),
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
            // Replies cannot be assigned to commands.
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

    /// Commands went by behind the captured bytes; of the first of them `cut` may be known.
    pub(super) fn unseen(&mut self, cut: Option<Value>, out: &mut Vec<Exchange>) {
        // How many replies there will be is known by its first words.
        let named = |value: &Value| value.words.first().is_some_and(|word| word != "CLIENT");
        if let Some(value) = cut.filter(named)
            && self.replies == Replies::On
        {
            let (given, open) = (out.len(), self.open.len());
            self.command(&value, out);
            let added = self.open.range_mut(open.min(self.open.len())..);
            let exchanges = added.map(|open| &mut open.exchange);
            for exchange in exchanges.chain(out.iter_mut().skip(given)) {
                exchange.lose_sizes();
            }
        }
        self.unseen = self.replies == Replies::On && !self.order.is_dirty();
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
        if self.order.answer(out) {
            self.lost(value.end_ns, out);
        }
        let Some(open) = self.open.front_mut() else {
            if self.unseen {
                self.reply_to_unseen(value, out);
            } else if !self.monitored && !self.subscribed && !self.order.is_dirty() {
                // A reply to nothing: the pairs are off by what was not seen.
                self.order.contradict(out);
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
        self.order.give(exchange, out);
    }

    /// The reply to a command behind the captured bytes: how it went is known, and not what it was.
    fn reply_to_unseen(&mut self, value: &Value, out: &mut Vec<Exchange>) {
        if value.words.first().is_some_and(|word| is_of_channels(word)) {
            return;
        }
        let mut exchange = Exchange::new(Protocol::Redis, value.begin_ns);
        exchange.stream = self.count;
        self.count += 1;
        exchange.end_ns = value.end_ns;
        exchange.status = Some(match &value.error {
            Some(code) => Status::Code(code.clone()),
            None => Status::Fine,
        });
        give_unknown(exchange, out);
    }

    /// The end of a reply lies behind the captured bytes. `true`: it is the only one that is open, of a
    /// client that waits, so that all that comes before the next call belongs to it.
    pub(super) fn begin_tail(
        &mut self,
        cut: Option<&Value>,
        bytes: u64,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> bool {
        // Nothing is missing before it: what else is open was sent ahead.
        if self.order.answer(out) {
            return false;
        }
        let asks_once = self.open.len() == 1 && !self.unseen && self.order.may_wait();
        let is_pushed_to = self.subscribed || self.monitored;
        let (Some(value), Some(open)) = (cut, self.open.front_mut()) else {
            return false;
        };
        // A push, or a line whose kind is not known yet.
        let is_reply = !matches!(value.kind, 0 | b'>' | b'|');
        if !asks_once || is_pushed_to || !is_reply || open.kind != Kind::Usual {
            return false;
        }
        open.exchange.first_byte_ns.get_or_insert(value.begin_ns);
        open.exchange.response_bytes += value.bytes;
        self.tail = true;
        self.pass_tail(bytes, at_ns);
        true
    }

    /// More of that reply.
    pub(super) fn pass_tail(&mut self, bytes: u64, at_ns: u64) {
        if let Some(Open { exchange, .. }) = self.open.front_mut() {
            exchange.response_bytes += bytes;
            exchange.end_ns = at_ns.max(exchange.end_ns);
        }
    }

    /// Whether a value came without being asked for.
    fn is_push(&self, value: &Value) -> bool {
        let front = self.open.front().map(|open| open.kind);
        let word = value.words.first().map(String::as_str);
        let is_message = |word| matches!(word, "MESSAGE" | "PMESSAGE" | "SMESSAGE");
        let confirms = word.is_some_and(|word| is_of_channels(word) && !is_message(word));
        match value.kind {
            b'>' => !(confirms && front == Some(Kind::Subscription)),
            b'*' if self.subscribed || front == Some(Kind::Subscription) => {
                word.is_some_and(is_message) || (confirms && front != Some(Kind::Subscription))
            }
            b'+' => self.monitored && front.is_none(),
            _ => false,
        }
    }

    /// The outcome of open commands can no longer be determined.
    pub(super) fn lost(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.order.lose(out);
        self.unseen = false;
        self.tail = false;
        while let Some(Open { mut exchange, .. }) = self.open.pop_front() {
            exchange.end_ns = at_ns.max(exchange.end_ns);
            give_unknown(exchange, out);
        }
    }

    /// The connection has ended; `answered_ns`: until then replies may have gone by unread.
    pub(super) fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        let open = self.open.drain(..).map(|open| open.exchange);
        self.order.close(open, at_ns, answered_ns, out);
    }

    pub(super) fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.rest(now_ns, self.open.len(), out);
    }

    pub(super) fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.order.stop(now_ns, self.open.len(), out);
    }

    /// A call of the client begins with a command.
    pub(super) fn call(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let was_unseen = std::mem::take(&mut self.unseen);
        if was_unseen && !self.open.is_empty() {
            self.order.is_ahead();
        }
        if was_unseen && !(self.open.is_empty() && self.order.is_sure()) {
            // A reply too many would have been taken for one to a command that was not seen.
            self.lost(at_ns, out);
        }
        let tail = std::mem::take(&mut self.tail);
        let ended = self.open.pop_front_if(|_| tail);
        if let Some(Open { mut exchange, .. }) = ended {
            // Errors are lines, which are captured whole.
            exchange.status = Some(Status::Fine);
            exchange.outcome = Outcome::Ok;
            self.order.call_behind(at_ns, Some(exchange), out);
        } else {
            self.order.call(at_ns, self.open.len());
        }
        if was_unseen {
            self.order.suppose();
        }
    }

    pub(super) fn passed(&mut self, at_ns: u64) {
        self.order.passed(at_ns);
    }

    /// Whether this many replies may come next.
    pub(super) fn awaits(&self, replies: usize) -> bool {
        let is_unbounded = self.subscribed || self.monitored || self.unseen;
        let has_several = self.open.iter().any(|open| open.kind != Kind::Usual);
        is_unbounded || has_several || (1..=self.open.len()).contains(&replies)
    }

    /// Commands wait for replies that are still to be told apart.
    pub(super) fn awaits_any(&self) -> bool {
        !self.open.is_empty() && !self.order.is_dirty()
    }

    /// Pairs are right, and the end of the reply at hand will be seen.
    pub(super) fn is_sure(&self) -> bool {
        self.order.is_sure() && !self.tail
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

/// Whether a reply is about channels: the confirmation of a subscription, or a message.
fn is_of_channels(word: &str) -> bool {
    matches!(
        word,
        "SUBSCRIBE"
            | "PSUBSCRIBE"
            | "SSUBSCRIBE"
            | "UNSUBSCRIBE"
            | "PUNSUBSCRIBE"
            | "SUNSUBSCRIBE"
            | "MESSAGE"
            | "PMESSAGE"
            | "SMESSAGE"
    )
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
