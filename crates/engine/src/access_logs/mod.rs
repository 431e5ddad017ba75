//! Access logs that Envoys send to the agent (`serve --access-logs`): received, counted, and held against what the Envoys count
//! themselves.
//!
//! ```text
//! Envoys --gRPC--> receiver --entries--> book <--processes-- peers (sockets of the node)
//!                     |                   ^------counters--- Envoys' admin interfaces, held against entries by the ledger
//!                     +------entries-----> subscribers --> reading: a task of kind `requests`, which `collector` starts
//!                                                          (`lookups` finds processes, `merge` joins with what sockets show)
//! ```
//!
//! The receiver and tasks are threads without capabilities. What finds processes keeps its own, and reads nothing that was received.

mod batch;
mod book;
mod collector;
mod ends;
mod governor;
mod ledger;
mod lookups;
mod merge;
mod messages;
mod metrics;
mod peers;
mod reading;
mod receiver;
mod remembered;
mod subscribers;
mod watch;

use std::{
    io,
    net::TcpListener,
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_clock::wall_ns;
use profiler_host::{
    envoy_admin::{EnvoyAdmin, EnvoyAdminError, is_envoy},
    process::ProcessTable,
    sockets::Owners,
};
use profiler_model::{EnvoyLogs, ProcessKey, access_log_status::AccessLogStages};
use profiler_sandbox::{broker, confine::Reach};
use tokio_rustls::TlsAcceptor;

use crate::envoys::{Envoys, Place};
use book::Book;
use peers::Sought;
use subscribers::Subscription;

pub use collector::LogsCollector;
pub use metrics::LogMetrics;
pub use watch::LogsWatch;

/// How often other ends of connections are looked for, and Envoys are asked.
const PERIOD: Duration = Duration::from_secs(1);
/// How soon it is found out whose new connections are: until then their entries are kept.
const TICK: Duration = Duration::from_millis(100);
/// Why an Envoy's own counts are not known.
const NOT_ASKED: &str = "Envoys are not asked (envoy_admin is off)";
const NO_COUNTERS: &str = "its statistics have no counters of access logs (in Istio, proxyStatsMatcher has to include access_logs)";
/// Reading the sockets of the node takes a twentieth of a CPU at most, whoever connects again and again.
const COST_FACTOR: u32 = 20;

/// Where what was received is read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AccessLogs {
    /// `None`: it is off.
    book: Option<Arc<Mutex<Book>>>,
}

impl AccessLogs {
    /// Nothing is received.
    pub fn off() -> Self {
        Self::default()
    }

    /// Receives on this socket for the agent's life. Clients show certificates where `tls` asks for them. Without `asks_envoys` what is
    /// missing is not known.
    pub fn start(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        table: ProcessTable,
        asks_envoys: bool,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let book: Arc<Mutex<Book>> = Arc::default();
        let received = Arc::clone(&book);
        let run = move |listener: TcpListener| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let served = runtime.and_then(|runtime| {
                runtime.block_on(async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    receiver::serve(listener, tls, received).await;
                    Ok(())
                })
            });
            if let Err(error) = served {
                tracing::error!(%error, "access logs are not received");
            }
        };
        let give_up = move || {
            broker::keep_none()?;
            Ok(listener)
        };
        broker::start_after("access-logs", Reach::Given, give_up, run)?;
        let known = Arc::clone(&book);
        thread::Builder::new()
            .name("access-log-peers".to_owned())
            .spawn(move || follow(&known, &table, asks_envoys))?;
        Ok(Self { book: Some(book) })
    }

    pub fn is_on(&self) -> bool {
        self.book.is_some()
    }

    /// What every Envoy has sent, those with the most entries first.
    pub fn report(&self) -> Vec<EnvoyLogs> {
        let report = |book: &Arc<Mutex<Book>>| book.lock().report();
        self.book.as_ref().map(report).unwrap_or_default()
    }

    /// Entries from now on; `None`: it is off.
    fn subscribe(&self) -> Option<Subscription> {
        self.book.as_ref().map(|book| book.lock().subscribers.add())
    }

    /// Entries that all Envoys have sent.
    pub fn entries(&self) -> u64 {
        self.book.as_ref().map_or(0, |book| book.lock().entries)
    }

    /// How long entries were read, counted only, and waited, in seconds.
    pub fn stage_seconds(&self) -> AccessLogStages {
        let times = |book: &Arc<Mutex<Book>>| {
            let [full, counted, held] = book.lock().governor.times().map(|time| time.as_secs_f64());
            AccessLogStages {
                full,
                counted,
                held,
            }
        };
        self.book.as_ref().map(times).unwrap_or_default()
    }

    /// Connections that failed before anything was received, and of the newest from where it came and why.
    pub fn failed(&self) -> (u64, Option<String>) {
        let failed = |book: &Arc<Mutex<Book>>| {
            let book = book.lock();
            (book.failed, book.newest_failure.clone())
        };
        self.book.as_ref().map(failed).unwrap_or_default()
    }

    /// Connections that were not accepted, because there were too many.
    pub fn refused(&self) -> u64 {
        self.book.as_ref().map_or(0, |book| book.lock().refused)
    }
}

/// Asks an Envoy what it counts of its own logs; false: nothing. The book learns of the question and of the answer when they are made:
/// what comes between them may be among what is counted.
fn ask(
    book: &Weak<Mutex<Book>>,
    process: ProcessKey,
    admin: &EnvoyAdmin,
) -> Result<bool, EnvoyAdminError> {
    if let Some(book) = book.upgrade() {
        book.lock().ask(process, wall_ns());
    }
    let counted = admin.log_counters()?;
    let is_counted = counted.written.is_some();
    if let Some(book) = book.upgrade().filter(|_| is_counted) {
        book.lock().answered(process, wall_ns(), counted);
    }
    Ok(is_counted)
}

/// Finds out whose connections they are, and what those count themselves, until nobody reads it any more.
fn follow(book: &Arc<Mutex<Book>>, table: &ProcessTable, asks_envoys: bool) {
    let mut owners = Owners::default();
    let mut not_before = Instant::now();
    let asking = Arc::downgrade(book);
    let mut envoys = Envoys::new(move |process, admin| ask(&asking, process, admin));
    let mut due = Instant::now() + PERIOD;
    // Those that were not found are looked for again.
    let mut again = false;
    // The receiver holds one, and this thread.
    while Arc::strong_count(book) > 2 {
        thread::sleep(TICK);
        let is_due = Instant::now() >= due;
        again |= is_due;
        let unknown = book.lock().unknown(again);
        if !unknown.is_empty() && Instant::now() >= not_before {
            again = false;
            let began = Instant::now();
            let namespace = peers::own_namespace();
            let sought: Vec<Sought> = unknown
                .iter()
                .map(|(_, peer, local)| Sought {
                    end: *peer,
                    other: *local,
                    namespace,
                    may_listen: false,
                })
                .collect();
            let found = peers::find(&sought, &peers::list(table), table, &mut owners);
            not_before = Instant::now() + began.elapsed() * COST_FACTOR;
            let mut book = book.lock();
            for ((number, _, _), found) in unknown.into_iter().zip(found) {
                book.find(number, found.map(|holder| holder.process));
            }
        }
        if !is_due {
            continue;
        }
        due = Instant::now() + PERIOD;
        book.lock().forget(wall_ns());
        let places: Vec<Place> = book
            .lock()
            .processes()
            .into_iter()
            .filter_map(|key| {
                let process = table.process(key)?;
                is_envoy(&process).then_some((key, process.network_namespace))
            })
            .collect();
        if !asks_envoys {
            let mut book = book.lock();
            for (process, _) in places {
                book.settle(process, Err(NOT_ASKED.to_owned()), wall_ns());
            }
            continue;
        }
        let answers = envoys.read(&places);
        let mut book = book.lock();
        for (process, answer) in answers {
            let is_known = match (answer.newest, answer.error) {
                (_, Some(error)) => Err(error),
                (Some(reading), None) if !reading.counted => Err(NO_COUNTERS.to_owned()),
                (Some(_), None) => Ok(()),
                (None, None) => continue,
            };
            book.settle(process, is_known, wall_ns());
        }
    }
}
