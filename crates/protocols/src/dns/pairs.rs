//! Queries with their responses.

use std::collections::VecDeque;

use domain::base::iana::Rcode;

use super::{
    super::{Exchange, Options, Outcome, Protocol, Status},
    message::{Code, Message, Question},
};

/// How a message went by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) bytes: u64,
}

/// Resolvers give up before (resolv.conf's `timeout` is at most 30 s).
const ANSWER_TIMEOUT_NS: u64 = 30_000_000_000;

/// Queries without a response yet, oldest first.
#[derive(Debug)]
pub(super) struct Pairs {
    open: VecDeque<Open>,
    most: usize,
    text_bytes: usize,
    count: u64,
}

#[derive(Debug)]
struct Open {
    id: u16,
    question: Option<Question>,
    exchange: Exchange,
    /// A response may have gone by unseen.
    answer_may_be_missing: bool,
}

impl Pairs {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            open: VecDeque::new(),
            most: options.limits.open_exchanges.max(1),
            text_bytes: options.limits.text_bytes,
            count: 0,
        }
    }

    pub(super) fn take(&mut self, message: Message, moved: Moved, out: &mut Vec<Exchange>) {
        while let Some(open) = self.open.front()
            && moved.begin_ns.saturating_sub(open.exchange.begin_ns) > ANSWER_TIMEOUT_NS
        {
            self.give_up_oldest(moved.begin_ns, out);
        }
        if message.is_response {
            self.response(message, moved, out);
        } else {
            self.query(message, moved, out);
        }
    }

    fn query(&mut self, message: Message, moved: Moved, out: &mut Vec<Exchange>) {
        let same = |open: &&mut Open| open.id == message.id && open.question == message.question;
        if let Some(open) = self.open.iter_mut().find(same) {
            // Sent again: one query to the client, which took from the first time on.
            open.exchange.request_bytes += moved.bytes;
            return;
        }
        if self.open.len() >= self.most {
            self.give_up_oldest(moved.begin_ns, out);
        }
        let mut exchange = Exchange::new(Protocol::Dns, moved.begin_ns);
        exchange.stream = self.count;
        self.count += 1;
        exchange.request_end_ns = Some(moved.end_ns);
        exchange.request_bytes = moved.bytes;
        if let Some(question) = &message.question {
            let name = question.folded_name();
            exchange.method = Some(question.kind());
            exchange.route = Some(super::super::text::printable(
                name.as_bytes(),
                self.text_bytes,
            ));
        }
        self.open.push_back(Open {
            id: message.id,
            question: message.question,
            exchange,
            answer_may_be_missing: false,
        });
    }

    fn response(&mut self, message: Message, moved: Moved, out: &mut Vec<Exchange>) {
        let fits = |open: &Open| {
            open.id == message.id
                && (message.question.is_none() || open.question == message.question)
        };
        // A response without a query is one to a query that was not seen, or forged.
        let Some(found) = self.open.iter().position(fits) else {
            return;
        };
        let Some(Open { mut exchange, .. }) = self.open.remove(found) else {
            return;
        };
        exchange.first_byte_ns = Some(moved.begin_ns);
        exchange.end_ns = moved.end_ns;
        exchange.response_bytes = moved.bytes;
        (exchange.status, exchange.outcome) = judge(message.code);
        out.push(exchange);
    }

    /// Responses were missed: a query without one may have had one.
    pub(super) fn answers_missing(&mut self) {
        self.answers_missing_until(u64::MAX);
    }

    /// Responses may have gone by unread until then.
    pub(super) fn answers_missing_until(&mut self, answered_ns: u64) {
        for open in &mut self.open {
            open.answer_may_be_missing |= open.exchange.begin_ns <= answered_ns;
        }
    }

    pub(super) fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        while !self.open.is_empty() {
            self.give_up_oldest(at_ns, out);
        }
    }

    fn give_up_oldest(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let Some(open) = self.open.pop_front() else {
            return;
        };
        let mut exchange = open.exchange;
        exchange.end_ns = at_ns.max(exchange.begin_ns);
        exchange.outcome = if open.answer_may_be_missing {
            exchange.lose_sizes();
            Outcome::Unknown
        } else {
            Outcome::Broken
        };
        out.push(exchange);
    }
}

fn judge(code: Code) -> (Option<Status>, Outcome) {
    let Code(number) = code;
    if number == 0 {
        return (Some(Status::Fine), Outcome::Ok);
    }
    let known = u8::try_from(number).ok().map(Rcode::masked_from_int);
    let name = known
        .filter(|_| number < 16)
        .and_then(Rcode::to_mnemonic_str);
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("RCODE{number}"),
    };
    let outcome = match number {
        // SERVFAIL, NOTIMP, REFUSED: the server would not, or could not.
        2 | 4 | 5 => Outcome::ServerError,
        _ => Outcome::ClientError,
    };
    (Some(Status::Code(name)), outcome)
}
