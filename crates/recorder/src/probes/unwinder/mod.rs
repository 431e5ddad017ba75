//! The agent's half of unwinding: keeps the kernel's tables filled, and walks the samples that the
//! kernel could not.
//!
//! ```text
//! capture (registers, stack) -> processes (mappings) -> tables (pages) -> native walk -> stack
//!                                       |                    |
//!                                       +----- kernel maps --+
//! ```
//!
//! Tables in the kernel are only a cache: a sample that misses there is walked here with the same
//! step, and what it needed is in the kernel for the next one.

mod asleep;
mod live_memory;
mod machine;
mod oracle;
mod processes;
mod worker;

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use profiler_common::process::{EVENT_EXEC, EVENT_EXIT, ProcessRecord};
use profiler_model::TableCounts;
use profiler_sandbox::{
    broker::{self, ThreadWatch},
    confine::Reach,
    privileges,
};
use profiler_unwind::ProcessCode;
use rustix::event::{EventfdFlags, eventfd};

use crate::bpf::{CaptureReader, LoadError, TakeBack, UnwindMaps};
use worker::Worker;

/// Commands that may wait; one that finds no room is not needed: samples of an unknown process are
/// captured and make it known.
const COMMANDS: usize = 1024;

/// Processes that are read before a task samples, and the time that may take.
const KNOWN_PROCESSES: usize = 256;
const KNOWING: Duration = Duration::from_secs(1);

/// Between two looks at whether the thread works.
const LOOK: Duration = Duration::from_millis(50);

/// What a task says whose unwinder did not come back.
const STUCK_NOTE: &str = "the unwinder waits for a file that does not answer: stacks that it had to walk are missing, their \
                          samples are kept";

/// Walked stacks that may wait for the session.
const WALKED: usize = 4096;

/// Messages from the session.
#[derive(Debug)]
enum Command {
    /// Sent back when all earlier commands were obeyed.
    Answer(SyncSender<()>),
    Known {
        pid: u32,
    },
    Exec {
        pid: u32,
        generation: u32,
        /// What it executes, when that could be read.
        code: Option<ProcessCode>,
    },
    Exit {
        pid: u32,
    },
}

/// How the thread learns that captures have come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    /// The kernel wakes it.
    Woken,
    /// It polls often: programs that hold a lock of the scheduler cannot wake it.
    Polling,
}

/// A stack that was walked here.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) hash: u64,
    /// Leaf first, as `profiler_common::unwind::frame`.
    pub(super) addresses: Box<[u64]>,
    pub(super) purpose: Purpose,
}

/// What a walked stack is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is the stack of the sample.
    Repair,
    /// The kernel's stack of this hash should be the same.
    CompareWhole,
    /// The kernel's stack of this hash should begin so: the rest could not be walked independently.
    CompareBeginning,
}

/// Handle on the thread that unwinds for one collection; it ends with the handle.
#[derive(Debug)]
pub(super) struct Unwinder {
    /// None while the thread is to finish.
    commands: Option<SyncSender<Command>>,
    wake: Arc<OwnedFd>,
    walked: Receiver<Walked>,
    counts: Arc<Mutex<TableCounts>>,
    thread: Option<JoinHandle<()>>,
    watch: Arc<ThreadWatch>,
    take_back: TakeBack,
}

/// What the thread leaves when it ends.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) walked: Vec<Walked>,
    pub(super) counts: TableCounts,
    /// Why something is missing.
    pub(super) note: Option<String>,
}

impl Unwinder {
    pub(super) fn start(
        id: u64,
        maps: UnwindMaps,
        captures: CaptureReader,
        notice: Notice,
    ) -> Result<Self, LoadError> {
        let (commands, orders) = sync_channel(COMMANDS);
        let (results, walked) = sync_channel(WALKED);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| LoadError::Thread(errno.into()))?;
        let wake = Arc::new(wake);
        let counts = Arc::new(Mutex::new(TableCounts::default()));
        let take_back = TakeBack::new(&maps, &captures);
        let watch = Arc::new(ThreadWatch::default());
        let watched = Arc::clone(&watch);
        let mut worker = Worker::new(maps, Arc::clone(&counts))?;
        let woken = Arc::clone(&wake);
        // It understands what programs report about themselves.
        let give_up = move || {
            privileges::keep_none_or_bpf(|| worker.can_write()).map_err(io::Error::other)?;
            Ok(worker)
        };
        let thread = broker::start_after(
            format!("unwind-{id}"),
            Reach::Given,
            give_up,
            move |worker| {
                let patience = match notice {
                    Notice::Woken => worker::WAIT,
                    Notice::Polling => worker::POLL,
                };
                ThreadWatch::begin(&watched);
                let _working = watched.work();
                worker.run(captures, &orders, woken.as_fd(), &results, patience);
            },
        )
        .map_err(LoadError::Thread)?;
        Ok(Self {
            commands: Some(commands),
            wake,
            walked,
            counts,
            thread: Some(thread),
            watch,
            take_back,
        })
    }

    /// Reads processes that run already, before their first sample; returns when that is done, or
    /// has taken too long.
    pub(super) fn know(&self, pids: impl Iterator<Item = u32>) {
        for pid in pids.take(KNOWN_PROCESSES) {
            self.tell(Command::Known { pid });
        }
        let (done, finished) = sync_channel(1);
        self.tell(Command::Answer(done));
        // Without an answer the first samples are walked by the agent.
        let _late = finished.recv_timeout(KNOWING);
    }

    /// Follows execs and exits; `code` is what the process executes now, as far as the session could read it.
    pub(super) fn process_changed(&self, record: &ProcessRecord, code: Option<ProcessCode>) {
        let pid = record.pid;
        match record.event {
            EVENT_EXEC => self.tell(Command::Exec {
                pid,
                generation: record.generation,
                code,
            }),
            EVENT_EXIT => self.tell(Command::Exit { pid }),
            _ => {}
        }
    }

    /// Stacks that were walked since the last call.
    pub(super) fn walked(&self) -> impl Iterator<Item = Walked> + '_ {
        self.walked.try_iter()
    }

    /// Counts since the last call.
    pub(super) fn take_counts(&self) -> TableCounts {
        std::mem::take(&mut *self.counts.lock())
    }

    /// Walks what the kernel has sent until now, and ends the thread: as long as that works. One that waits for a file
    /// which does not answer is left behind, without anything of the kernel's.
    pub(super) fn finish(mut self) -> Finished {
        self.commands = None;
        self.wake();
        let mut walked = Vec::new();
        let note = loop {
            match self.walked.recv_timeout(LOOK) {
                Ok(one) => walked.push(one),
                Err(RecvTimeoutError::Disconnected) => {
                    self.join();
                    break None;
                }
                Err(RecvTimeoutError::Timeout) if self.watch.is_stuck() => {
                    self.take_back.take_back();
                    break Some(STUCK_NOTE.to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        Finished {
            walked,
            counts: self.take_counts(),
            note,
        }
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // Full: see `COMMANDS`. Ended: it said so itself.
            let _not_needed = commands.try_send(command);
            self.wake();
        }
    }

    fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // Fails when the counter is full, and then the thread is awake.
        let _awake = rustix::io::write(&self.wake, &one);
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the unwinder panicked; stacks it had to walk are lost");
        }
    }
}
