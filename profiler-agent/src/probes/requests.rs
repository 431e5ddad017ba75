//! Payload of connections: reads it on a thread of its own, keeps it inside its share of a CPU, and hands
//! it to who makes requests of it.
//!
//! The thread must not wait for anything else that a session does: the ring buffer is full within a
//! quarter of a second where most is captured. Connections and pieces come in the order in which they
//! were met; the end of a connection comes behind all of its pieces.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use profiler_common::payload::CAPTURE_STOP;

use super::{
    requests_events::{Heard, Told},
    requests_share::{Share, thread_cpu},
    timeline::monotonic_ns,
};
use crate::{
    bpf::{CaptureControl, LoadError, PieceReader},
    model::MAX_CAPTURE_BYTES,
    requests::{CaptureOrder, Facts, PayloadEvent, Whole},
};

/// Time between two readings when there is little to read, and when there is much.
const PAUSE: Duration = Duration::from_millis(10);
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// Records of one reading that are much.
const MUCH: usize = 1000;
/// Records that are read before others may look.
const AT_ONCE: usize = 4096;
/// More records than the ring buffer has room for.
const ALL: usize = 1 << 18;
/// Time between two looks at the share of a CPU, and at what the listener orders.
const LOOK: Duration = Duration::from_millis(250);
const ORDERS: Duration = Duration::from_millis(20);

/// Who makes requests of payload.
pub(super) trait Listener: std::fmt::Debug + Send + 'static {
    /// A connection, before its first piece.
    fn connection(&mut self, cookie: u64, facts: Facts);
    fn take(&mut self, event: PayloadEvent);
    /// What is to be captured of connections from now on, since the last call.
    fn orders(&mut self) -> Vec<(u64, CaptureOrder)>;
}

/// Payload of one task. The thread ends when it is dropped.
#[derive(Debug)]
pub(super) struct Payload<L> {
    shared: Arc<Mutex<Shared<L>>>,
}

#[derive(Debug)]
struct Shared<L> {
    reader: PieceReader,
    heard: Heard,
    control: CaptureControl,
    listener: L,
    share: Share,
    /// Pieces that were lost until the last look at the share.
    judged_lost: u64,
}

impl<L: Listener> Payload<L> {
    /// Starts to read. `cpu_percent` of one CPU may be used before connections are sampled.
    pub(super) fn start(
        reader: PieceReader,
        control: CaptureControl,
        listener: L,
        cpu_percent: u32,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared {
            reader,
            heard: Heard::default(),
            control,
            listener,
            share: Share::new(cpu_percent),
            judged_lost: 0,
        }));
        let watched = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("payload".into())
            .spawn(move || {
                let mut clock = Clock::start();
                while let Some(shared) = watched.upgrade() {
                    let read = lock(&shared).turn(&mut clock);
                    drop(shared);
                    if read < AT_ONCE {
                        std::thread::sleep(if read < MUCH { PAUSE } else { SHORT_PAUSE });
                    }
                }
            })?;
        Ok(Self { shared })
    }

    /// Tells of connections that have ended, each with its time, behind all of their pieces.
    pub(super) fn close(&self, ended: &[(u64, u64, Whole)]) {
        let mut shared = lock(&self.shared);
        shared.read(ALL);
        let all = shared.share.one_of() <= 1;
        for (cookie, at_ns, whole) in ended {
            let whole = Whole {
                tls: whole.tls && all,
                ..*whole
            };
            let event = shared.heard.closed(*cookie, *at_ns, whole);
            shared.listener.take(event);
        }
    }

    /// One connection in so many was captured when they were fewest.
    pub(super) fn sampled_one_of(&self) -> u32 {
        lock(&self.shared).share.fewest()
    }

    /// Reads what is there, and lets the listener say what it has learned. `use_listener` learns of how
    /// many connections one is captured, and how many pieces were lost.
    pub(super) fn with<T>(&self, use_listener: impl FnOnce(&mut L, Counts) -> T) -> T {
        let mut shared = lock(&self.shared);
        shared.read(ALL);
        let counts = Counts {
            sampled_one_of: shared.share.fewest(),
            lost_pieces: shared.heard.lost(),
        };
        use_listener(&mut shared.listener, counts)
    }
}

/// What the reading itself has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// One connection in so many was captured when they were fewest.
    pub(super) sampled_one_of: u32,
    /// Pieces that did not fit the ring buffer, of connections that were told of.
    pub(super) lost_pieces: u64,
}

fn lock<L>(shared: &Mutex<Shared<L>>) -> MutexGuard<'_, Shared<L>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the thread looked last.
#[derive(Debug)]
struct Clock {
    looked: Instant,
    ordered: Instant,
    cpu: Duration,
}

impl Clock {
    fn start() -> Self {
        Self {
            looked: Instant::now(),
            ordered: Instant::now(),
            cpu: thread_cpu(),
        }
    }
}

impl<L: Listener> Shared<L> {
    /// One turn of the thread; the number of records that were read.
    fn turn(&mut self, clock: &mut Clock) -> usize {
        let read = self.read(AT_ONCE);
        let now = Instant::now();
        if now.duration_since(clock.ordered) >= ORDERS {
            clock.ordered = now;
            self.order();
        }
        let elapsed = now.duration_since(clock.looked);
        if elapsed >= LOOK {
            let cpu = thread_cpu();
            self.judge(elapsed, cpu.saturating_sub(clock.cpu));
            for event in self.heard.rested(monotonic_ns()) {
                self.listener.take(event);
            }
            clock.looked = now;
            clock.cpu = cpu;
        }
        read
    }

    fn read(&mut self, most: usize) -> usize {
        let Self {
            reader,
            heard,
            listener,
            ..
        } = self;
        reader.read(most, |record| match heard.tell(record) {
            Told::Connection { cookie, facts } => listener.connection(cookie, facts),
            Told::Piece { lost, piece } => {
                if let Some(lost) = lost {
                    listener.take(lost);
                }
                listener.take(piece);
            }
        })
    }

    /// Passes on what the listener wants of connections.
    fn order(&mut self) {
        for (cookie, order) in self.listener.orders() {
            let capture_bytes = match order {
                CaptureOrder::Stop => CAPTURE_STOP,
                CaptureOrder::Bytes(bytes) => bytes.clamp(1, MAX_CAPTURE_BYTES),
            };
            match self.control.order(cookie, capture_bytes) {
                // It may have ended.
                Ok(_is_there) => {}
                Err(error) => tracing::debug!(%error, "say what is captured of a connection"),
            }
        }
    }

    /// Looks whether the share of a CPU was kept.
    fn judge(&mut self, elapsed: Duration, cpu: Duration) {
        let lost = self.heard.lost();
        let lost_now = lost.saturating_sub(std::mem::replace(&mut self.judged_lost, lost));
        let Some(one_of) = self.share.look(elapsed, cpu, lost_now) else {
            return;
        };
        tracing::info!(
            one_of,
            ?cpu,
            lost_now,
            "payload is captured of one connection in so many"
        );
        if let Err(error) = self.sample(one_of) {
            tracing::warn!(%error, "sample connections");
        }
    }

    fn sample(&mut self, one_of: u32) -> Result<(), LoadError> {
        self.control.sample(one_of.saturating_sub(1))
    }
}
