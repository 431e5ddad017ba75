//! Requests whose answers name them, so that it does not matter in which order they come.

use std::collections::VecDeque;

use super::{Direction, Exchange, Outcome, Protocol, frames::Frame};

/// Requests of one connection that wait for their answers, with what is to be remembered of each.
#[derive(Debug)]
pub(crate) struct Named<T> {
    most: usize,
    open: VecDeque<(Exchange, T)>,
    /// Requests so far.
    count: u64,
    /// Until then answers may have gone by unread.
    skipped_ns: Option<u64>,
}

impl<T> Named<T> {
    /// Most that are open at once.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            open: VecDeque::new(),
            count: 0,
            skipped_ns: None,
        }
    }

    /// The request that a frame carries.
    pub(crate) fn request(&mut self, protocol: Protocol, frame: &Frame<'_>) -> Exchange {
        let mut exchange = Exchange::new(protocol, frame.begin_ns);
        exchange.request_end_ns = Some(frame.end_ns);
        exchange.end_ns = frame.end_ns;
        exchange.request_bytes = frame.length;
        exchange.stream = self.count;
        self.count += 1;
        exchange
    }

    /// Waits for its answer; the oldest gives way when there are too many.
    pub(crate) fn wait(&mut self, exchange: Exchange, remembered: T, out: &mut Vec<Exchange>) {
        if self.open.len() >= self.most {
            self.give_oldest(Outcome::Unknown, exchange.end_ns, out);
        }
        self.open.push_back((exchange, remembered));
    }

    /// Whether a request of this kind waits.
    pub(crate) fn awaits(&self, is_asked: impl Fn(&T) -> bool) -> bool {
        self.open.iter().any(|(_, remembered)| is_asked(remembered))
    }

    /// The request that a frame answers; `None`: it was not seen.
    pub(crate) fn answered(
        &mut self,
        frame: &Frame<'_>,
        is_asked: impl Fn(&T) -> bool,
    ) -> Option<(Exchange, T)> {
        let mut open = self.open.iter();
        let found = open.position(|(_, remembered)| is_asked(remembered))?;
        let (mut exchange, remembered) = self.open.remove(found)?;
        exchange.first_byte_ns = Some(frame.begin_ns);
        exchange.end_ns = frame.end_ns.max(exchange.end_ns);
        exchange.response_bytes = frame.length;
        Some((exchange, remembered))
    }

    /// Names tell what belongs together whatever was missed: only whose answer was is not known.
    pub(crate) fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        if direction == Direction::ToClient {
            self.give_all(Outcome::Unknown, at_ns, out);
        }
    }

    /// Answers went by that could not be read: a request that gets none may have had one of them.
    pub(crate) fn skipped(&mut self, at_ns: u64) {
        self.skipped_ns = self.skipped_ns.max(Some(at_ns));
    }

    /// The connection has ended; `answered_ns`: until then answers may have gone by unread.
    pub(crate) fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        let answered_ns = answered_ns.max(self.skipped_ns);
        while let Some((exchange, _)) = self.open.front() {
            let is_broken = answered_ns.is_none_or(|answered| exchange.begin_ns > answered);
            let outcome = if is_broken {
                Outcome::Broken
            } else {
                Outcome::Unknown
            };
            self.give_oldest(outcome, at_ns, out);
        }
    }

    fn give_all(&mut self, outcome: Outcome, at_ns: u64, out: &mut Vec<Exchange>) {
        while !self.open.is_empty() {
            self.give_oldest(outcome, at_ns, out);
        }
    }

    fn give_oldest(&mut self, outcome: Outcome, at_ns: u64, out: &mut Vec<Exchange>) {
        if let Some((mut exchange, _)) = self.open.pop_front() {
            exchange.outcome = outcome;
            if outcome == Outcome::Unknown {
                exchange.lose_sizes();
            }
            exchange.end_ns = at_ns.max(exchange.end_ns);
            out.push(exchange);
        }
    }
}
