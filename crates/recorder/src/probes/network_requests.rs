//! The part of a session that looks for requests: starts to capture payload, reports to the listener which
//! connections have ended and where each belongs, and hands the table of requests on with the edges.

use std::{collections::HashMap, thread, time::Instant};

use profiler_common::{
    network::Connection,
    payload::{PIECES_BEFORE, PIECES_LOST, Sampling},
};
use profiler_host::process::ProcessTable;
use profiler_model::{
    KernelTable, MAX_CAPTURE_BYTES, RequestAtSocket, RequestOptions, RequestTable, TlsReport,
};
use profiler_network::{
    edges::{EdgeOfConnection, UnixEnd},
    requests::{
        ByteTotals, CaptureOrder, PayloadEvent, SocketFacts, SourceCounts, Tracker, TrackerOptions,
    },
};
use profiler_recording::{CollectError, ProbeState, ProbeStatus};

use super::{
    super::{
        board::ProbeStatuses,
        network_sources::MetricSources,
        requests::{Counts, Listener, Payload, PayloadEnded},
        requests_share::{OPENING, Share},
        timeline::{Origin, monotonic_ns},
        tls::TlsProbes,
        tls_targets::TlsTargets,
        tls_turns::MOST_PROBED,
    },
    NetworkSession,
};
use crate::bpf::{
    CaptureControl, Group, LoadError, LoadedObject, NetworkLinks, ProgramRow, is_of, row,
};

/// The name of this in what a result reports about its sources.
const PAYLOAD: &str = "requests";
/// Both directions are needed: an answer without its request says nothing.
const PROGRAMS: [&ProgramRow; 2] = [row("network_send"), row("network_receive")];
/// The program that sets how much of which connections is captured. It is run and not attached.
const CONTROL: &ProgramRow = row("network_capture");

/// Tells that requests can be looked for, before any task does.
pub(super) fn announce(statuses: &ProbeStatuses, denied: &[String]) {
    statuses.announce(CONTROL.name, CONTROL.minimum_kernel, denied);
}

impl Listener for Tracker {
    fn connection(&mut self, cookie: u64, facts: SocketFacts) {
        self.connection(cookie, facts);
    }

    fn take(&mut self, event: PayloadEvent<'_>) {
        self.take(event);
    }

    fn orders(&mut self) -> Vec<(u64, CaptureOrder)> {
        self.orders()
    }
}

/// Requests of one task.
#[derive(Debug)]
pub(super) struct Requests {
    payload: Payload<Tracker>,
    /// Where plaintext of TLS is asked for.
    tls: Option<TlsProbes>,
    /// One connection in this many, as reported last.
    said_one_of: u32,
    said_limited: bool,
    /// Processes without room for probes of TLS, when that was said last.
    said_left_out: usize,
    /// Payload is not read any more.
    has_ended: bool,
    said_ended: bool,
    cpu_percent: u32,
}

fn failed(reason: String) -> CollectError {
    CollectError::Probe {
        probe: "requests",
        reason,
    }
}

/// Whether the kernel has left out runs of the programs that requests come from.
pub(super) fn has_missed(table: &KernelTable) -> bool {
    let mut names = PROGRAMS.iter().map(|program| program.name);
    names.any(|name| table.missed_runs.contains_key(name))
}

/// An error where there can be no requests.
pub(super) fn check(links: &NetworkLinks, failures: &[LoadError]) -> Result<(), CollectError> {
    missing(links, failures).map_or(Ok(()), |missing| Err(failed(missing)))
}

impl Requests {
    /// Starts to read payload; the programs are attached, and know the connections that were there before, which are clients where
    /// `directions` says so. Notes in `sources` where requests come from.
    pub(super) fn start(
        object: &mut LoadedObject,
        failures: &[LoadError],
        (options, targets): (&RequestOptions, TlsTargets),
        directions: HashMap<u64, bool>,
        origin: Origin,
        sources: &mut MetricSources,
    ) -> Result<Self, CollectError> {
        let reader = object
            .take_pieces()
            .map_err(|error| failed(error.to_string()))?;
        let mut control = object
            .take_capture_control()
            .map_err(|error| failed(error.to_string()))?;
        let (share, sampling) = open(object, &mut control, options.cpu_percent)
            .map_err(|error| failed(error.to_string()))?;
        let begin_ns = monotonic_ns();
        let monotonic_zero_ns = origin.epoch_ns.saturating_sub(origin.kernel_ns);
        let tracker = TrackerOptions::of(options, monotonic_zero_ns, begin_ns)
            .map_err(|error| failed(error.to_string()))?;
        let mut tracker = Tracker::new(tracker);
        tracker.directions(directions);
        let payload = Payload::start(reader, control, tracker, share, sampling)
            .map_err(|error| failed(format!("start the thread that reads payload: {error}")))?;
        sources.from.insert(PAYLOAD.to_owned(), hooks());
        let tls = if options.tls {
            let is_of_tls = |failure: &&LoadError| {
                failure
                    .program()
                    .is_some_and(|name| is_of(Group::Tls, name))
            };
            let failure = failures.iter().find(is_of_tls).map(ToString::to_string);
            let limits = (options.tls_duty_percent, options.cpu_percent);
            let probes = TlsProbes::start(limits, targets, failure);
            Some(probes.map_err(|error| failed(format!("start the thread of TLS: {error}")))?)
        } else {
            None
        };
        Ok(Self {
            payload,
            tls,
            said_one_of: 1,
            said_limited: false,
            said_left_out: 0,
            has_ended: false,
            said_ended: false,
            cpu_percent: options.cpu_percent,
        })
    }

    /// Puts probes into TLS libraries, where that is asked for and due.
    fn turn(&mut self, object: &mut LoadedObject, table: &ProcessTable) {
        if let Some(tls) = &mut self.tls {
            tls.turn(object, table);
        }
    }

    /// Takes the probes in TLS libraries away, of a task that ended some time ago.
    fn detach(&mut self, object: &mut LoadedObject, ended: Instant) {
        if let Some(tls) = &mut self.tls {
            tls.stop(object, ended);
        }
    }

    /// Tells of connections that have ended.
    pub(super) fn close(&mut self, ended: &[Connection]) {
        if ended.is_empty() {
            return;
        }
        let tls = self.tls.as_ref().is_none_or(TlsProbes::is_steady);
        let ended: Vec<(u64, u64, ByteTotals)> = ended
            .iter()
            .map(|connection| {
                let totals = ByteTotals {
                    sent: Some(connection.sent_bytes),
                    received: Some(connection.received_bytes),
                    tls,
                };
                (connection.cookie, ended_ns(connection), totals)
            })
            .collect();
        self.has_ended |= self.payload.close(ended).is_err();
    }

    /// The same of Unix sockets, each at the time when it was used last: its close is not reported.
    pub(super) fn close_unix(&mut self, gone: &[UnixEnd]) {
        let ended: Vec<(u64, u64, ByteTotals)> = gone
            .iter()
            .map(|end| {
                let (sent, received) = end.bytes();
                let totals = ByteTotals {
                    sent: Some(sent),
                    received: Some(received),
                    tls: true,
                };
                (end.cookie, end.used_ns, totals)
            })
            .collect();
        if !ended.is_empty() {
            self.has_ended |= self.payload.close(ended).is_err();
        }
    }

    /// The requests until now, and those that were over since the last call, where they are to be joined; `edge_of_connection` says which
    /// edge each belongs to. `last`: nothing more comes. `None`: payload is not read any more.
    pub(super) fn table(
        &mut self,
        object: &LoadedObject,
        edge_of_connection: HashMap<u64, EdgeOfConnection>,
        now_ns: u64,
        last: bool,
    ) -> Result<Option<(RequestTable, Vec<RequestAtSocket>)>, LoadError> {
        let tls = match &self.tls {
            Some(tls) => Some(tls.report(object)?),
            None => None,
        };
        let tls_is_steady = self.tls.as_ref().is_none_or(TlsProbes::is_steady);
        let counters = object.payload_counters()?;
        let lost = counters.get(PIECES_LOST as usize).copied().unwrap_or(0);
        let table = self.payload.with(move |tracker, counts| {
            let Counts {
                sampled_one_of,
                lost_pieces,
            } = counts;
            tracker.edges(&edge_of_connection, now_ns, last);
            tracker.source(SourceCounts {
                unbound_bytes: tls.as_ref().map_or(0, TlsReport::unbound_bytes),
                lost_pieces: lost.saturating_sub(lost_pieces),
                sampled_one_of,
                tls_is_steady,
            });
            let table = if last {
                tracker.finish(now_ns)
            } else {
                tracker.table(now_ns)
            };
            (RequestTable { tls, ..table }, tracker.take_at_sockets())
        });
        self.has_ended |= table.is_err();
        Ok(table.ok())
    }

    /// A remark for the user when fewer connections are captured than ever before, or none any more.
    pub(super) fn remark(&mut self) -> Option<String> {
        if self.has_ended && !std::mem::replace(&mut self.said_ended, true) {
            return Some(format!("requests are not complete: {PayloadEnded}"));
        }
        let limited = self.tls.as_ref().and_then(TlsProbes::limited_to_percent);
        if let Some(percent) = limited
            && !std::mem::replace(&mut self.said_limited, true)
        {
            return Some(format!(
                "probes in TLS libraries are there for a part of the time: all the time they would cost the \
                 processes more than {percent} % of a CPU (cpu_percent)"
            ));
        }
        let left_out = self.tls.as_ref().map_or(0, TlsProbes::left_out);
        if left_out > 2 * self.said_left_out {
            self.said_left_out = left_out;
            return Some(format!(
                "plaintext of {left_out} processes with a TLS library is not read: probes are in \
                 {MOST_PROBED} processes at most"
            ));
        }
        let one_of = self.payload.sampled_one_of();
        if one_of <= self.said_one_of {
            return None;
        }
        self.said_one_of = one_of;
        let percent = self.cpu_percent;
        Some(format!(
            "requests of one connection in {one_of} are captured for a time: all of them need more than \
             {percent} % of a CPU, or did not fit the ring buffer"
        ))
    }
}

/// Begins to capture as much as fits the share of a CPU by what goes over connections now: a busy start would be
/// over before the first look at the share.
fn open(
    object: &LoadedObject,
    control: &mut CaptureControl,
    cpu_percent: u32,
) -> Result<(Share, Sampling), LoadError> {
    let before = pieces_before(object)?;
    thread::sleep(OPENING);
    let pieces = pieces_before(object)?.saturating_sub(before);
    let share = Share::new(cpu_percent, pieces);
    let one_of = share.one_of();
    let sampling = Sampling::new(one_of.trailing_zeros(), one_of > 1);
    control.sample(sampling)?;
    Ok((share, sampling))
}

/// Pieces so far, before any is captured.
fn pieces_before(object: &LoadedObject) -> Result<u64, LoadError> {
    let counters = object.payload_counters()?;
    Ok(counters.get(PIECES_BEFORE as usize).copied().unwrap_or(0))
}

/// Where payload comes from.
fn hooks() -> String {
    let [send, receive] = PROGRAMS.map(|program| program.hook.target().unwrap_or_default());
    format!("{send}, {receive}")
}

/// Why there is no payload; `None` when there is.
fn missing(links: &NetworkLinks, failures: &[LoadError]) -> Option<String> {
    let failure_of = |name: &str| {
        failures
            .iter()
            .find(|failure| failure.program() == Some(name))
            .map(ToString::to_string)
    };
    let mut names = PROGRAMS.iter().map(|program| program.name);
    let detached = names.find(|name| !links.is_attached(name));
    let detached =
        detached.map(|name| failure_of(name).unwrap_or_else(|| format!("{name} is not attached")));
    detached.or_else(|| failure_of(CONTROL.name))
}

/// What the board reports about payload once a task has asked for it.
pub(super) fn status(links: &NetworkLinks, failures: &[LoadError]) -> ProbeStatus {
    let reason = missing(links, failures);
    let is_denied =
        |failure: &LoadError| matches!(failure, LoadError::Denied(name) if *name == CONTROL.name);
    ProbeStatus {
        name: CONTROL.name.to_owned(),
        state: match &reason {
            None => ProbeState::Attached,
            Some(_) if failures.iter().any(is_denied) => ProbeState::Denied,
            Some(_) => ProbeState::Unavailable,
        },
        reason,
        minimum_kernel: CONTROL.minimum_kernel.to_owned(),
    }
}

/// When a connection ended, on the kernel's clock.
fn ended_ns(connection: &Connection) -> u64 {
    match connection.closed_ns {
        0 => connection.header.time_ns,
        closed_ns => closed_ns,
    }
}

impl NetworkSession {
    /// Waits for the probes in the processes that run already.
    pub(super) fn settle_tls(&mut self) {
        if let Some(tls) = self
            .requests
            .as_mut()
            .and_then(|requests| requests.tls.as_mut())
        {
            tls.settle(&mut self.object, &self.table);
        }
    }

    /// Does what is due of TLS, or at the end takes its probes away; reads and writes are still counted.
    pub(super) fn probe_tls(&mut self, ended: Option<Instant>) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        if let Some(ended) = ended {
            requests.detach(&mut self.object, ended);
        } else {
            requests.turn(&mut self.object, &self.table);
        }
    }
}

/// First bytes of each call of a TLS library that are captured; `None`: none are. Frames of HTTP/2 lie
/// in the middle of what a call moves.
pub(super) fn tls_bytes(options: &RequestOptions) -> Option<u32> {
    options.tls.then_some(MAX_CAPTURE_BYTES)
}
