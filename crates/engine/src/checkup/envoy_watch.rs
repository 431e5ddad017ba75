//! One Envoy while a check-up runs: its requests over time, and at the end its configuration.

use std::{
    io,
    net::SocketAddr,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use profiler_host::{
    envoy_admin::{self, EnvoyAdmin, EnvoyAdminError},
    process::accounting::ProcessAccount,
};
use profiler_model::{ObservedConfiguration, ProcessKey, RequestPoint, RequestSeries};
use profiler_sandbox::{broker, confine::Reach};

/// Time between two readings, at least.
const INTERVAL: Duration = Duration::from_secs(1);
/// The same in times of what a reading takes, so that the readings stay below 2 % of Envoy's main
/// thread however many statistics it has.
const PAUSE_FACTOR: u32 = 50;
/// Readings that are kept; an hour has as many seconds.
const MOST: usize = 4096;

/// The source of the request counts.
pub(super) const SOURCE: &str = "Envoy's own counters";

/// The answers of an Envoy.
#[derive(Debug, Default)]
pub(super) struct EnvoyReport {
    /// `None`: it counts no HTTP requests, or fewer than two readings were possible.
    pub(super) counted: Option<Counted>,
    pub(super) configuration: Option<ObservedConfiguration>,
    /// What is not known and why, as sentences.
    pub(super) gaps: Vec<String>,
}

/// Requests over time, and the accounts that were read with the first and the last number.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) first: (Instant, ProcessAccount),
    pub(super) newest: (Instant, ProcessAccount),
    pub(super) series: RequestSeries,
}

/// A thread that watches one Envoy.
#[derive(Debug)]
pub(super) struct EnvoyWatch {
    key: ProcessKey,
    stop: SyncSender<()>,
    report: Receiver<EnvoyReport>,
}

impl EnvoyWatch {
    pub(super) fn start(key: ProcessKey) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let (tell, report) = sync_channel(1);
        // The answers are untrusted: the process chooses them.
        let give_up = move || {
            let addresses = envoy_admin::enter(key).and_then(|()| envoy_admin::candidates(key.pid));
            broker::keep_none()?;
            Ok(addresses)
        };
        broker::start_after("envoy-admin", Reach::Network, give_up, move |addresses| {
            // Fails only when the receiver is gone.
            let _unheard = tell.send(watch(key, addresses, &stopped));
        })?;
        Ok(Self { key, stop, report })
    }

    pub(super) fn key(&self) -> ProcessKey {
        self.key
    }

    /// Asks it to take its last reading; [`EnvoyWatch::finish`] waits for that.
    pub(super) fn stop(&self) {
        // It may have given up already.
        let _gone = self.stop.try_send(());
    }

    pub(super) fn finish(self) -> EnvoyReport {
        drop(self.stop);
        self.report.recv().unwrap_or_else(|_panic| EnvoyReport {
            gaps: vec![format!(
                "the Envoy with pid {} could not be asked: internal error",
                self.key.pid
            )],
            ..EnvoyReport::default()
        })
    }
}

fn watch(
    key: ProcessKey,
    addresses: Result<Vec<SocketAddr>, EnvoyAdminError>,
    stopped: &Receiver<()>,
) -> EnvoyReport {
    let pid = key.pid;
    let found = addresses.and_then(|addresses| EnvoyAdmin::among(&addresses));
    let admin = match found {
        Ok(admin) => admin,
        Err(error) => {
            return EnvoyReport {
                gaps: vec![format!(
                    "requests and configuration of the Envoy with pid {pid} are not known, because its admin \
                 interface could not be used: {error}"
                )],
                ..EnvoyReport::default()
            };
        }
    };
    let mut readings = Readings::default();
    let failed = follow(&admin, key, stopped, &mut readings).err();
    let (configuration, missing) = admin.configuration();
    let mut gaps: Vec<String> = missing
        .into_iter()
        .map(|gap| format!("pid {pid}: {gap}"))
        .collect();
    let counted = readings.counted(key);
    match (failed, &counted) {
        (Some(error), _) => gaps.push(format!(
            "requests of the Envoy with pid {pid} are known for a part of the time only: {error}"
        )),
        (None, None) => gaps.push(format!(
            "requests of the Envoy with pid {pid} are not known: it counts no HTTP requests"
        )),
        (None, Some(_)) => {}
    }
    EnvoyReport {
        counted,
        configuration: Some(configuration),
        gaps,
    }
}

/// Takes readings until it is asked to stop, the last one then.
fn follow(
    admin: &EnvoyAdmin,
    key: ProcessKey,
    stopped: &Receiver<()>,
    readings: &mut Readings,
) -> Result<(), EnvoyAdminError> {
    loop {
        let began = Instant::now();
        readings.take(admin, key)?;
        let pause = INTERVAL.max(began.elapsed() * PAUSE_FACTOR);
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return readings.take(admin, key),
        }
    }
}

/// Both counters over time.
#[derive(Debug, Default)]
struct Readings {
    ends: Option<Ends>,
    taken: Vec<Reading>,
}

/// Accounts at the first and at the newest reading.
#[derive(Debug)]
struct Ends {
    first: (Instant, ProcessAccount),
    newest: (Instant, ProcessAccount),
}

#[derive(Debug)]
struct Reading {
    at_ns: u64,
    cpu_ns: u64,
    /// `None` while Envoy counts none.
    requests: Option<u64>,
}

impl Readings {
    fn take(&mut self, admin: &EnvoyAdmin, key: ProcessKey) -> Result<(), EnvoyAdminError> {
        let requests = admin.completed_requests()?;
        let at = Instant::now();
        let account = ProcessAccount::read(key.pid).ok();
        if let Some(account) = account.filter(|account| account.key == key) {
            self.add(at, account, requests);
        }
        Ok(())
    }

    fn add(&mut self, at: Instant, account: ProcessAccount, requests: Option<u64>) {
        if self.taken.len() >= MOST {
            return;
        }
        let newest = (at, account);
        let (at_ns, cpu_ns) = match &mut self.ends {
            None => {
                self.ends = Some(Ends {
                    first: newest.clone(),
                    newest,
                });
                (0, 0)
            }
            Some(ends) => {
                let used = newest.1.cpu_ns_since(&ends.newest.1);
                ends.newest = newest;
                let since = at.duration_since(ends.first.0).as_nanos();
                let before = self.taken.last().map_or(0, |reading| reading.cpu_ns);
                let at_ns = u64::try_from(since).unwrap_or(u64::MAX);
                (at_ns, before.saturating_add(used))
            }
        };
        self.taken.push(Reading {
            at_ns,
            cpu_ns,
            requests,
        });
    }

    /// `None` when there are no requests to speak of.
    fn counted(self, key: ProcessKey) -> Option<Counted> {
        // A counter that is not there yet has counted nothing; one that never comes is none.
        self.taken.last()?.requests?;
        let Ends { first, newest } = self.ends?;
        let points = self.taken.into_iter().map(|reading| RequestPoint {
            at_ns: reading.at_ns,
            cpu_ns: reading.cpu_ns,
            requests: reading.requests.unwrap_or(0),
        });
        let points: Vec<RequestPoint> = points.collect();
        (points.len() > 1).then_some(Counted {
            first,
            newest,
            series: RequestSeries { key, points },
        })
    }
}
