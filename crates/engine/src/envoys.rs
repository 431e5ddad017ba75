//! What Envoys count, asked again and again: a thread for each, in its network namespace and without capabilities.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_clock::thread_cpu_ns;
use profiler_host::envoy_admin::{self, EnvoyAdmin, EnvoyAdminError};
use profiler_model::ProcessKey;
use profiler_sandbox::{broker, confine::Reach};

/// Envoys that are asked: a node has 110 pods where nobody has said otherwise. Each takes a thread and its partner.
const MOST: usize = 128;
/// Of one network namespace: whoever starts more in his pod takes no place from others.
const MOST_OF_NAMESPACE: usize = 4;
/// Envoys that answer at the same time: answers are large, and whoever is slow holds up few others.
const LANES: usize = 4;
/// How long answers are waited for; one that comes later counts at the next reading.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time before an Envoy that could not be asked is tried again; twice as long each time.
const FIRST_RETRY: Duration = Duration::from_mins(1);
const LAST_RETRY: Duration = Duration::from_hours(1);
/// Time between two questions in times of what an answer takes, so that answering takes 0.5 % of Envoy's main thread; at most
/// [`LONGEST_PAUSE`].
const PAUSE_FACTOR: u32 = 200;
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Asking all of them takes 0.5 % of a CPU.
const COST_FACTOR: u32 = 200;

/// What an Envoy had counted at a moment.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    pub(crate) at: Instant,
    pub(crate) counted: T,
}

/// What an Envoy is asked for, on a thread of its own.
type Question<T> = Arc<dyn Fn(ProcessKey, &EnvoyAdmin) -> Result<T, EnvoyAdminError> + Send + Sync>;

/// What is known of an Envoy.
#[derive(Debug)]
pub(crate) struct Answers<T> {
    pub(crate) before: Option<Arc<Reading<T>>>,
    pub(crate) newest: Option<Arc<Reading<T>>>,
    /// Why there is nothing newer. Untrusted text.
    pub(crate) error: Option<String>,
    /// Answers and failures so far.
    count: u64,
    /// How long the newest took, and what asking cost.
    took: Duration,
    cost: Duration,
}

impl<T> Clone for Answers<T> {
    fn clone(&self) -> Self {
        Self {
            before: self.before.clone(),
            newest: self.newest.clone(),
            error: self.error.clone(),
            ..*self
        }
    }
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self {
            before: None,
            newest: None,
            error: None,
            count: 0,
            took: Duration::ZERO,
            cost: Duration::ZERO,
        }
    }
}

#[derive(Debug)]
struct Counter<T> {
    ask: SyncSender<()>,
    answers: Arc<Mutex<Answers<T>>>,
    /// Answers that were taken into account.
    seen: u64,
    not_before: Instant,
}

/// An Envoy that could not be asked.
#[derive(Debug)]
struct Failed {
    error: String,
    again: Instant,
    pause: Duration,
}

/// An Envoy and the network namespace that it is in.
pub(crate) type Place = (ProcessKey, Option<u64>);

/// The threads.
pub(crate) struct Envoys<T> {
    question: Question<T>,
    counters: BTreeMap<ProcessKey, Counter<T>>,
    failed: BTreeMap<ProcessKey, Failed>,
    /// Envoys beyond [`MOST`] and [`MOST_OF_NAMESPACE`].
    pub(crate) left_out: usize,
    done: (SyncSender<()>, Receiver<()>),
    lanes: Arc<[Mutex<()>; LANES]>,
    /// CPU time of all threads that have been.
    cost_ns: Arc<AtomicU64>,
}

impl<T: fmt::Debug> fmt::Debug for Envoys<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Envoys")
            .field("counters", &self.counters)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Envoys<T> {
    pub(crate) fn new(
        question: impl Fn(ProcessKey, &EnvoyAdmin) -> Result<T, EnvoyAdminError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            question: Arc::new(question),
            counters: BTreeMap::new(),
            failed: BTreeMap::new(),
            left_out: 0,
            done: sync_channel(2 * MOST),
            lanes: Arc::default(),
            cost_ns: Arc::default(),
        }
    }

    pub(crate) fn cost_ns(&self) -> u64 {
        self.cost_ns.load(Ordering::Relaxed)
    }

    /// Asks these Envoys and no others from now on. Blocks until they have answered, at most for [`PATIENCE`].
    pub(crate) fn read(&mut self, envoys: &[Place]) -> BTreeMap<ProcessKey, Answers<T>> {
        let chosen = self.chosen(envoys);
        self.counters.retain(|key, _| chosen.contains(key));
        self.failed.retain(|key, _| chosen.contains(key));
        for key in &chosen {
            let is_failed = self.failed.get(key).map(|failed| failed.again);
            let is_due = is_failed.is_none_or(|again| Instant::now() >= again);
            if self.counters.contains_key(key) || !is_due {
                continue;
            }
            match self.start(*key) {
                Ok(counter) => {
                    self.counters.insert(*key, counter);
                }
                Err(error) => self.fail(*key, format!("no thread for it: {error}")),
            }
        }
        let now = Instant::now();
        let mut asked = 0;
        for counter in self.counters.values_mut() {
            asked += usize::from(now >= counter.not_before && counter.ask.try_send(()).is_ok());
        }
        self.wait(asked, now + PATIENCE);
        self.take()
    }

    /// Those that are asked: few of each namespace, and not more than [`MOST`].
    fn chosen(&mut self, envoys: &[Place]) -> BTreeSet<ProcessKey> {
        let mut of_namespace: BTreeMap<Option<u64>, usize> = BTreeMap::new();
        let mut chosen = BTreeSet::new();
        for (key, namespace) in envoys {
            let count = of_namespace.entry(*namespace).or_default();
            if *count < MOST_OF_NAMESPACE && chosen.len() < MOST {
                *count += 1;
                chosen.insert(*key);
            }
        }
        self.left_out = envoys.len() - chosen.len();
        chosen
    }

    fn fail(&mut self, key: ProcessKey, error: String) {
        let before = self.failed.get(&key).map(|failed| failed.pause);
        let pause = before.map_or(FIRST_RETRY, |pause| (2 * pause).min(LAST_RETRY));
        let failed = Failed {
            error,
            again: Instant::now() + pause,
            pause,
        };
        self.failed.insert(key, failed);
    }

    fn wait(&self, asked: usize, until: Instant) {
        for _ in 0..asked {
            let left = until.saturating_duration_since(Instant::now());
            if self.done.1.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// All answers; threads that have given up go.
    fn take(&mut self) -> BTreeMap<ProcessKey, Answers<T>> {
        let others = u32::try_from(self.counters.len()).unwrap_or(u32::MAX);
        let mut all = BTreeMap::new();
        let mut ended = Vec::new();
        for (key, counter) in &mut self.counters {
            let answers = counter.answers.lock().clone();
            if answers.count > counter.seen {
                counter.seen = answers.count;
                counter.not_before = Instant::now() + answers.pause(others);
            }
            if answers.newest.is_none()
                && let Some(error) = &answers.error
            {
                ended.push((*key, error.clone()));
            } else {
                self.failed.remove(key);
            }
            all.insert(*key, answers);
        }
        for (key, error) in ended {
            self.counters.remove(&key);
            self.fail(key, error);
        }
        for (key, failed) in &self.failed {
            let answers = Answers {
                error: Some(failed.error.clone()),
                ..Answers::default()
            };
            all.insert(*key, answers);
        }
        all
    }

    fn start(&self, key: ProcessKey) -> io::Result<Counter<T>> {
        let (ask, asked) = sync_channel(1);
        let answers: Arc<Mutex<Answers<T>>> = Arc::default();
        let server = Server {
            key,
            question: Arc::clone(&self.question),
            asked,
            answers: Arc::clone(&answers),
            done: self.done.0.clone(),
            lanes: Arc::clone(&self.lanes),
            lane: usize::try_from(key.pid).unwrap_or(0) % LANES,
            cost_ns: Arc::clone(&self.cost_ns),
            counted_ns: 0,
        };
        // The answers are untrusted: the process chooses them.
        let give_up = move || {
            let addresses =
                envoy_admin::enter(key).and_then(|()| envoy_admin::usual_candidates(key.pid));
            broker::keep_none()?;
            Ok(addresses)
        };
        broker::start_after("envoy-admin", Reach::Network, give_up, move |found| {
            server.run(found);
        })?;
        Ok(Counter {
            ask,
            answers,
            seen: 0,
            not_before: Instant::now(),
        })
    }
}

impl<T> Answers<T> {
    /// Time until the next question, where so many are asked.
    fn pause(&self, others: u32) -> Duration {
        if self.before.is_none() && self.error.is_none() {
            // The first two answers make the first rates.
            return Duration::ZERO;
        }
        if self.error.is_some() {
            return LONGEST_PAUSE;
        }
        let of_envoy = (self.took * PAUSE_FACTOR).min(LONGEST_PAUSE);
        let of_agent = (self.cost * COST_FACTOR).saturating_mul(others);
        of_envoy.max(of_agent.min(LONGEST_PAUSE))
    }
}

/// The thread of one Envoy.
struct Server<T> {
    key: ProcessKey,
    question: Question<T>,
    asked: Receiver<()>,
    answers: Arc<Mutex<Answers<T>>>,
    done: SyncSender<()>,
    lanes: Arc<[Mutex<()>; LANES]>,
    lane: usize,
    cost_ns: Arc<AtomicU64>,
    counted_ns: u64,
}

impl<T> Server<T> {
    /// Answers questions until there are none any more. Without an admin interface the first answer is the reason.
    fn run(mut self, found: Result<Vec<SocketAddr>, EnvoyAdminError>) {
        let admin = found
            .and_then(|addresses| EnvoyAdmin::among(&addresses))
            .map_err(|error| error.to_string());
        let _finding = self.count();
        while self.asked.recv().is_ok() {
            let lane = self.lanes[self.lane].lock();
            let at = Instant::now();
            let answer = match &admin {
                Ok(admin) => (self.question)(self.key, admin).map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            drop(lane);
            let took = at.elapsed();
            let cost = self.count();
            {
                let mut answers = self.answers.lock();
                answers.count += 1;
                answers.took = took;
                answers.cost = cost;
                match answer {
                    Ok(counted) => {
                        let reading = Reading { at, counted };
                        answers.before = answers.newest.take();
                        answers.newest = Some(Arc::new(reading));
                        answers.error = None;
                    }
                    Err(error) => answers.error = Some(error),
                }
            }
            let _full = self.done.try_send(());
            if admin.is_err() {
                return;
            }
        }
    }

    /// What this thread has used since it was asked before.
    fn count(&mut self) -> Duration {
        let now_ns = thread_cpu_ns();
        let more_ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        self.cost_ns.fetch_add(more_ns, Ordering::Relaxed);
        Duration::from_nanos(more_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pid: u32, namespace: u64) -> Place {
        let key = ProcessKey {
            pid,
            start_ticks: 1,
        };
        (key, Some(namespace))
    }

    #[test]
    fn one_pod_takes_no_place_from_others() {
        let mut envoys = Envoys::new(|_, _| Ok(()));
        let mut all: Vec<Place> = (0..500).map(|pid| place(pid, 7)).collect();
        all.extend((1000..1010).map(|pid| place(pid, u64::from(pid))));
        let chosen = envoys.chosen(&all);
        assert_eq!(chosen.len(), MOST_OF_NAMESPACE + 10);
        assert_eq!(envoys.left_out, 500 - MOST_OF_NAMESPACE);
        let many: Vec<Place> = (0..1000).map(|pid| place(pid, u64::from(pid))).collect();
        assert_eq!(envoys.chosen(&many).len(), MOST);
    }

    #[test]
    fn a_slow_answer_and_a_failure_make_pauses_with_an_end() {
        let reading = || {
            Some(Arc::new(Reading {
                at: Instant::now(),
                counted: (),
            }))
        };
        let answers = |took_ms, cost_us, error: Option<&str>| Answers {
            before: reading(),
            newest: reading(),
            error: error.map(str::to_owned),
            count: 2,
            took: Duration::from_millis(took_ms),
            cost: Duration::from_micros(cost_us),
        };
        assert_eq!(answers(10, 0, None).pause(1), Duration::from_secs(2));
        assert_eq!(answers(5_000, 0, None).pause(1), LONGEST_PAUSE);
        assert_eq!(answers(1, 500, None).pause(100), Duration::from_secs(10));
        assert_eq!(answers(1, 0, Some("timeout")).pause(1), LONGEST_PAUSE);
        assert_eq!(Answers::<()>::default().pause(1), Duration::ZERO);
    }

    #[test]
    fn what_cannot_be_asked_is_tried_more_and_more_seldom() {
        let mut envoys = Envoys::new(|_, _| Ok(()));
        let (key, _) = place(1, 1);
        for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            envoys.fail(key, "it listens nowhere".to_owned());
            assert_eq!(envoys.failed[&key].pause, Duration::from_secs(pause));
        }
    }
}
