//! Whether another thread works or only waits: what the kernel counts of its time on a CPU.

use std::{
    cell::RefCell,
    fs, io,
    sync::Arc,
    time::{Duration, Instant},
};

use super::silence::{self, Device, Source};
use parking_lot::{Mutex, MutexGuard};

/// A thread that has not run for this long within one piece of work waits for something that does not answer. Time in
/// which its `broker` works for it does not count: that has a limit of its own.
const STUCK: Duration = Duration::from_secs(3);

/// File systems that are noted within one piece of work.
const MOST_READ: usize = 16;

thread_local! {
    /// The watch over the calling thread.
    static OWN: RefCell<Option<Arc<ThreadWatch>>> = const { RefCell::new(None) };
}

/// What the kernel has counted of a thread until now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    /// Time on a CPU, time in a queue, how often it came to one.
    scheduled: Vec<u8>,
    /// It runs, or waits for a CPU.
    runs: bool,
}

impl Activity {
    /// Of a thread of this process; `None` when it has ended.
    pub(super) fn of(tid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/self/task/{tid}/stat")).ok()?;
        // Not every kernel keeps the counts; then the times in `stat` are all there is.
        let scheduled = fs::read(format!("/proc/self/task/{tid}/schedstat"));
        Some(Self {
            runs: state(&stat) == Some(b'R'),
            scheduled: scheduled.unwrap_or(stat),
        })
    }

    /// Whether the thread has done something since `before`.
    pub(super) fn goes_on(&self, before: &Self) -> bool {
        self.runs || self.scheduled != before.scheduled
    }
}

/// The letter behind the name.
fn state(stat: &[u8]) -> Option<u8> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_ends + 2).copied()
}

pub(super) fn own_tid() -> u32 {
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    tid.unsigned_abs()
}

/// Follows what one thread does, for threads that wait for it.
#[derive(Debug, Default)]
pub struct ThreadWatch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Once it has begun.
    tid: Option<u32>,
    work: Option<Work>,
    /// It waits for its `broker`.
    is_asking: bool,
    /// Its number among those that were left behind.
    left: Option<u64>,
}

#[derive(Debug)]
struct Work {
    /// File systems of targets that it has begun to read, the last one at the end.
    reads: Vec<Device>,
    /// What was seen last, and since when that has not changed.
    seen: Option<Activity>,
    since: Instant,
}

impl ThreadWatch {
    /// The calling thread is the one that is watched from now on.
    pub fn begin(watch: &Arc<Self>) {
        watch.lock().tid = Some(own_tid());
        OWN.set(Some(Arc::clone(watch)));
    }

    /// The thread works until the result is dropped.
    pub fn work(&self) -> Working<'_> {
        self.lock().work = Some(Work {
            reads: Vec::new(),
            seen: None,
            since: Instant::now(),
        });
        Working(self)
    }

    /// Whether it has worked on one thing without running for too long. What it reads then counts as silent, and
    /// it as left behind, until it is back.
    pub fn is_stuck(&self) -> bool {
        let mut state = self.lock();
        if state.left.is_some() {
            return true;
        }
        let is_asking = state.is_asking;
        let (Some(tid), Some(work)) = (state.tid, &mut state.work) else {
            return false;
        };
        let now = Activity::of(tid);
        let goes_on = match (&now, &work.seen) {
            (Some(_), Some(_)) if is_asking => true,
            (Some(now), Some(seen)) => now.goes_on(seen),
            // Seen for the first time.
            (Some(_), None) => true,
            // It has ended, which its callers learn otherwise.
            (None, _) => return false,
        };
        if goes_on {
            work.seen = now;
            work.since = Instant::now();
            return false;
        }
        if work.since.elapsed() < STUCK {
            return false;
        }
        let source = work.suspect().map_or(Source::Unknown, Source::Device);
        state.left = Some(silence::leave(source));
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns how many file systems it read before.
    fn read(&self, device: u64) -> usize {
        let mut state = self.lock();
        let Some(work) = &mut state.work else {
            return 0;
        };
        let before = work.reads.len();
        if before < MOST_READ {
            work.reads.push(Device::of_stat(device));
        }
        before
    }

    fn is_back(state: &mut State) {
        if let Some(number) = state.left.take() {
            silence::back(number);
        }
    }
}

impl Work {
    /// What it waits for, as far as is known: rather a file system without a device of its own, which has a server.
    fn suspect(&self) -> Option<Device> {
        let served = self.reads.iter().rfind(|device| device.major == 0);
        served.or_else(|| self.reads.last()).copied()
    }
}

/// See [`ThreadWatch::work`].
#[derive(Debug)]
pub struct Working<'watch>(&'watch ThreadWatch);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.work = None;
        ThreadWatch::is_back(&mut state);
    }
}

/// Says which file system (`st_dev`) the calling thread reads, until the result is dropped.
pub fn reading(device: u64) -> Reading {
    let watch = OWN.with_borrow(Clone::clone);
    let before = watch.as_ref().map_or(0, |watch| watch.read(device));
    Reading { watch, before }
}

/// Says that the calling thread reads one more, within what it reads.
pub fn reads_also(device: u64) {
    if let Some(watch) = OWN.with_borrow(Clone::clone) {
        watch.read(device);
    }
}

/// See [`reading`].
#[derive(Debug)]
pub struct Reading {
    watch: Option<Arc<ThreadWatch>>,
    before: usize,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut state = watch.lock();
        if let Some(work) = &mut state.work {
            work.reads.truncate(self.before);
        }
        ThreadWatch::is_back(&mut state);
    }
}

/// Says that the calling thread waits for its `broker`, until the result is dropped.
pub(super) fn asking() -> Asking {
    let watch = OWN.with_borrow(Clone::clone);
    if let Some(watch) = &watch {
        watch.lock().is_asking = true;
    }
    Asking(watch)
}

/// See [`asking`].
#[derive(Debug)]
pub(super) struct Asking(Option<Arc<ThreadWatch>>);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(watch) = &self.0 {
            watch.lock().is_asking = false;
        }
    }
}

/// The error of a caller that no longer waits for a thread.
pub fn stuck() -> io::Error {
    silence::no_answer()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        thread,
    };

    use super::*;

    /// For a busy machine.
    const LIMIT: Duration = Duration::from_mins(1);

    /// A thread that begins with `work` on a signal; the watch over it.
    fn watched(
        work: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> (Arc<ThreadWatch>, Sender<()>) {
        let watch = Arc::new(ThreadWatch::default());
        let (tell, told) = channel();
        let own = Arc::clone(&watch);
        thread::spawn(move || {
            ThreadWatch::begin(&own);
            let _working = own.work();
            work(&told);
        });
        (watch, tell)
    }

    #[test]
    fn the_state_stands_behind_the_name() {
        assert_eq!(state(b"4 (a) R (b) S 1 2"), Some(b'S'));
        assert_eq!(state(b"4 (a)"), None);
        assert_eq!(state(b""), None);
    }

    #[test]
    fn a_file_system_with_a_server_is_suspected_first() {
        let device = |major| Device { major, minor: 1 };
        let check = |reads: &[u32], expected: Option<u32>| {
            let work = Work {
                reads: reads.iter().map(|major| device(*major)).collect(),
                seen: None,
                since: Instant::now(),
            };
            assert_eq!(work.suspect(), expected.map(device), "{reads:?}");
        };
        check(&[], None);
        check(&[8], Some(8));
        check(&[0, 8], Some(0));
        check(&[8, 0, 9], Some(0));
    }

    #[test]
    fn a_thread_that_waits_within_its_work_is_stuck_until_it_is_back() {
        // No device has this number: nothing else is silent through it.
        let device = rustix::fs::makedev(0, 0xf_fff1);
        let (watch, tell) = watched(move |told| {
            let _reading = reading(device);
            told.recv().unwrap();
        });
        let begun = Instant::now();
        while !watch.is_stuck() {
            assert!(begun.elapsed() < LIMIT);
            thread::sleep(Duration::from_millis(10));
        }
        assert!(begun.elapsed() >= STUCK);
        let source = Source::Device(Device::of_stat(device));
        assert!(silence::is_silence(&silence::check(source).unwrap_err()));
        tell.send(()).unwrap();
        while watch.is_stuck() {
            assert!(begun.elapsed() < LIMIT);
            thread::yield_now();
        }
        assert!(silence::check(source).is_ok());
    }

    #[test]
    fn a_thread_that_works_or_has_nothing_to_do_is_not_stuck() {
        let (busy, tell) = watched(|told| while told.try_recv().is_err() {});
        let idle = Arc::new(ThreadWatch::default());
        let (end, ended) = channel::<()>();
        let own = Arc::clone(&idle);
        thread::spawn(move || {
            ThreadWatch::begin(&own);
            drop(own.work());
            ended.recv().ok();
        });
        let begun = Instant::now();
        while begun.elapsed() < STUCK + Duration::from_secs(1) {
            assert!(!busy.is_stuck() && !idle.is_stuck());
            thread::sleep(Duration::from_millis(20));
        }
        drop((tell, end));
    }
}
