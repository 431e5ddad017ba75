//! Threads that parse untrusted input run without capabilities; a privileged partner thread opens files for them.
//!
//! A thread that [`start`] starts gives up its capabilities before it works. Its partner, a thread `broker`, keeps those
//! of who started both and does for it what the implementations of [`Operation`] do: it opens, looks up, or reads whole, and
//! understands nothing of what it reads. The kernel asks for permission to read `/proc/PID/maps`, `/proc/PID/mem`, `/proc/kallsyms` and files when
//! they are opened (`proc_mem_open`, `kallsyms_open`); a descriptor can then be read by any thread.
//!
//! Each such thread has a partner of its own, which ends with it: one that waits for a file system holds up no other.
//!
//! What may never be answered (`Operation::waits_for`) is done by one more thread, `file-worker`, for which the asking one
//! waits a second (`deadline`). A thread that waits for another one that reads such files uses a `ThreadWatch`.

mod activity;
mod deadline;
mod files;
mod silence;

use std::{
    cell::RefCell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

pub use activity::{Reading, ThreadWatch, reading, reads_also, stuck};
pub use files::{
    Entry, OwnPath, append, list, living, open, open_path, open_path_of, read, read_at, read_link,
    read_of, replace,
};
pub use silence::{Device, Source, is_left_behind_too_often, is_silence, left_behind};

use crate::{
    confine::{Reach, confine_reader},
    privileges,
};

/// Room for what the partner does: it asks the kernel.
const STACK_BYTES: usize = 256 * 1024;

type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Where operations of the calling thread are performed; `None`: by itself.
    static OPENER: RefCell<Option<SyncSender<Work>>> = const { RefCell::new(None) };
}

/// Something that may need capabilities. It must not understand what a target wrote.
pub trait Operation: Send + 'static {
    type Answer: Send + 'static;

    /// What it may have to wait for without an end; `None`: the kernel answers by itself.
    fn waits_for(&self) -> Option<Source> {
        None
    }

    fn perform(self) -> Self::Answer;
}

/// Performs an operation: by the partner of the calling thread, or for the calling thread where it has none. Fails when
/// the partner has ended or failed, and when what it waits for does not answer (`is_silence`). Blocks.
pub fn perform<O: Operation>(operation: O) -> io::Result<O::Answer> {
    let Some(broker) = partner() else {
        return perform_here(operation);
    };
    ask(&broker, move || perform_here(operation))
        .inspect_err(|error| tracing::error!(%error, "open a file by another thread"))?
}

fn perform_here<O: Operation>(operation: O) -> io::Result<O::Answer> {
    match operation.waits_for() {
        None => Ok(operation.perform()),
        Some(source) => deadline::within(source, move || operation.perform()),
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that was asked has ended or failed")
}

/// Has another thread do something, and waits for it.
fn ask<T: Send + 'static>(
    other: &SyncSender<Work>,
    question: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = sync_channel(1);
    let work: Work = Box::new(move || {
        // Fails only when the asker is gone.
        let _unheard = answer.send(question());
    });
    let _asking = activity::asking();
    other.send(work).map_err(|_| failed())?;
    answered.recv().map_err(|_| failed())
}

/// Starts a thread that holds no capability. Fails also when it cannot give them up.
pub fn start(
    name: impl Into<String>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    start_after(name, Reach::Given, keep_none, |()| work())
}

/// The same for a thread that does something before, and may need more than it is given: `give_up` has the capabilities
/// of the calling thread, and ends with giving them up.
pub fn start_after<P>(
    name: impl Into<String>,
    reach: Reach,
    give_up: impl FnOnce() -> io::Result<P> + Send + 'static,
    work: impl FnOnce(P) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let broker = partner_or_new()?;
    let (told, ready) = sync_channel(1);
    let thread = Builder::new().name(name.into()).spawn(move || {
        let given_up = give_up().and_then(|prepared| {
            confine_reader(&reach).map_err(io::Error::other)?;
            Ok(prepared)
        });
        OPENER.set(Some(broker));
        match given_up {
            Ok(prepared) => {
                // The starter of the thread waits for it.
                let _unheard = told.send(Ok(()));
                work(prepared);
            }
            Err(error) => {
                let _unheard = told.send(Err(error));
            }
        }
    })?;
    let ended = |_| io::Error::other("the thread has ended before it began");
    ready.recv().map_err(ended)??;
    Ok(thread)
}

/// A thread without capabilities that does one piece of work after the other, until its owner is gone.
#[derive(Debug)]
pub struct Helper(SyncSender<Work>);

impl Helper {
    /// Starts the thread.
    pub fn start(name: &str) -> io::Result<Self> {
        let (asked, works) = sync_channel(1);
        start(name, move || serve(&works))?;
        Ok(Self(asked))
    }

    /// Waits for the work. An error: it panicked.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        ask(&self.0, work)
    }
}

/// Does work that understands what others wrote on a thread without capabilities, and waits for it. A thread that has
/// none does it itself. An error: there is no such thread, or it panicked.
pub fn apart<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if partner().is_some() {
        return Ok(work());
    }
    let broker = start_opener()?;
    thread::scope(|scope| {
        let worker = Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, || {
                keep_none()?;
                confine_reader(&Reach::Given).map_err(io::Error::other)?;
                OPENER.set(Some(broker));
                Ok(work())
            })?;
        let panicked = |_| io::Error::other(format!("the thread {name} panicked"));
        worker.join().map_err(panicked)?
    })
}

/// The same for work that reads files of a target, and so may never end: it is given up when its thread waits for one
/// that does not answer (`is_silence`).
pub fn apart_while_active<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    /// Between two looks at what the thread does.
    const LOOK: Duration = Duration::from_millis(50);
    silence::check(Source::Unknown)?;
    let watch = Arc::new(ThreadWatch::default());
    let own = Arc::clone(&watch);
    let (answer, answered) = sync_channel(1);
    start(name, move || {
        ThreadWatch::begin(&own);
        let _working = own.work();
        // Fails only when the receiver is gone.
        let _unheard = answer.send(work());
    })?;
    loop {
        match answered.recv_timeout(LOOK) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Timeout) if watch.is_stuck() => return Err(stuck()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other(format!("the thread {name} panicked")));
            }
        }
    }
}

/// What [`start_after`] needs for a thread that only gives its capabilities up.
pub fn keep_none() -> io::Result<()> {
    privileges::keep_none().map_err(io::Error::other)
}

fn partner() -> Option<SyncSender<Work>> {
    OPENER.with_borrow(Clone::clone)
}

/// What a thread starts has the capabilities of that thread, which may have none to give to a new partner.
fn partner_or_new() -> io::Result<SyncSender<Work>> {
    partner().map_or_else(start_opener, Ok)
}

fn start_opener() -> io::Result<SyncSender<Work>> {
    // The caller waits for the answer.
    let (asked, works) = sync_channel(1);
    Builder::new()
        .name("broker".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || serve(&works))?;
    Ok(asked)
}

/// A panic costs one operation, not the thread.
fn serve(works: &Receiver<Work>) {
    while let Ok(work) = works.recv() {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!("work for another thread panicked");
        }
    }
}

#[cfg(test)]
mod tests;
