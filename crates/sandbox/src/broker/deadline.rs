//! Operations that may never end are done by a thread of their own, for which the asking one waits a while.
//!
//! Opening a file asks its file system, and reading the memory of a process may page in from one. Where a server does not
//! answer that never ends, and the thread cannot be ended. It is left behind (`silence`), and another takes its place.

use std::{
    cell::{Cell, RefCell},
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::Builder,
    time::{Duration, Instant},
};

use super::{
    STACK_BYTES, Work,
    activity::{Activity, own_tid},
    failed, serve,
    silence::{self, Source},
};
use parking_lot::Mutex;

/// How long an operation may take whatever its thread does meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may take if its thread runs: on a busy machine, or from a slow disk.
pub(super) const LONGEST: Duration = Duration::from_secs(5);
/// Between two looks at what the thread does.
const LOOK: Duration = Duration::from_millis(100);

thread_local! {
    /// What does such operations for the calling thread; it ends with that.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    /// Whether the calling thread is one that does them.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

struct Worker {
    works: SyncSender<Work>,
    tid: u32,
}

impl Worker {
    /// Has the capabilities of the calling thread.
    fn start() -> io::Result<Self> {
        let (works, asked) = sync_channel::<Work>(1);
        let (tell, told) = sync_channel(1);
        Builder::new()
            .name("file-worker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                IS_WORKER.set(true);
                // Fails only when the asker is gone.
                let _unheard = tell.send(own_tid());
                serve(&asked);
            })?;
        let tid = told.recv().map_err(|_| failed())?;
        Ok(Self { works, tid })
    }
}

/// What became of an operation that is under way.
#[derive(Debug, Default)]
struct Errand(Mutex<Way>);

#[derive(Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Out,
    /// The caller has stopped waiting; its number among those left behind.
    Left(u64),
    Back,
}

impl Errand {
    fn replace(&self, change: impl FnOnce(&Way) -> Option<Way>) -> Way {
        let mut way = self.0.lock();
        match change(&way) {
            Some(next) => std::mem::replace(&mut way, next),
            None => Way::Back,
        }
    }

    /// Leaves it behind; false when it has just come back.
    fn leave(&self, source: Source) -> bool {
        let still_out = |way: &Way| (*way == Way::Out).then(|| Way::Left(silence::leave(source)));
        self.replace(still_out) == Way::Out
    }
}

/// Comes back also when the operation panics.
struct Return(Arc<Errand>);

impl Drop for Return {
    fn drop(&mut self) {
        if let Way::Left(number) = self.0.replace(|_| Some(Way::Back)) {
            silence::back(number);
        }
    }
}

/// Does something that may have to wait for `source`. Fails when that does not answer; see [`silence::is_silence`].
pub(super) fn within<T: Send + 'static>(
    source: Source,
    operation: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    // Many that do not answer must not add up to minutes.
    let waiting = u32::try_from(silence::left_behind()).unwrap_or(u32::MAX);
    let patience = PATIENCE / (1 + waiting / 4);
    within_patience(source, patience, operation)
}

fn within_patience<T: Send + 'static>(
    source: Source,
    patience: Duration,
    operation: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    if IS_WORKER.get() {
        return Ok(operation());
    }
    silence::check(source)?;
    let worker = match WORKER.take() {
        Some(worker) => worker,
        None => Worker::start()?,
    };
    let errand = Arc::new(Errand::default());
    let (answer, answered) = sync_channel(1);
    let sent = Arc::clone(&errand);
    let work: Work = Box::new(move || {
        let _returns = Return(sent);
        // Fails only when the receiver is gone.
        let _unheard = answer.send(operation());
    });
    worker.works.send(work).map_err(|_| failed())?;
    let found = await_answer(&answered, worker.tid, patience);
    match found {
        Some(found) => {
            WORKER.set(Some(worker));
            found
        }
        None if errand.leave(source) => Err(silence::no_answer()),
        // It has answered while that was decided.
        None => {
            WORKER.set(Some(worker));
            answered.try_recv().map_err(|_| failed())
        }
    }
}

/// `None`: it has taken too long.
fn await_answer<T>(answered: &Receiver<T>, tid: u32, patience: Duration) -> Option<io::Result<T>> {
    let begun = Instant::now();
    let mut wait = patience;
    let mut seen = None;
    loop {
        match answered.recv_timeout(wait) {
            Ok(answer) => return Some(Ok(answer)),
            Err(RecvTimeoutError::Disconnected) => return Some(Err(failed())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Activity::of(tid);
        let goes_on = match (&now, &seen) {
            (Some(now), Some(seen)) => now.goes_on(seen),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !goes_on || begun.elapsed() >= LONGEST {
            return None;
        }
        seen = now;
        wait = LOOK;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    /// For a busy machine.
    const LIMIT: Duration = Duration::from_mins(1);

    /// A source that no other test has.
    fn source(minor: u32) -> Source {
        let device = rustix::fs::makedev(0, 0xf_f000 + minor);
        Source::Device(silence::Device::of_stat(device))
    }

    fn until(condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < LIMIT);
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_does_not_answer_is_not_asked_again_until_it_does() {
        let source = source(1);
        let (tell, told) = channel::<()>();
        let waits = move || told.recv().ok();
        let silent = within_patience(source, SHORT, waits).unwrap_err();
        assert!(silence::is_silence(&silent), "{silent}");
        let again = within::<()>(source, || panic!("it is asked"));
        assert!(again.unwrap_err().to_string().contains("does not answer"));
        // Others are.
        assert_eq!(within(self::source(2), || 7).unwrap(), 7);
        tell.send(()).unwrap();
        until(|| silence::check(source).is_ok());
        assert_eq!(within(source, || 8).unwrap(), 8);
    }

    #[test]
    fn one_thread_does_what_is_asked_in_turn_and_what_it_asks_itself() {
        let tid = || within(source(3), own_tid).unwrap();
        assert_eq!(tid(), tid());
        assert_ne!(tid(), own_tid());
        let inner = within(source(3), || within(source(4), own_tid).unwrap());
        assert_eq!(inner.unwrap(), tid());
    }

    #[test]
    fn a_thread_that_runs_gets_more_time() {
        let works = || {
            let begun = Instant::now();
            while begun.elapsed() < SHORT * 10 {}
            9
        };
        assert_eq!(within_patience(source(5), SHORT, works).unwrap(), 9);
    }

    #[test]
    fn a_panic_is_an_error_and_the_next_one_is_answered() {
        assert!(within::<()>(source(6), || panic!("it is broken")).is_err());
        assert_eq!(within(source(6), || 3).unwrap(), 3);
    }

    #[test]
    fn the_thread_ends_with_the_one_that_asks() {
        let tid = std::thread::spawn(|| within(source(7), own_tid).unwrap());
        let tid = tid.join().unwrap();
        until(|| Activity::of(tid).is_none());
    }
}
