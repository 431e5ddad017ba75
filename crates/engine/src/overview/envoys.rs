//! What Envoys count, asked again and again: a thread for each, in its network namespace and without capabilities.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_clock::thread_cpu_ns;
use profiler_host::envoy_admin::{self, EnvoyAdmin, EnvoyAdminError, HttpTraffic};
use profiler_model::ProcessKey;
use profiler_sandbox::{broker, confine::Reach};

/// Envoys that are asked.
const MOST: usize = 64;
/// How long answers are waited for; one that comes later counts at the next reading.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time before an Envoy that could not be asked is tried again.
const RETRY: Duration = Duration::from_mins(1);
/// Time between two questions in times of what an answer takes: answering may need 0.5 % of Envoy's main thread.
const PAUSE_FACTOR: u32 = 200;

/// What an Envoy had counted at a moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) traffic: HttpTraffic,
}

/// What is known of an Envoy.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) before: Option<Reading>,
    pub(super) newest: Option<Reading>,
    /// Why there is nothing newer. Untrusted text.
    pub(super) error: Option<String>,
    /// How long the newest answer took.
    took: Duration,
}

#[derive(Debug)]
struct Counter {
    /// `None`: the thread has ended, or could not be started.
    ask: Option<SyncSender<()>>,
    answers: Arc<Mutex<Answers>>,
    began: Instant,
    not_before: Instant,
}

/// The threads.
#[derive(Debug)]
pub(super) struct Envoys {
    counters: BTreeMap<ProcessKey, Counter>,
    /// Envoys beyond [`MOST`].
    pub(super) left_out: usize,
    done: (SyncSender<()>, Receiver<()>),
    /// CPU time of all threads that have been.
    cost_ns: Arc<AtomicU64>,
}

impl Envoys {
    pub(super) fn new() -> Self {
        Self {
            counters: BTreeMap::new(),
            left_out: 0,
            done: sync_channel(2 * MOST),
            cost_ns: Arc::default(),
        }
    }

    pub(super) fn cost_ns(&self) -> u64 {
        self.cost_ns.load(Ordering::Relaxed)
    }

    /// Asks these Envoys and no others from now on. Blocks until they have answered, at most for [`PATIENCE`].
    pub(super) fn read(&mut self, envoys: &[ProcessKey]) -> BTreeMap<ProcessKey, Answers> {
        self.counters.retain(|key, _| envoys.contains(key));
        self.left_out = 0;
        for key in envoys {
            let again = self
                .counters
                .get(key)
                .is_some_and(|counter| counter.ask.is_none() && counter.began.elapsed() >= RETRY);
            if again {
                self.counters.remove(key);
            }
            if self.counters.contains_key(key) {
                continue;
            }
            if self.counters.len() >= MOST {
                self.left_out += 1;
                continue;
            }
            let counter = Counter::start(*key, self.done.0.clone(), Arc::clone(&self.cost_ns));
            self.counters.insert(*key, counter);
        }
        let now = Instant::now();
        let mut asked = 0;
        for counter in self.counters.values_mut() {
            asked += usize::from(now >= counter.not_before && counter.ask());
        }
        self.wait(asked, now + PATIENCE);
        self.counters
            .iter_mut()
            .map(|(key, counter)| (*key, counter.take()))
            .collect()
    }

    fn wait(&self, asked: usize, until: Instant) {
        for _ in 0..asked {
            let left = until.saturating_duration_since(Instant::now());
            if self.done.1.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}

impl Counter {
    fn start(key: ProcessKey, done: SyncSender<()>, cost_ns: Arc<AtomicU64>) -> Self {
        let (ask, asked) = sync_channel(1);
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let shared = Arc::clone(&answers);
        // The answers are untrusted: the process chooses them.
        let give_up = move || {
            let addresses = envoy_admin::enter(key).and_then(|()| envoy_admin::candidates(key.pid));
            broker::keep_none()?;
            Ok(addresses)
        };
        let started = broker::start_after("envoy-admin", Reach::Network, give_up, move |found| {
            serve(found, &asked, &shared, &done, &cost_ns);
        });
        let ask = started
            .inspect_err(|error: &io::Error| {
                answers.lock().error = Some(format!("no thread for it: {error}"));
            })
            .is_ok()
            .then_some(ask);
        let now = Instant::now();
        Self {
            ask,
            answers,
            began: now,
            not_before: now,
        }
    }

    /// Whether an answer will come.
    fn ask(&mut self) -> bool {
        match self.ask.as_ref().map(|ask| ask.try_send(())) {
            Some(Ok(())) => true,
            // It has not answered the question before.
            Some(Err(TrySendError::Full(()))) => false,
            Some(Err(TrySendError::Disconnected(()))) => {
                self.ask = None;
                false
            }
            None => false,
        }
    }

    fn take(&mut self) -> Answers {
        let answers = self.answers.lock().clone();
        // The first two answers make the first rates.
        if let (Some(_), Some(newest)) = (&answers.before, &answers.newest) {
            self.not_before = newest.at + answers.took * PAUSE_FACTOR;
        }
        answers
    }
}

/// Answers questions until there are none any more, or the Envoy is gone.
fn serve(
    found: Result<Vec<SocketAddr>, EnvoyAdminError>,
    asked: &Receiver<()>,
    answers: &Mutex<Answers>,
    done: &SyncSender<()>,
    cost_ns: &AtomicU64,
) {
    let mut counted_ns = 0;
    let mut count = || {
        let now = thread_cpu_ns();
        cost_ns.fetch_add(now.saturating_sub(counted_ns), Ordering::Relaxed);
        counted_ns = now;
    };
    let admin = found.and_then(|addresses| EnvoyAdmin::among(&addresses));
    count();
    let admin = match admin {
        Ok(admin) => admin,
        Err(error) => {
            answers.lock().error = Some(error.to_string());
            if asked.recv().is_ok() {
                let _full = done.try_send(());
            }
            return;
        }
    };
    while asked.recv().is_ok() {
        let at = Instant::now();
        let answer = admin.traffic();
        {
            let mut answers = answers.lock();
            answers.took = at.elapsed();
            match answer {
                Ok(traffic) => {
                    answers.before = answers.newest.take();
                    answers.newest = Some(Reading { at, traffic });
                    answers.error = None;
                }
                Err(error) => answers.error = Some(error.to_string()),
            }
        }
        count();
        let _full = done.try_send(());
    }
}
