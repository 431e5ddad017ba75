//! Pairs by order alone, after payload was missed.
//!
//! Where nothing but the order ties answers to requests, one that was missed shifts all that follow.
//! Pairs can begin anew only when nothing is under way. A client that waits for its answers before it
//! makes the next call shows that by the call; one that sends ahead, only by a silence.

/// No bytes either way for so long: nothing is under way. An answer that takes longer is paired wrongly
/// only when another was missed on a connection that sends ahead.
const SILENCE_NS: u64 = 200_000_000;

/// Whether answers may be paired with requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    dirty: bool,
    /// Pairs began anew because the client was taken for one that waits.
    assumed: bool,
    /// A call was made while answers were open. That may be because one was missed and nobody knows yet.
    maybe_ahead: bool,
    /// The client does not wait for its answers.
    sends_ahead: bool,
    /// When payload last went by.
    last_ns: Option<u64>,
}

impl Order {
    pub(crate) fn new(joined: bool) -> Self {
        Self {
            dirty: joined,
            assumed: false,
            maybe_ahead: false,
            sends_ahead: false,
            last_ns: None,
        }
    }

    /// Nobody knows whose answer is whose.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub(crate) fn lose(&mut self) {
        self.dirty = true;
        self.maybe_ahead = false;
    }

    /// A call of the client begins with a request, while so many are open.
    pub(crate) fn call(&mut self, at_ns: u64, open: usize) {
        if !self.dirty {
            self.maybe_ahead |= open > 0;
            return;
        }
        let silent = |last: u64| at_ns.saturating_sub(last) >= SILENCE_NS;
        let silent = self.last_ns.is_none_or(silent);
        if silent || !self.sends_ahead {
            self.dirty = false;
            self.assumed = !silent;
        }
    }

    /// An answer has come, and nothing is missing before it. `true`: what was assumed is wrong, and the
    /// order is lost.
    pub(crate) fn answer(&mut self) -> bool {
        let learned = std::mem::take(&mut self.maybe_ahead) && !self.sends_ahead;
        self.sends_ahead |= learned;
        let wrong = learned && self.assumed && !self.dirty;
        self.dirty |= wrong;
        wrong
    }

    /// Payload went by.
    pub(crate) fn passed(&mut self, at_ns: u64) {
        self.last_ns = Some(self.last_ns.unwrap_or(at_ns).max(at_ns));
    }
}

#[cfg(test)]
mod tests;
