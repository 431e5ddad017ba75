//! Who may hold connections to the API. A caller is a stranger until a request of its connection had the token; strangers
//! can neither keep each other nor health checks out, because the oldest one makes room for a new one.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::oneshot, time::Instant};

/// Shortest time between two lines of the log about closed connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Nothing is ever sent: the end of the channel closes the connection.
type Hold = oneshot::Sender<std::convert::Infallible>;

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

/// By number, which grows: the first of the strangers is the oldest.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    strangers: BTreeMap<u64, Hold>,
    trusted: BTreeMap<u64, Hold>,
    /// Strangers that were disconnected since this was last logged.
    unsaid: u64,
    said: Option<Instant>,
}

impl Connections {
    /// Most at once, one or more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            open: Mutex::default(),
        }
    }

    /// Takes one more; when there are too many, the oldest stranger goes.
    pub(super) fn enter(self: &Arc<Self>) -> ConnectionPermit {
        let (hold, end) = oneshot::channel();
        let mut open = self.open();
        // There always is one: not all may be trusted.
        if open.strangers.len() + open.trusted.len() >= self.most {
            open.strangers.pop_first();
            open.count_one_gone();
        }
        let number = open.next;
        open.next += 1;
        open.strangers.insert(number, hold);
        drop(open);
        ConnectionPermit {
            caller: Caller {
                number,
                all: Arc::clone(self),
                has_asked: Arc::default(),
            },
            end: Some(end),
        }
    }

    /// Most that may be trusted; the rest is for health checks and for clients that have yet to show the token.
    fn most_trusted(&self) -> usize {
        self.most - (self.most / 16).max(1)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Open {
    /// At most one line a second: a client that opens too many must not fill the log as well.
    fn count_one_gone(&mut self) {
        self.unsaid += 1;
        if self.said.is_none_or(|said| said.elapsed() >= LOG_INTERVAL) {
            let closed = std::mem::take(&mut self.unsaid);
            self.said = Some(Instant::now());
            tracing::warn!(
                closed,
                "too many connections are open: the oldest ones that never showed the token are closed"
            );
        }
    }
}

/// The owner of a connection; each of its requests carries it.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    number: u64,
    all: Arc<Connections>,
    has_asked: Arc<AtomicBool>,
}

impl Caller {
    /// Whether the connection has had no request before this one, which is then its first.
    pub(super) fn is_first_request(&self) -> bool {
        !self.has_asked.swap(true, Ordering::Relaxed)
    }

    /// A request had the token: its connection stays, unless too many of them do.
    pub(super) fn trust(&self) {
        let mut open = self.all.open();
        if open.trusted.len() < self.all.most_trusted()
            && let Some(hold) = open.strangers.remove(&self.number)
        {
            open.trusted.insert(self.number, hold);
        }
    }
}

/// The place of one connection, given back when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    caller: Caller,
    /// `None` once it has ended.
    end: Option<oneshot::Receiver<std::convert::Infallible>>,
}

impl ConnectionPermit {
    pub(super) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Whether the connection must go; otherwise its task is woken when it must.
    pub(super) fn must_go(&mut self, context: &mut Context<'_>) -> bool {
        let Some(end) = &mut self.end else {
            return true;
        };
        match Pin::new(end).poll(context) {
            Poll::Ready(_) => {
                self.end = None;
                true
            }
            Poll::Pending => false,
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.caller.all.open();
        open.strangers.remove(&self.caller.number);
        open.trusted.remove(&self.caller.number);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn must_go(place: &mut ConnectionPermit) -> bool {
        place.must_go(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_oldest_stranger_makes_room_and_who_has_the_token_stays() {
        let all = Arc::new(Connections::new(3));
        let mut trusted = all.enter();
        trusted.caller().trust();
        let mut old = all.enter();
        let mut young = all.enter();
        assert!(!must_go(&mut old));
        let mut new = all.enter();
        assert!(must_go(&mut old) && must_go(&mut old), "and stays so");
        assert!(!must_go(&mut trusted) && !must_go(&mut young) && !must_go(&mut new));
        drop(young);
        let mut next = all.enter();
        assert!(!must_go(&mut new) && !must_go(&mut next), "there was room");
        drop((old, trusted));
        let mut after = all.enter();
        assert!(
            !must_go(&mut new) && !must_go(&mut after),
            "a trusted one gives its place back, too"
        );
    }

    #[test]
    fn trusted_ones_leave_room_for_others() {
        for most in [0, 1, 2, 16, 256] {
            let all = Arc::new(Connections::new(most));
            let mut places: Vec<_> = (0..most.max(1) * 2)
                .map(|_| {
                    let place = all.enter();
                    place.caller().trust();
                    place
                })
                .collect();
            let left = places
                .iter_mut()
                .filter_map(|place| (!must_go(place)).then_some(()))
                .count();
            assert_eq!(left, most.max(1), "of {most}");
            let mut one = all.enter();
            assert!(!must_go(&mut one), "of {most}");
        }
    }
}
