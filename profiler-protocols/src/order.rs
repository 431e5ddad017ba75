//! Pairs by order alone, after payload was missed.
//!
//! Where nothing but the order ties answers to requests, one that was missed shifts all that follow.
//! Pairs can begin anew only when nothing is under way. A client that waits for its answers before it
//! makes the next call shows that by the call; one that sends ahead, only by a silence.

/// No bytes either way for so long: nothing is under way. An answer that takes longer is paired wrongly
/// only when another was missed on a connection that sends ahead.
const SILENCE_NS: u64 = 200_000_000;

/// Whether nothing is under way after no bytes from one time to the other.
pub(crate) fn is_silence(from_ns: u64, to_ns: u64) -> bool {
    to_ns.saturating_sub(from_ns) >= SILENCE_NS
}

/// Whether answers may be paired with requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    state: State,
    pace: Pace,
    /// When payload last went by.
    last_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Known,
    /// Pairs began anew because the client was taken for one that waits.
    Assumed,
    /// Nobody knows whose answer is whose.
    Dirty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// As far as is known the client waits for its answers.
    Waits,
    /// A call was made while answers were open: one of them may be missing, and nobody knows yet.
    MaybeAhead,
    SendsAhead,
}

impl Order {
    pub(crate) fn new(joined: bool) -> Self {
        Self {
            state: if joined { State::Dirty } else { State::Known },
            pace: Pace::Waits,
            last_ns: None,
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.state == State::Dirty
    }

    pub(crate) fn lose(&mut self) {
        self.state = State::Dirty;
        if self.pace == Pace::MaybeAhead {
            self.pace = Pace::Waits;
        }
    }

    /// A call of the client begins with a request, while so many are open.
    pub(crate) fn call(&mut self, at_ns: u64, open: usize) {
        if self.state != State::Dirty {
            if open > 0 && self.pace == Pace::Waits {
                self.pace = Pace::MaybeAhead;
            }
            return;
        }
        if self.last_ns.is_none_or(|last| is_silence(last, at_ns)) {
            self.state = State::Known;
        } else if self.pace != Pace::SendsAhead {
            self.state = State::Assumed;
        }
    }

    /// An answer has come, and nothing is missing before it. `true`: what was assumed is wrong, and the
    /// order is lost.
    pub(crate) fn answer(&mut self) -> bool {
        if self.pace != Pace::MaybeAhead {
            return false;
        }
        self.pace = Pace::SendsAhead;
        let wrong = self.state == State::Assumed;
        if wrong {
            self.state = State::Dirty;
        }
        wrong
    }

    /// Payload went by.
    pub(crate) fn passed(&mut self, at_ns: u64) {
        self.last_ns = Some(self.last_ns.unwrap_or(at_ns).max(at_ns));
    }
}

#[cfg(test)]
mod tests;
