//! Payload of connections: reads it on a thread of its own, keeps it inside its share of a CPU, and hands
//! it to who makes requests of it.
//!
//! The thread must not wait for anything else that a session does: the ring buffer is full within a
//! quarter of a second where most is captured. Connections and pieces come in the order in which they
//! were met; the end of a connection comes behind all of its pieces.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use profiler_common::payload::{CAPTURE_DEFAULT, CAPTURE_STEADY, CAPTURE_STOP, Sampling, TURN_NS};
use profiler_model::MAX_CAPTURE_BYTES;
use profiler_network::requests::{
    ByteTotals, CaptureBytes, CaptureOrder, PayloadEvent, SocketFacts,
};
use profiler_sandbox::broker;

use super::{
    requests_events::{PayloadDemux, PayloadRecord},
    requests_share::{Share, Turns, thread_cpu},
    timeline::monotonic_ns,
};
use crate::bpf::{CaptureControl, PieceReader};

/// Time between two readings when there is little to read, and when there is much.
const PAUSE: Duration = Duration::from_millis(10);
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// Records of one reading that are much.
const MUCH: usize = 512;
/// Records that are read before others may look, and the share of a CPU is judged: they take some milliseconds.
const AT_ONCE: usize = 1024;
/// More records than the ring buffer has room for.
const ALL: usize = 1 << 18;
const TURN: Duration = Duration::from_nanos(TURN_NS);
/// Time between two looks at what the listener orders.
const ORDERS: Duration = Duration::from_millis(20);

/// Turns payload into requests.
pub(super) trait Listener: std::fmt::Debug + Send + 'static {
    /// A connection, before its first piece.
    fn connection(&mut self, cookie: u64, facts: SocketFacts);
    fn take(&mut self, event: PayloadEvent<'_>);
    /// What is to be captured of connections from now on, since the last call.
    fn orders(&mut self) -> Vec<(u64, CaptureOrder)>;
}

/// Payload of one task. The thread ends when it is dropped.
#[derive(Debug)]
pub(super) struct Payload<L> {
    questions: SyncSender<Question<L>>,
    fewest: Arc<AtomicU32>,
}

/// What the session has the thread do.
type Question<L> = Box<dyn FnOnce(&mut Reading<L>) + Send>;

/// What the thread owns.
#[derive(Debug)]
struct Reading<L> {
    reader: PieceReader,
    demux: PayloadDemux,
    control: CaptureControl,
    listener: L,
    share: Share,
    turns: Turns,
    sampling: Sampling,
    clock: Clock,
    /// Pieces that were lost until the last look at the share.
    judged_lost: u64,
    /// When it was last said how many connections are captured, and when the newest piece was captured that has
    /// been read; on the kernel's clock.
    sampled_ns: u64,
    newest_ns: u64,
    /// See [`Counts::sampled_one_of`].
    fewest: Arc<AtomicU32>,
}

impl<L: Listener> Payload<L> {
    /// Starts to read what is captured by `sampling`, as `share` had it.
    pub(super) fn start(
        reader: PieceReader,
        control: CaptureControl,
        listener: L,
        share: Share,
        sampling: Sampling,
    ) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel(1);
        let fewest = Arc::new(AtomicU32::new(share.fewest()));
        let mut reading = Reading {
            reader,
            demux: PayloadDemux::default(),
            control,
            listener,
            share,
            turns: Turns::default(),
            sampling,
            clock: Clock::start(),
            judged_lost: 0,
            sampled_ns: 0,
            newest_ns: 0,
            fewest: Arc::clone(&fewest),
        };
        broker::start("payload", move || {
            // CPU time is that of this thread.
            reading.clock = Clock::start();
            reading.run(&asked);
        })?;
        Ok(Self { questions, fewest })
    }

    /// Tells of connections that have ended, each with its time, behind all of their pieces.
    pub(super) fn close(&self, ended: Vec<(u64, u64, ByteTotals)>) -> Result<(), PayloadEnded> {
        self.ask(move |reading| {
            reading.catch_up();
            let all = reading.share.one_of() <= 1;
            for (cookie, at_ns, totals) in ended {
                let totals = ByteTotals {
                    tls: totals.tls && all,
                    ..totals
                };
                let event = reading.demux.closed(cookie, at_ns, totals);
                reading.listener.take(event);
            }
        })
    }

    /// One connection in so many was captured when they were fewest.
    pub(super) fn sampled_one_of(&self) -> u32 {
        self.fewest.load(Ordering::Relaxed)
    }

    /// Reads what is there, and lets the listener say what it has learned. `use_listener` learns of how
    /// many connections one is captured, and how many pieces were lost.
    pub(super) fn with<T: Send + 'static>(
        &self,
        use_listener: impl FnOnce(&mut L, Counts) -> T + Send + 'static,
    ) -> Result<T, PayloadEnded> {
        self.ask(move |reading| {
            reading.catch_up();
            let counts = Counts {
                sampled_one_of: reading.share.fewest(),
                lost_pieces: reading.demux.lost(),
            };
            // The share is for what is captured, not for what is made of it.
            let before = thread_cpu();
            let answer = use_listener(&mut reading.listener, counts);
            reading.clock.cpu += thread_cpu().saturating_sub(before);
            answer
        })
    }

    /// Has the thread do something, and waits for it: the decoder of payload has no capabilities, and the session does.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Reading<L>) -> T + Send + 'static,
    ) -> Result<T, PayloadEnded> {
        let (answer, answered) = sync_channel(1);
        let question: Question<L> = Box::new(move |reading| {
            // Fails only when the asker is gone.
            let _unheard = answer.send(question(reading));
        });
        self.questions.send(question).map_err(|_| PayloadEnded)?;
        answered.recv().map_err(|_| PayloadEnded)
    }
}

/// Payload is not read any more, which is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread that reads payload has ended")]
pub(super) struct PayloadEnded;

/// What the reading itself has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// One connection in so many was captured when they were fewest.
    pub(super) sampled_one_of: u32,
    /// Pieces that did not fit the ring buffer, of connections that were announced.
    pub(super) lost_pieces: u64,
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

impl<L: Listener> Reading<L> {
    /// Reads until no sender of questions is left.
    fn run(&mut self, asked: &Receiver<Question<L>>) {
        loop {
            let read = self.turn();
            let pause = match read {
                ..MUCH => PAUSE,
                MUCH..AT_ONCE => SHORT_PAUSE,
                AT_ONCE.. => Duration::ZERO,
            };
            match asked.recv_timeout(pause) {
                Ok(question) => question(self),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Reads what is there, at most what the ring buffer holds. The share is kept meanwhile: what is read here
    /// may be most of all.
    fn catch_up(&mut self) {
        for _ in 0..ALL / AT_ONCE {
            if self.turn() < AT_ONCE {
                return;
            }
        }
    }

    /// One turn of the thread; the number of records that were read.
    fn turn(&mut self) -> usize {
        let read = self.read();
        let now = Instant::now();
        if now.duration_since(self.clock.ordered) >= ORDERS {
            self.clock.ordered = now;
            self.order();
        }
        let elapsed = now.duration_since(self.clock.looked);
        let cpu = thread_cpu();
        let used = cpu.saturating_sub(self.clock.cpu);
        let interval = self.share.interval(self.turn_length());
        let is_behind = read == AT_ONCE && self.newest_ns <= self.sampled_ns;
        if is_behind {
            // It was captured before fewer connections were: it shows nothing about whether they are few enough.
            self.judged_lost = self.demux.lost();
        } else if elapsed >= interval || self.share.is_used_up(interval, used) {
            self.judge(elapsed, used);
            for event in self.demux.rested(monotonic_ns()) {
                self.listener.take(event);
            }
        } else {
            return read;
        }
        self.clock.looked = now;
        self.clock.cpu = cpu;
        read
    }

    /// How long a turn is, where connections take turns.
    fn turn_length(&self) -> Option<Duration> {
        self.sampling.takes_turns().then_some(TURN)
    }

    fn read(&mut self) -> usize {
        let Self {
            reader,
            demux,
            listener,
            turns,
            newest_ns,
            ..
        } = self;
        reader.read(AT_ONCE, |record| match demux.tell(record) {
            PayloadRecord::Connection { cookie, facts } => listener.connection(cookie, facts),
            PayloadRecord::Piece { lost, piece } => {
                if let Some(lost) = lost {
                    listener.take(lost);
                }
                *newest_ns = piece.at_ns;
                turns.note(piece.cookie);
                listener.take(PayloadEvent::Piece(piece));
            }
            PayloadRecord::End(event) => listener.take(event),
        })
    }

    /// Passes on what the listener wants of connections.
    fn order(&mut self) {
        for (cookie, order) in self.listener.orders() {
            let bytes = match order.bytes {
                CaptureBytes::Usual => CAPTURE_DEFAULT,
                CaptureBytes::Stop => CAPTURE_STOP,
                CaptureBytes::First(bytes) => bytes.clamp(1, MAX_CAPTURE_BYTES),
            };
            let steady = if order.is_steady { CAPTURE_STEADY } else { 0 };
            match self.control.order(cookie, bytes | steady) {
                // It may have ended.
                Ok(_is_there) => {}
                Err(error) => tracing::debug!(%error, "say what is captured of a connection"),
            }
        }
    }

    /// Looks whether the share of a CPU was kept.
    fn judge(&mut self, elapsed: Duration, cpu: Duration) {
        let lost = self.demux.lost();
        let lost_now = lost.saturating_sub(std::mem::replace(&mut self.judged_lost, lost));
        let is_changed = self
            .share
            .look(elapsed, cpu, lost_now, self.turn_length())
            .is_some();
        let one_of = self.share.one_of();
        let in_turns = self.turns.look() && one_of > 1;
        if is_changed {
            self.fewest.store(self.share.fewest(), Ordering::Relaxed);
            tracing::info!(
                one_of,
                in_turns,
                ?cpu,
                lost_now,
                "payload is captured of one connection in so many"
            );
            self.sampled_ns = monotonic_ns();
        }
        let sampling = Sampling::new(one_of.trailing_zeros(), in_turns);
        if sampling == self.sampling {
            return;
        }
        match self.control.sample(sampling) {
            Ok(()) => self.sampling = sampling,
            Err(error) => tracing::warn!(%error, "sample connections"),
        }
    }
}
