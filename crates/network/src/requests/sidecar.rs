//! Processes that requests go into and out of: which request out belongs to which request in, and how
//! much time the process itself took.
//!
//! A request in contains the one that goes out for it: that begins later and ends earlier. What ties them
//! is an id that both carry, or that they are alike on one thread and nothing else fits. The order in
//! which a thread reads and writes is not evidence (it is right for 37 % of requests with 64 connections,
//! measured): it only decides between pairs that fit equally well, and these are kept apart.

mod half;
mod pairing;

use std::collections::{BTreeMap, HashMap};

use half::Half;
pub(super) use half::PairTimes;
use pairing::pairs;
use profiler_model::{
    Address, EdgeKey, Endpoint, MatchClass, Matched, SeenBy, Sidecar, SidecarTimes, UpstreamHeader,
};

use super::{observed_request::ObservedRequest, samples::Keep};

/// Processes that are followed.
const MAX_PROCESSES: usize = 1024;
/// Requests of one process, in and out each, that wait for their other half.
const MAX_HALVES: usize = 16_384;
/// The same of all processes.
const MAX_ALL_HALVES: usize = 65_536;
/// Pairs of all processes that are kept one by one.
const MAX_MATCHED: usize = 32_768;
/// Reports for which a request out waits for the request in, which ends after it.
const PATIENCE: u64 = 3;
/// How far the header's whole milliseconds may be from what was measured.
const AGREEMENT_MS: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Sidecars {
    processes: HashMap<u32, Process>,
    keep: Keep,
    waiting: usize,
    reports: u64,
    /// Nothing more will be known.
    is_over: bool,
    /// Pairs that are kept one by one.
    matched: usize,
}

#[derive(Debug, Default)]
struct Process {
    endpoint: Option<Endpoint>,
    ins: Vec<Half>,
    outs: Vec<Half>,
    requests_in: u64,
    requests_out: u64,
    time_in_ns: u64,
    time_out_ns: u64,
    unmatched_in: u64,
    unmatched_out: u64,
    forgotten: u64,
    pairs: BTreeMap<MatchClass, SidecarTimes>,
    upstream_header: UpstreamHeader,
    matched: Vec<Matched>,
    matched_left_out: u64,
}

impl Sidecars {
    /// With every request kept, pairs are as well.
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            keep,
            ..Self::default()
        }
    }

    /// Takes a request that one end has seen; both ends of a connection are seen by different processes.
    pub(super) fn add(&mut self, seen: &ObservedRequest) {
        if !seen.is_whole() {
            return;
        }
        let pid = seen.begin.pid;
        if !self.processes.contains_key(&pid) && self.processes.len() >= MAX_PROCESSES {
            return;
        }
        let process = self.processes.entry(pid).or_default();
        let halves = match seen.seen_by {
            SeenBy::Server => {
                process.requests_in += 1;
                process.time_in_ns += seen.exchange.duration_ns();
                &mut process.ins
            }
            SeenBy::Client => {
                process.requests_out += 1;
                process.time_out_ns += seen.exchange.duration_ns();
                &mut process.outs
            }
        };
        if halves.len() >= MAX_HALVES || self.waiting >= MAX_ALL_HALVES {
            process.forgotten += 1;
        } else {
            halves.push(Half::new(seen, self.reports));
            self.waiting += 1;
        }
    }

    /// Tells who the process is that has seen a request of an edge.
    pub(super) fn name(&mut self, edge: &EdgeKey, seen: &ObservedRequest) {
        let end = match seen.seen_by {
            SeenBy::Server => &edge.server,
            SeenBy::Client => &edge.client,
        };
        let pid = seen.begin.pid;
        if end.pid == Some(pid)
            && let Some(process) = self.processes.get_mut(&pid)
            && process.endpoint.as_ref() != Some(end)
        {
            process.endpoint = Some(end.clone());
        }
    }

    /// Pairs requests in that have waited for a report, or all.
    pub(super) fn pair(&mut self, is_last: bool) {
        self.reports += 1;
        self.is_over = is_last;
        let reports = self.reports;
        self.waiting = 0;
        for process in self.processes.values_mut() {
            let room = match self.keep {
                Keep::All => Some(MAX_MATCHED - self.matched),
                Keep::SlowAndFailing => None,
            };
            self.matched += process.pair(reports, is_last, room);
            self.waiting += process.ins.len() + process.outs.len();
        }
    }

    /// What is known so far of processes that requests pass through.
    pub(super) fn rows(&self) -> Vec<Sidecar> {
        let mut rows: Vec<Sidecar> = self
            .processes
            .iter()
            .filter(|(_, process)| process.requests_in > 0 && process.requests_out > 0)
            .filter(|(_, process)| self.is_over || process.endpoint.is_some())
            .map(|(pid, process)| process.row(*pid))
            .collect();
        rows.sort_by(|a, b| a.process.cmp(&b.process));
        rows
    }
}

impl Process {
    /// How many pairs it has kept one by one, if there is room for any.
    fn pair(&mut self, reports: u64, is_last: bool, room: Option<usize>) -> usize {
        if self.ins.is_empty() && self.outs.is_empty() {
            return 0;
        }
        let is_due = |half: &Half| is_last || half.since + 1 < reports;
        let (ins, outs) = (
            std::mem::take(&mut self.ins),
            std::mem::take(&mut self.outs),
        );
        // Those that are not due are looked at as well: an ambiguous pair is not certain.
        let mut found = pairs(ins, outs);
        let early = found.pairs.extract_if(.., |(_, inner, _)| !is_due(inner));
        for (_, inner, outer) in early {
            self.ins.push(inner);
            found.outs.push(outer);
        }
        for (class, inner, outer) in &found.pairs {
            let times = self.pairs.entry(*class).or_default();
            add_times(times, &inner.times(), &outer.times());
            add_header(&mut self.upstream_header, inner, outer);
        }
        let (due, early): (Vec<_>, Vec<_>) = found.ins.into_iter().partition(is_due);
        self.unmatched_in += due.len() as u64;
        self.ins.extend(early);
        let is_late = |half: &Half| is_last || half.since + PATIENCE < reports;
        let (late, waiting): (Vec<_>, Vec<_>) = found.outs.into_iter().partition(is_late);
        self.unmatched_out += late.len() as u64;
        self.outs = waiting;
        room.map_or(0, |room| self.keep(&found.pairs, room))
    }

    fn keep(&mut self, pairs: &[(MatchClass, Half, Half)], room: usize) -> usize {
        let kept = pairs.len().min(room);
        self.matched_left_out += (pairs.len() - kept) as u64;
        let kept_pairs = pairs.iter().take(kept);
        self.matched
            .extend(kept_pairs.map(|(class, inner, outer)| Matched {
                class: *class,
                inner: inner.place,
                outer: outer.place,
            }));
        kept
    }

    fn row(&self, pid: u32) -> Sidecar {
        let unknown = || Endpoint {
            pid: Some(pid),
            start_ticks: None,
            comm: String::new(),
            container: None,
            address: Address::Ip(core::net::Ipv4Addr::UNSPECIFIED.into()),
        };
        Sidecar {
            process: self.endpoint.clone().unwrap_or_else(unknown),
            requests_in: self.requests_in,
            requests_out: self.requests_out,
            time_in_ns: self.time_in_ns,
            time_out_ns: self.time_out_ns,
            unmatched_in: self.unmatched_in,
            unmatched_out: self.unmatched_out,
            forgotten: self.forgotten,
            pairs: self.pairs.clone(),
            upstream_header: self.upstream_header,
            matched: self.matched.clone(),
            matched_left_out: self.matched_left_out,
        }
    }
}

/// Adds the times of a request in and of the one that went out for it.
pub(super) fn add_times(times: &mut SidecarTimes, inner: &PairTimes, outer: &PairTimes) {
    times.pairs += 1;
    let inside = inner.duration_ns().saturating_sub(outer.duration_ns());
    times.inside_ns.add(inside);
    let read_wait = inner
        .ready_ns
        .map(|ready| inner.begin_ns.saturating_sub(ready));
    if let Some(read_wait) = read_wait {
        times.read_wait_ns.add(read_wait);
    }
    times
        .whole_ns
        .add(inner.duration_ns() + read_wait.unwrap_or(0));
    let to_upstream = outer.begin_ns.saturating_sub(inner.begin_ns);
    times.to_upstream_ns.add(to_upstream);
    let Some(answered) = outer.first_byte_ns else {
        return;
    };
    times
        .upstream_ns
        .add(answered.saturating_sub(outer.begin_ns));
    if let Some(ready) = outer.answer_ready_ns {
        times.answer_wait_ns.add(answered.saturating_sub(ready));
    }
    // An answer that began before the upstream's is none of it, as 100 Continue.
    if let Some(passed_on) = inner.first_byte_ns.and_then(|at| at.checked_sub(answered)) {
        times.to_client_ns.add(passed_on);
    }
}

/// Envoy counts from when the request was sent whole until the head of the answer was there.
fn add_header(header: &mut UpstreamHeader, inner: &Half, outer: &Half) {
    let (Some(said_ms), Some(answered)) = (inner.upstream_service_ms, outer.first_byte_ns) else {
        return;
    };
    let sent = outer.request_end_ns.unwrap_or(outer.begin_ns);
    let measured_ns = answered.saturating_sub(sent);
    header.pairs += 1;
    header.header_ms = header.header_ms.saturating_add(said_ms);
    header.measured_ns = header.measured_ns.saturating_add(measured_ns);
    let apart = (measured_ns / 1_000_000).abs_diff(said_ms);
    header.agreeing += u64::from(apart <= AGREEMENT_MS);
}

#[cfg(test)]
#[path = "sidecar/sidecar_tests.rs"]
mod tests;
