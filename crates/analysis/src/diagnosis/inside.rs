//! What processes do while they have requests: the CPU time and the waits of the threads that read requests and write
//! responses, for each request.
//!
//! A wait for events (`epoll`, `accept`, `read` of a socket) is the same for a thread that has nothing to do and for one whose
//! request waits for something: it is in no sum. What no thread accounts for is what is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use profiler_model::{
    EdgeTable, FrameSpace, Profile, RequestTable, SampleRow, Sidecar, StackId, ThreadState,
    WaitReason,
    diagnosis::EventLoopReport,
    latency::{LatencyActivity, LatencyActivityKind as Kind, LatencyInside, LatencyProcess},
    percent,
    printable::printable_within,
};

use super::matrix::CellSums;
use crate::render::{names::names_of_frames, wait_reasons::WaitReasons};

/// Functions of a stack that are shown.
const FUNCTIONS: usize = 8;
/// From this part of the CPU time on, a feature is named.
const NAMED_PERCENT: f64 = 30.0;
/// Requests wait for their turn where the busiest of the threads was busy for this part of the time.
const BUSY_PERCENT: f64 = 80.0;
/// Or where turns of their event loops that were too long account for this part of the wait.
const HELD_PERCENT: f64 = 50.0;
/// Another thread may be what requests wait for from this part of their unexplained time on.
const OTHER_PERCENT: f64 = 20.0;
/// Columns of a name.
const NAME_COLUMNS: usize = 40;
const TIMER: &str = "for a timer: nothing else was seen to work for it";
const QUOTA: &str = "its quota being used up";

/// What was recorded beside the requests.
pub(super) struct Recorded<'a> {
    pub(super) on_cpu: Option<(&'a Profile, &'a CellSums<'a>)>,
    /// Without those of threads that have nothing to do.
    pub(super) waits: Option<&'a Profile>,
    pub(super) edges: Option<&'a EdgeTable>,
    pub(super) event_loop: Option<&'a EventLoopReport>,
    pub(super) throttled: bool,
}

/// Whether the requests that a process makes are a part of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnRequests {
    Counted,
    /// They have parts of their own.
    Apart,
}

#[derive(Debug, Default)]
struct Sum {
    ns: u64,
    /// Of the profile that the kind is found in.
    stacks: HashMap<StackId, u64>,
}

impl Sum {
    fn add(&mut self, row: &SampleRow) {
        self.ns = self.ns.saturating_add(row.total_ns);
        let of_stack = self.stacks.entry(row.stack).or_default();
        *of_stack = of_stack.saturating_add(row.total_ns);
    }

    fn heaviest(&self) -> Option<StackId> {
        let heaviest = self.stacks.iter().max_by_key(|(stack, ns)| (**ns, **stack));
        heaviest.map(|(stack, _)| *stack)
    }
}

/// How much of a profile's time falls to one request.
#[derive(Clone, Copy, Debug)]
struct PerRequest {
    /// Of the profile, and of the requests.
    window_ns: u64,
    requests_ns: u64,
    requests: u64,
}

impl PerRequest {
    fn of(self, ns: u64) -> u64 {
        let above = u128::from(ns) * u128::from(self.requests_ns);
        let below = u128::from(self.window_ns) * u128::from(self.requests);
        above
            .checked_div(below)
            .map_or(0, |each| u64::try_from(each).unwrap_or(u64::MAX))
    }
}

impl Recorded<'_> {
    /// What a process did with the requests that came to it, each of which it had for `mean_ns`. `None`: its threads are not
    /// known or were not recorded.
    pub(super) fn inside(
        &self,
        table: &RequestTable,
        process: &LatencyProcess,
        mean_ns: u64,
        own: OwnRequests,
    ) -> Option<LatencyInside> {
        let pid = process.pid?;
        let incoming = Incoming::of(table, pid);
        if incoming.tids.is_empty() || incoming.requests == 0 || mean_ns == 0 {
            return None;
        }
        let requests_ns = table.window.to_ns.saturating_sub(table.window.from_ns);
        let each = |profile: &Profile| PerRequest {
            window_ns: profile.to_ns.saturating_sub(profile.from_ns),
            requests_ns,
            requests: incoming.requests,
        };
        let mut activities: Vec<LatencyActivity> = Vec::new();
        let mut busy: BTreeMap<u32, f64> = BTreeMap::new();
        let mut is_recorded = false;
        if let Some((profile, sums)) = self.on_cpu {
            is_recorded |= has(profile, pid);
            let each = each(profile);
            let is_on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
            let rows = rows_of(profile, pid, &incoming.tids).filter(is_on_cpu);
            let (mut running, mut features) = (Sum::default(), BTreeMap::new());
            for row in rows {
                running.add(row);
                *features.entry(sums.feature_of(row)).or_insert(0u64) += row.total_ns;
                add_busy(&mut busy, profile, row, each.window_ns);
            }
            let leading = features.into_iter().max_by_key(|(_, ns)| *ns);
            let leading = leading.filter(|(_, ns)| percent(*ns, running.ns) >= NAMED_PERCENT);
            let named = leading.and_then(|(name, ns)| Some((name?, each.of(ns))));
            activities.push(LatencyActivity {
                what: named.as_ref().map(|(name, _)| name.clone()),
                what_ns: named.map(|(_, ns)| ns),
                stack: functions(profile, running.heaviest()),
                ..activity(Kind::Running, each.of(running.ns))
            });
        }
        if let Some(profile) = self.waits {
            is_recorded |= has(profile, pid);
            let each = each(profile);
            let reasons = WaitReasons::of(profile);
            let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
            for row in rows_of(profile, pid, &incoming.tids) {
                let Some(kind) = kind_of(row, &reasons) else {
                    continue;
                };
                sums.entry(kind).or_default().add(row);
                add_busy(&mut busy, profile, row, each.window_ns);
            }
            activities.extend(sums.into_iter().map(|(kind, sum)| LatencyActivity {
                what: (kind == Kind::WaitingForCpu && self.throttled).then(|| QUOTA.to_owned()),
                stack: functions(profile, sum.heaviest()),
                ..activity(kind, each.of(sum.ns))
            }));
        }
        if !is_recorded {
            return None;
        }
        if own == OwnRequests::Counted {
            activities.extend(own_requests(table, pid, incoming.requests));
        }
        let is_busy = busy.values().any(|percent| *percent >= BUSY_PERCENT);
        let held_ns = self.on_cpu.map_or(0, |(profile, _)| {
            each(profile).of(self.stalled_ns(&incoming.tids))
        });
        let mut activities = whole(activities, mean_ns, |rest_ns| {
            is_busy || (held_ns > 0 && percent(held_ns, rest_ns) >= HELD_PERCENT)
        });
        let rest = activities.iter_mut();
        for rest in rest.filter(|activity| activity.kind == Kind::Suspended) {
            rest.what = self.suspect(table, pid, &incoming.tids, |profile, ns| {
                percent(each(profile).of(ns), rest.mean_ns) >= OTHER_PERCENT
            });
        }
        Some(LatencyInside {
            process: process.clone(),
            mean_ns,
            threads: u32::try_from(incoming.tids.len()).unwrap_or(u32::MAX),
            activities,
        })
    }

    /// How long the event loops of threads were held by single turns.
    fn stalled_ns(&self, tids: &BTreeSet<u32>) -> u64 {
        let threads = self.event_loop.iter().flat_map(|report| &report.threads);
        let wanted = threads.filter(|thread| tids.contains(&thread.tid));
        wanted.map(|thread| thread.stalled_ns).sum()
    }

    /// What requests may wait for that no thread of theirs works on: what is asked and cannot be read, another thread that
    /// works for long enough, and where there is neither, a timer.
    fn suspect(
        &self,
        table: &RequestTable,
        pid: u32,
        tids: &BTreeSet<u32>,
        is_long: impl Fn(&Profile, u64) -> bool,
    ) -> Option<String> {
        let edges = &self.edges?.edges;
        let is_read = |operation: &u32| table.edges.get(*operation as usize).map(|edge| &edge.key);
        let read: BTreeSet<_> = table
            .operations
            .iter()
            .filter_map(|operation| operation.edge)
            .filter_map(|edge| is_read(&edge))
            .collect();
        let unread = edges
            .iter()
            .filter(|edge| edge.key.client.pid == Some(pid) && !read.contains(&edge.key))
            .max_by_key(|edge| edge.bytes());
        if let Some(edge) = unread.filter(|edge| edge.bytes() > 0) {
            let server = &edge.key.server;
            let name = if server.comm.is_empty() {
                server.address.to_string()
            } else {
                server.comm.clone()
            };
            let name = printable_within(&name, NAME_COLUMNS);
            return Some(format!(
                "perhaps waiting for {name}, which could not be read"
            ));
        }
        let profiles = [self.on_cpu.map(|(profile, _)| profile), self.waits];
        for profile in profiles.into_iter().flatten() {
            let mut others: BTreeMap<u32, u64> = BTreeMap::new();
            for row in &profile.samples {
                let thread = &profile.threads[row.thread as usize];
                let process = &profile.processes[thread.process as usize];
                let works = matches!(row.state, ThreadState::OnCpu | ThreadState::Io);
                if works && process.key.pid == pid && !tids.contains(&thread.tid) {
                    *others.entry(row.thread).or_default() += row.total_ns;
                }
            }
            let longest = others.into_iter().max_by_key(|(_, ns)| *ns);
            if let Some((thread, _)) = longest.filter(|(_, ns)| is_long(profile, *ns)) {
                let name = profile.text(profile.threads[thread as usize].name);
                let name = printable_within(name, NAME_COLUMNS);
                return Some(format!(
                    "perhaps for its thread {name}, which worked meanwhile"
                ));
            }
        }
        Some(TIMER.to_owned())
    }
}

/// Requests to a process, and the threads that had them.
#[derive(Debug, Default)]
struct Incoming {
    requests: u64,
    tids: BTreeSet<u32>,
}

impl Incoming {
    fn of(table: &RequestTable, pid: u32) -> Self {
        let mut found = Self::default();
        for operation in &table.operations {
            let edge = operation
                .edge
                .and_then(|edge| table.edges.get(edge as usize));
            let Some(edge) = edge.filter(|edge| edge.key.server.pid == Some(pid)) else {
                continue;
            };
            found.requests = found.requests.saturating_add(operation.tally.count);
            found.tids.extend(&edge.server_tids);
        }
        let is_it = |sidecar: &&Sidecar| sidecar.process.pid == Some(pid) && sidecar.pairs() > 0;
        if let Some(sidecar) = table.sidecars.iter().find(is_it) {
            // What it answers by itself is no request that passes through.
            let pairs = u128::from(sidecar.pairs());
            let all = pairs + u128::from(sidecar.unmatched_in);
            let passed_on = u128::from(found.requests) * pairs / all;
            found.requests = u64::try_from(passed_on).unwrap_or(u64::MAX);
        }
        found
    }
}

fn activity(kind: Kind, mean_ns: u64) -> LatencyActivity {
    LatencyActivity {
        kind,
        what: None,
        what_ns: None,
        mean_ns,
        share_percent: 0.0,
        stack: Vec::new(),
    }
}

/// What a wait of a thread with requests means; `None`: it may have nothing to do.
fn kind_of(row: &SampleRow, reasons: &WaitReasons) -> Option<Kind> {
    match row.state {
        ThreadState::OnCpu => return None,
        ThreadState::Preempted | ThreadState::Woken => return Some(Kind::WaitingForCpu),
        ThreadState::Interruptible
        | ThreadState::Uninterruptible
        | ThreadState::Io
        | ThreadState::Stopped => {}
    }
    Some(match reasons.of_row(row) {
        WaitReason::Preempted => Kind::WaitingForCpu,
        WaitReason::PageFault => Kind::PageFault,
        WaitReason::Futex => Kind::Lock,
        WaitReason::Sleep => Kind::Asleep,
        WaitReason::Fsync | WaitReason::FileRead | WaitReason::FileWrite => Kind::File,
        WaitReason::Poll
        | WaitReason::SocketRead
        | WaitReason::Accept
        | WaitReason::Pipe
        | WaitReason::IoUring => return None,
        WaitReason::Other if row.state == ThreadState::Io => Kind::File,
        WaitReason::SocketWrite | WaitReason::Connect | WaitReason::Child | WaitReason::Other => {
            Kind::Blocked
        }
    })
}

fn rows_of<'p>(
    profile: &'p Profile,
    pid: u32,
    tids: &BTreeSet<u32>,
) -> impl Iterator<Item = &'p SampleRow> {
    let wanted: Vec<bool> = profile
        .threads
        .iter()
        .map(|thread| {
            let process = &profile.processes[thread.process as usize];
            process.key.pid == pid && tids.contains(&thread.tid)
        })
        .collect();
    let is_wanted = move |row: &&SampleRow| wanted[row.thread as usize];
    profile.samples.iter().filter(is_wanted)
}

fn has(profile: &Profile, pid: u32) -> bool {
    let mut processes = profile.processes.iter();
    processes.any(|process| process.key.pid == pid)
}

fn add_busy(busy: &mut BTreeMap<u32, f64>, profile: &Profile, row: &SampleRow, window_ns: u64) {
    let tid = profile.threads[row.thread as usize].tid;
    *busy.entry(tid).or_default() += percent(row.total_ns, window_ns);
}

/// Requests that a process makes itself, for each of those that came to it.
fn own_requests(table: &RequestTable, pid: u32, requests: u64) -> Option<LatencyActivity> {
    let mut all_ns = 0u128;
    let mut servers: BTreeMap<&str, u128> = BTreeMap::new();
    for operation in &table.operations {
        let edge = operation
            .edge
            .and_then(|edge| table.edges.get(edge as usize));
        let Some(edge) = edge.filter(|edge| edge.key.client.pid == Some(pid)) else {
            continue;
        };
        let (_, timings) = operation.timed_by();
        let mean_ns = timings.latency_ns.mean().unwrap_or(0);
        let ns = u128::from(mean_ns) * u128::from(operation.tally.count);
        all_ns += ns;
        *servers.entry(&edge.key.server.comm).or_default() += ns;
    }
    let (server, _) = servers.into_iter().max_by_key(|(_, ns)| *ns)?;
    let each = all_ns.checked_div(u128::from(requests))?;
    Some(LatencyActivity {
        what: (!server.is_empty()).then(|| server.to_owned()),
        ..activity(Kind::OwnRequests, u64::try_from(each).unwrap_or(u64::MAX))
    })
}

/// Parts that add up to the whole, most time first. What the threads did between requests is in their sums: where these are
/// more than the whole, each is less by the same part.
fn whole(
    mut activities: Vec<LatencyActivity>,
    mean_ns: u64,
    is_queue: impl Fn(u64) -> bool,
) -> Vec<LatencyActivity> {
    let threads_ns: u128 = activities
        .iter()
        .filter(|activity| activity.kind != Kind::OwnRequests)
        .map(|activity| u128::from(activity.mean_ns))
        .sum();
    let scaled = |ns: u64| -> u64 {
        if threads_ns <= u128::from(mean_ns) {
            return ns;
        }
        let part = u128::from(ns) * u128::from(mean_ns) / threads_ns;
        u64::try_from(part).unwrap_or(ns)
    };
    let mut left = mean_ns;
    // Requests of its own may go out beside each other, and overlap with what its threads do.
    activities.sort_by_key(|activity| activity.kind == Kind::OwnRequests);
    for activity in &mut activities {
        if activity.kind != Kind::OwnRequests {
            activity.mean_ns = scaled(activity.mean_ns);
            activity.what_ns = activity.what_ns.map(scaled);
        }
        activity.mean_ns = activity.mean_ns.min(left);
        left -= activity.mean_ns;
    }
    activities.push(activity(
        if is_queue(left) {
            Kind::Queued
        } else {
            Kind::Suspended
        },
        left,
    ));
    activities.retain(|activity| activity.mean_ns > 0);
    for activity in &mut activities {
        activity.share_percent = percent(activity.mean_ns, mean_ns);
    }
    activities.sort_by_key(|activity| std::cmp::Reverse(activity.mean_ns));
    activities
}

/// The program's own functions of a stack.
fn functions(profile: &Profile, stack: Option<StackId>) -> Vec<String> {
    let Some(stack) = stack.and_then(|stack| profile.stacks.get(stack as usize)) else {
        return Vec::new();
    };
    let names = names_of_frames(profile);
    stack
        .frames
        .iter()
        .filter(|frame| profile.frames[**frame as usize].space == FrameSpace::User)
        .flat_map(|frame| names[*frame as usize].iter())
        .take(FUNCTIONS)
        .map(|name| name.clone().into_owned())
        .collect()
}
