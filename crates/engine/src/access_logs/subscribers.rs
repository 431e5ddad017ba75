//! Who gets every entry as it comes.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
    mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
};

use bytes::Bytes;
use profiler_access_logs::Entry;

use super::{book::Owner, receiver::Service};

/// Messages that wait for one who takes them, and their memory.
pub(super) const MOST_WAITING: usize = 512;
const MOST_BYTES: usize = 32 << 20;

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

impl Read {
    /// Bytes of memory, about.
    fn bytes(&self) -> usize {
        self.message.len() + self.entries.capacity() * size_of::<Entry>()
    }
}

/// What both ends of a queue know.
#[derive(Debug, Default)]
struct Queue {
    /// Memory of what waits.
    bytes: AtomicUsize,
    /// Entries that came when too many waited.
    left_out: AtomicU64,
}

/// Gets entries until it is dropped.
#[derive(Debug)]
pub(super) struct Subscription {
    came: Receiver<Came>,
    queue: Arc<Queue>,
}

impl Subscription {
    /// The next message. An error: there is none, or there will be none.
    pub(super) fn next(&self) -> Result<Came, TryRecvError> {
        let came = self.came.try_recv()?;
        let bytes = came.read.bytes();
        self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Ok(came)
    }

    /// Entries that came when too many waited.
    pub(super) fn left_out(&self) -> u64 {
        self.queue.left_out.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<(SyncSender<Came>, Arc<Queue>)>);

impl Subscribers {
    pub(super) fn add(&mut self) -> Subscription {
        let (to, came) = sync_channel(MOST_WAITING);
        let queue = Arc::<Queue>::default();
        self.0.push((to, Arc::clone(&queue)));
        Subscription { came, queue }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Entries have come that nobody reads.
    pub(super) fn leave_out(&self, entries: u64) {
        for (_, queue) in &self.0 {
            queue.left_out.fetch_add(entries, Ordering::Relaxed);
        }
    }

    /// Never waits: the receiver goes on whatever a task does.
    pub(super) fn hand_out(&mut self, whose: &Arc<OnceLock<Owner>>, read: Read) {
        let (count, bytes) = (read.entries.len() as u64, read.bytes());
        let came = Came {
            whose: Arc::clone(whose),
            read: Arc::new(read),
        };
        self.0.retain(|(to, queue)| {
            let waits = queue.bytes.fetch_add(bytes, Ordering::Relaxed);
            // One message always has room.
            let has_room = waits == 0 || waits + bytes <= MOST_BYTES;
            let sent = if has_room {
                to.try_send(came.clone())
            } else {
                Err(TrySendError::Full(came.clone()))
            };
            if sent.is_err() {
                queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
                queue.left_out.fetch_add(count, Ordering::Relaxed);
            }
            !matches!(sent, Err(TrySendError::Disconnected(_)))
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
            let came = one.next().unwrap();
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

    #[test]
    fn what_waits_has_bounded_memory() {
        let mut all = Subscribers::default();
        let one = all.add();
        let half = || read(MOST_BYTES / 2 / size_of::<Entry>());
        let entries = half().entries.len() as u64;
        for _ in 0..3 {
            all.hand_out(&Arc::default(), half());
        }
        assert_eq!(one.left_out(), entries);
        one.next().unwrap();
        all.hand_out(&Arc::default(), half());
        assert_eq!(one.left_out(), entries);
        while one.next().is_ok() {}
        // One that is larger than all that may wait comes alone.
        all.hand_out(&Arc::default(), read(2 * MOST_BYTES / size_of::<Entry>()));
        assert!(one.next().is_ok());
        assert_eq!(one.queue.bytes.load(Ordering::Relaxed), 0);
    }
}
