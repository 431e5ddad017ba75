//! Who gets every entry as it comes.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use bytes::Bytes;
use profiler_access_logs::Entry;

use super::{book::Owner, receiver::Service};

/// Messages that wait for one who takes them. Each is at most some hundred kilobytes, as Envoy's buffers are.
const MOST_WAITING: usize = 512;

/// A message and its entries.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) kind: Service,
    pub(super) message: Bytes,
    pub(super) entries: Vec<Entry>,
}

/// A message of somebody.
#[derive(Clone, Debug)]
pub(super) struct Came {
    /// Whose it is, once that is known.
    pub(super) whose: Arc<OnceLock<Owner>>,
    pub(super) read: Arc<Read>,
}

/// Gets entries until it is dropped.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) came: Receiver<Came>,
    left_out: Arc<AtomicU64>,
}

impl Subscription {
    /// Entries that came when too many waited.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<(SyncSender<Came>, Arc<AtomicU64>)>);

impl Subscribers {
    pub(super) fn add(&mut self) -> Subscription {
        let (to, came) = sync_channel(MOST_WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        self.0.push((to, Arc::clone(&left_out)));
        Subscription { came, left_out }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Entries have come that nobody reads.
    pub(super) fn leave_out(&self, entries: u64) {
        for (_, left_out) in &self.0 {
            left_out.fetch_add(entries, Ordering::Relaxed);
        }
    }

    /// Never waits: the receiver goes on whatever a task does.
    pub(super) fn hand_out(&mut self, whose: &Arc<OnceLock<Owner>>, read: Read) {
        let count = read.entries.len() as u64;
        let came = Came {
            whose: Arc::clone(whose),
            read: Arc::new(read),
        };
        self.0
            .retain(|(to, left_out)| match to.try_send(came.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    left_out.fetch_add(count, Ordering::Relaxed);
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: usize) -> Read {
        Read {
            kind: Service::Stream,
            message: Bytes::new(),
            entries: vec![Entry::default(); entries],
        }
    }

    #[test]
    fn who_does_not_take_loses_and_knows_how_much() {
        let mut all = Subscribers::default();
        let (one, other) = (all.add(), all.add());
        for _ in 0..MOST_WAITING + 2 {
            all.hand_out(&Arc::default(), read(3));
            let came = one.came.try_recv().unwrap();
            assert_eq!(came.read.entries.len(), 3);
        }
        assert_eq!((one.left_out(), other.left_out()), (0, 6));
        drop(other);
        all.hand_out(&Arc::default(), read(0));
        assert_eq!(all.0.len(), 1);
        drop(one);
        all.hand_out(&Arc::default(), read(0));
        assert!(all.is_empty());
    }
}
