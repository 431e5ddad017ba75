//! Pairs by order alone, after payload was missed.
//!
//! Where only the order ties answers to requests, one that was missed shifts all that follow. Pairs can
//! begin anew only when nothing is under way. A silence shows that. So does the next call of a client
//! that waits for its answers; but a client that sends ahead may look like one for a while. Until enough
//! calls in a row have come when nothing was open, answers are held back: they are right if the order
//! holds, and unknown if it does not.

use super::{Exchange, Outcome};

/// After this time without bytes either way nothing is under way. An answer that takes longer is paired wrongly
/// only when another was missed on a connection that sends ahead.
const SILENCE_NS: u64 = 200_000_000;
/// A silence that goes on: what was moved in it may not have come here yet.
const REST_NS: u64 = 500_000_000;
/// Calls in a row, each with nothing open, after which a client is taken for one that waits.
const ENOUGH_CALLS: u8 = 32;

/// Whether nothing is under way after no bytes from one time to the other.
pub(crate) fn is_silence(from_ns: u64, to_ns: u64) -> bool {
    to_ns.saturating_sub(from_ns) >= SILENCE_NS
}

/// Whether answers may be paired with requests.
#[derive(Debug)]
pub(crate) struct Order {
    state: State,
    pace: Pace,
    /// Calls in a row with nothing open, up to [`ENOUGH_CALLS`].
    waited: u8,
    /// Answered requests whose pairs are not sure yet; beyond `most_held` they are unknown.
    held: Vec<Exchange>,
    /// Those whose pairs hold unless payload is missing behind them, which the next answer shows.
    proved: Vec<Exchange>,
    most_held: usize,
    /// When payload last went by.
    last_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Known,
    /// Pairs began anew because the client was taken for one that waits.
    Assumed,
    /// Nothing was missed but the end of an answer, for which the client's next call was taken.
    EndAssumed,
    /// Answers cannot be assigned to requests.
    Dirty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// As far as is known the client waits for its answers.
    Waits,
    /// A call was made while answers were open: one of them may be missing, which is not known yet.
    MaybeAhead,
    SendsAhead,
}

impl Order {
    pub(crate) fn new(joined: bool, most_held: usize) -> Self {
        Self {
            state: if joined { State::Dirty } else { State::Known },
            pace: Pace::Waits,
            waited: 0,
            held: Vec::new(),
            proved: Vec::new(),
            most_held,
            last_ns: None,
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.state == State::Dirty
    }

    /// Pairs are right, and not only so far as is known.
    pub(crate) fn is_sure(&self) -> bool {
        self.state == State::Known
    }

    /// The client has not been seen to send before its answers were there.
    pub(crate) fn may_wait(&self) -> bool {
        self.state != State::Dirty && self.pace == Pace::Waits
    }

    /// Payload was missed. What is held back can no longer be determined.
    pub(crate) fn lose(&mut self, out: &mut Vec<Exchange>) {
        self.state = State::Dirty;
        if self.pace == Pace::MaybeAhead {
            self.pace = Pace::Waits;
        }
        self.doubt();
        // What was missed may have gone by just now.
        self.last_ns = None;
        self.give_unknown(out);
    }

    /// An answer came that no request is known of: the pairs were shifted, or something was missed.
    pub(crate) fn contradict(&mut self, out: &mut Vec<Exchange>) {
        self.lose(out);
        self.waited = 0;
    }

    /// The client has sent ahead.
    pub(crate) fn is_ahead(&mut self) {
        self.pace = Pace::SendsAhead;
        self.waited = 0;
    }

    /// Requests went by unseen before the client's last call, and it is taken for one that had their answers.
    pub(crate) fn suppose(&mut self) {
        if matches!(self.state, State::Known | State::EndAssumed) {
            self.state = State::Assumed;
            self.waited = self.waited.min(ENOUGH_CALLS - 1);
        }
    }

    /// A call of the client, before which an answer ended unseen; with the request that it answered, if it
    /// is one. Where pairs were not sure it is unknown, as is what was held back: what went by unseen may have
    /// been more answers than one.
    pub(crate) fn call_behind(
        &mut self,
        at_ns: u64,
        ended: Option<Exchange>,
        out: &mut Vec<Exchange>,
    ) {
        if !matches!(self.state, State::Known | State::EndAssumed) {
            self.give_unknown(out);
            out.extend(ended.map(unanswered));
            self.call(at_ns, 0);
            return;
        }
        self.call(at_ns, 0);
        self.state = State::EndAssumed;
        if let Some(exchange) = ended {
            self.give(exchange, out);
        }
    }

    /// A client that has proved to wait needs one call more to prove that it still does.
    fn doubt(&mut self) {
        self.waited = if self.waited == ENOUGH_CALLS {
            ENOUGH_CALLS - 1
        } else {
            0
        };
    }

    /// A call of the client begins with a request, while `open` requests are unanswered.
    pub(crate) fn call(&mut self, at_ns: u64, open: usize) {
        let is_silence = self.last_ns.is_some_and(|last| is_silence(last, at_ns));
        match self.state {
            State::Dirty if is_silence => self.state = State::Known,
            State::Dirty if self.pace != Pace::SendsAhead => self.state = State::Assumed,
            State::Dirty => {}
            State::Known | State::Assumed | State::EndAssumed if open > 0 => {
                if self.pace == Pace::Waits {
                    self.pace = Pace::MaybeAhead;
                }
            }
            State::Known | State::Assumed | State::EndAssumed => {
                self.waited = self.waited.saturating_add(1).min(ENOUGH_CALLS);
                // The answer to what the last call asked was read from its beginning on.
                let is_proved = self.state == State::EndAssumed || self.waited == ENOUGH_CALLS;
                if is_silence || is_proved {
                    self.state = State::Known;
                    self.proved.append(&mut self.held);
                }
            }
        }
    }

    /// An answer has come, and nothing is missing before it. `true`: what was assumed is wrong, and the
    /// order is lost.
    pub(crate) fn answer(&mut self, out: &mut Vec<Exchange>) -> bool {
        out.append(&mut self.proved);
        if self.pace != Pace::MaybeAhead {
            return false;
        }
        self.pace = Pace::SendsAhead;
        self.waited = 0;
        let wrong = matches!(self.state, State::Assumed | State::EndAssumed);
        if wrong {
            self.state = State::Dirty;
            self.give_unknown(out);
        }
        wrong
    }

    /// Gives out a request with its answer, now or once the pair is sure.
    pub(crate) fn give(&mut self, exchange: Exchange, out: &mut Vec<Exchange>) {
        match self.state {
            State::Assumed | State::EndAssumed if self.has_room() => {
                self.held.push(exchange);
            }
            State::Assumed | State::EndAssumed => out.push(unanswered(exchange)),
            State::Known | State::Dirty => out.push(exchange),
        }
    }

    fn has_room(&self) -> bool {
        self.held.len() + self.proved.len() < self.most_held
    }

    /// Nothing has come until now, with `open` requests unanswered.
    pub(crate) fn rest(&mut self, now_ns: u64, open: usize, out: &mut Vec<Exchange>) {
        let is_rest = |last| now_ns.saturating_sub(last) >= REST_NS;
        if open == 0 && self.last_ns.is_some_and(is_rest) {
            out.append(&mut self.proved);
            out.append(&mut self.held);
        }
    }

    /// Ends the observation. What a silence does not prove is unknown.
    pub(crate) fn stop(&mut self, now_ns: u64, open: usize, out: &mut Vec<Exchange>) {
        let is_silence = self.last_ns.is_some_and(|last| is_silence(last, now_ns));
        out.append(&mut self.proved);
        if open == 0 && is_silence {
            out.append(&mut self.held);
        } else {
            self.give_unknown(out);
        }
    }

    /// The connection has ended, with these requests open. They are broken when their answers cannot have
    /// gone by unread: when pairs are sure, or nothing has come since `answered_ns`.
    pub(crate) fn close(
        &mut self,
        open: impl IntoIterator<Item = Exchange>,
        at_ns: u64,
        answered_ns: Option<u64>,
        out: &mut Vec<Exchange>,
    ) {
        out.append(&mut self.proved);
        let mut open = open.into_iter().peekable();
        let is_silence = self.last_ns.is_some_and(|last| is_silence(last, at_ns));
        if open.peek().is_none() && (is_silence || self.state == State::EndAssumed) {
            // A client that sends ahead would have had more answers.
            out.append(&mut self.held);
        }
        let is_sure = self.is_sure() && answered_ns.is_none();
        self.give_unknown(out);
        for mut exchange in open {
            exchange.end_ns = at_ns.max(exchange.end_ns);
            if is_sure || exchange.begin_ns > answered_ns.unwrap_or(0) {
                exchange.outcome = Outcome::Broken;
                out.push(exchange);
            } else {
                out.push(unanswered(exchange));
            }
        }
    }

    /// Payload went by.
    pub(crate) fn passed(&mut self, at_ns: u64) {
        self.last_ns = Some(self.last_ns.unwrap_or(at_ns).max(at_ns));
    }

    fn give_unknown(&mut self, out: &mut Vec<Exchange>) {
        let unproved = self.proved.drain(..).chain(self.held.drain(..));
        out.extend(unproved.map(unanswered));
    }
}

/// A request that was paired with an answer that may be another's.
fn unanswered(mut exchange: Exchange) -> Exchange {
    exchange.outcome = Outcome::Unknown;
    exchange.status = None;
    exchange.is_timed = false;
    exchange.first_byte_ns = None;
    exchange.response_bytes = 0;
    exchange.lose_sizes();
    exchange
}

#[cfg(test)]
mod tests;
