//! What processes do while they have requests: the CPU time and the waits of the threads that read requests and write
//! responses, for each request.
//!
//! A wait for events (`epoll`, `accept`, `read` of a socket) is the same for a thread that has nothing to do and for one whose
//! request waits for something: it is in no sum. What no thread accounts for is what is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use profiler_model::{
    CpuHolderKind, EdgeKey, EdgeTable, FrameSpace, MAX_SERVER_THREADS, Profile, RequestTable,
    SampleRow, Sidecar, StackId, ThreadState, WaitReason, float,
    latency::{LatencyActivity, LatencyActivityKind as Kind, LatencyInside, LatencyProcess},
    percent,
    printable::printable_within,
};

use super::{
    asked::{full_pool, own_requests, server_name},
    matrix::CellSums,
};
use crate::{
    latency::NAME_COLUMNS,
    render::{names::functions_of, summary::identity, wait_reasons::WaitReasons},
};

/// Functions of a stack that are shown.
const FUNCTIONS: usize = 8;
/// From this part of the CPU time on, a feature is named.
const NAMED_PERCENT: f64 = 30.0;
/// Samples that naming one needs.
const LEAST_SAMPLES: u64 = 10;
/// Requests wait for their turn where the threads were busy for this part of the time, and had this many at once.
const BUSY_PERCENT: f64 = 80.0;
const AT_ONCE: f64 = 1.5;
/// Or where they lie in the sidecar's socket before for this part of the wait: it reads and writes in the same turns.
const QUEUE_PERCENT: f64 = 25.0;
/// Of what a process receives: above it, its time is not only that of the requests that were seen.
const UNREAD_PERCENT: f64 = 10.0;
/// Threads wait for locks for longer than this part of the time of requests: also when they have nothing to do.
const IDLE_PERCENT: f64 = 150.0;
/// Another thread may be what requests wait for from this part of their unexplained time on.
const OTHER_PERCENT: f64 = 20.0;
const TIMER: &str = "perhaps for a timer: nothing else was seen to work for it";
const LIMIT: &str = "perhaps by a connection pool, a limit, a fault filter or a timer";
const IDLE_LOCK: &str =
    "perhaps for a lock, in which its threads also wait when they have nothing to do";
const QUOTA: &str = "its quota being used up";

/// Why it is not known what a process did.
pub(super) type Unknown = &'static str;

/// What was recorded beside the requests.
pub(super) struct Recorded<'a> {
    table: &'a RequestTable,
    /// Edges with requests whose responses were seen.
    answered: BTreeSet<&'a EdgeKey>,
    profiles: Option<Profiles<'a>>,
    edges: Option<&'a EdgeTable>,
    /// Processes whose CPU quota was used up.
    throttled: BTreeSet<u32>,
}

/// Samples and waits.
struct Profiles<'a> {
    on_cpu: &'a Profile,
    sums: &'a CellSums<'a>,
    /// Without those of threads that have nothing to do.
    waits: &'a Profile,
    reasons: WaitReasons,
}

/// A process with requests, and how long it has each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder<'a> {
    pub(super) process: &'a LatencyProcess,
    pub(super) mean_ns: u64,
    /// How long a request lay in its socket before, where that was measured.
    pub(super) queue_ns: u64,
    /// The server whose time is not a part of it: the process passes requests on.
    pub(super) passes_on_to: Option<&'a LatencyProcess>,
    pub(super) is_sidecar: bool,
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

/// What the threads with requests did, for each request.
#[derive(Debug, Default)]
struct Done {
    activities: Vec<LatencyActivity>,
    /// At work or ready to, of all that these threads had.
    busy_percent: f64,
    /// They wait for locks longer than requests last: also when there are none.
    waits_idly: bool,
}

impl<'a> Recorded<'a> {
    pub(super) fn new(
        table: &'a RequestTable,
        on_cpu: Option<(&'a Profile, &'a CellSums<'a>)>,
        waits: Option<&'a Profile>,
        edges: Option<&'a EdgeTable>,
        throttled: BTreeSet<u32>,
    ) -> Self {
        let timed = table.operations.iter().filter(|operation| {
            operation.client.latency_ns.count > 0 || operation.server.latency_ns.count > 0
        });
        Self {
            table,
            answered: timed
                .filter_map(|operation| Some(&table.edge_of(operation)?.key))
                .collect(),
            profiles: on_cpu.zip(waits).map(|((on_cpu, sums), waits)| Profiles {
                on_cpu,
                sums,
                waits,
                reasons: WaitReasons::of(waits),
            }),
            edges,
            throttled,
        }
    }

    /// What a process did with the requests that came to it.
    pub(super) fn inside(&self, holder: Holder<'_>) -> Result<LatencyInside, Unknown> {
        let table = self.table;
        let Holder {
            process, mean_ns, ..
        } = holder;
        let pid = process
            .pid
            .ok_or("it is several processes, or not on this node")?;
        let Some(profiles) = &self.profiles else {
            return Err("samples or waits are missing");
        };
        let Profiles { on_cpu, waits, .. } = *profiles;
        if !has(on_cpu, pid) && !has(waits, pid) {
            return Err("its threads were not recorded");
        }
        let incoming = Incoming::of(table, pid)?;
        if self.reads_little(pid) {
            return Err("a part of what it receives could not be read");
        }
        let requests_ns = table.window.to_ns.saturating_sub(table.window.from_ns);
        let each = |profile: &Profile| PerRequest {
            window_ns: profile.to_ns.saturating_sub(profile.from_ns),
            requests_ns,
            requests: incoming.requests,
        };
        if [requests_ns, each(on_cpu).window_ns, each(waits).window_ns].contains(&0) {
            return Err("nothing was recorded at the time of the requests");
        }
        let Done {
            mut activities,
            busy_percent,
            waits_idly,
        } = self.done(profiles, pid, &incoming.tids, mean_ns, each);
        activities.extend(own_requests(table, pid, incoming.requests, holder));
        // Requests at once, on average.
        let at_once = float(incoming.requests) * float(mean_ns) / float(requests_ns);
        let mut activities = whole(activities, mean_ns, |rest_ns| {
            (busy_percent >= BUSY_PERCENT && at_once >= AT_ONCE)
                || (holder.is_sidecar && percent(holder.queue_ns, rest_ns) >= QUEUE_PERCENT)
        });
        let rest = activities.iter_mut();
        for rest in rest.filter(|activity| activity.kind == Kind::Suspended) {
            rest.what = if waits_idly {
                Some(IDLE_LOCK.to_owned())
            } else {
                self.suspect(profiles, pid, &incoming.tids, holder, |profile, ns| {
                    percent(each(profile).of(ns), rest.mean_ns) >= OTHER_PERCENT
                })
            };
        }
        Ok(LatencyInside {
            process: process.clone(),
            mean_ns,
            threads: u32::try_from(incoming.tids.len()).unwrap_or(u32::MAX),
            activities,
        })
    }

    fn done(
        &self,
        profiles: &Profiles<'_>,
        pid: u32,
        tids: &BTreeSet<u32>,
        mean_ns: u64,
        each: impl Fn(&Profile) -> PerRequest,
    ) -> Done {
        let (running, at_work) = running(profiles, pid, tids, each(profiles.on_cpu));
        let mut done = Done {
            activities: vec![running],
            ..Done::default()
        };
        let mut busy = at_work;
        let each = each(profiles.waits);
        let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
        for row in rows_of(profiles.waits, pid, tids) {
            if let Some(kind) = kind_of(row, &profiles.reasons) {
                sums.entry(kind).or_default().add(row);
            }
        }
        if let Some(lock) = sums.get(&Kind::Lock)
            && percent(each.of(lock.ns), mean_ns) > IDLE_PERCENT
        {
            sums.remove(&Kind::Lock);
            done.waits_idly = true;
        }
        for (kind, sum) in sums {
            if matches!(kind, Kind::WaitingForCpu | Kind::File | Kind::PageFault) {
                busy += percent(sum.ns, each.window_ns);
            }
            let holder = (kind == Kind::WaitingForCpu)
                .then(|| self.holder(profiles.waits, pid, tids, each))
                .flatten();
            let (what, what_ns) = holder.unzip();
            done.activities.push(LatencyActivity {
                what,
                what_ns: what_ns.flatten(),
                stack: functions(profiles.waits, sum.heaviest()),
                ..activity(kind, each.of(sum.ns))
            });
        }
        done.busy_percent = busy / float(tids.len().max(1) as u64);
        done
    }

    /// Why there was no CPU, and for which part of the time: its quota, or who had it most.
    fn holder(
        &self,
        waits: &Profile,
        pid: u32,
        tids: &BTreeSet<u32>,
        each: PerRequest,
    ) -> Option<(String, Option<u64>)> {
        if self.throttled.contains(&pid) {
            return Some((QUOTA.to_owned(), None));
        }
        let contention = waits.cpu_contention(|thread| {
            let (of, _, tid) = identity(waits, thread);
            of == pid && tids.contains(&tid)
        });
        let holder = contention.holders.into_iter().next()?;
        let what = match holder.kind {
            CpuHolderKind::Idle => "on the way to an idle one".to_owned(),
            _ => format!("with {} on it", holder.title),
        };
        (holder.share_percent >= NAMED_PERCENT).then(|| (what, Some(each.of(holder.ns))))
    }

    /// Whether a tenth or more of what a process received is of connections whose requests were not seen.
    fn reads_little(&self, pid: u32) -> bool {
        let (mut all, mut unread) = (0u64, 0u64);
        let edges = self.edges.iter().flat_map(|edges| &edges.edges);
        for edge in edges.filter(|edge| edge.key.server.pid == Some(pid)) {
            all = all.saturating_add(edge.bytes());
            if !self.answered.contains(&edge.key) {
                unread = unread.saturating_add(edge.bytes());
            }
        }
        percent(unread, all) >= UNREAD_PERCENT
    }

    /// What requests may wait for that no thread of theirs works on: what is asked and does not answer, or cannot be read,
    /// another thread that works for long enough, and where there is neither, a timer.
    fn suspect(
        &self,
        profiles: &Profiles<'_>,
        pid: u32,
        tids: &BTreeSet<u32>,
        holder: Holder<'_>,
        is_long: impl Fn(&Profile, u64) -> bool,
    ) -> Option<String> {
        if let Some(text) = full_pool(self.table, pid, holder) {
            return Some(text);
        }
        let unread = self
            .edges?
            .edges
            .iter()
            .filter(|edge| edge.key.client.pid == Some(pid) && !self.answered.contains(&edge.key))
            .max_by_key(|edge| edge.bytes());
        if let Some(edge) = unread.filter(|edge| edge.bytes() > 0) {
            let name = server_name(&edge.key);
            let name = printable_within(&name, NAME_COLUMNS);
            return Some(format!(
                "perhaps waiting for {name}, whose responses were not seen"
            ));
        }
        for profile in [profiles.on_cpu, profiles.waits] {
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
        Some(if holder.is_sidecar { LIMIT } else { TIMER }.to_owned())
    }
}

/// What the threads did on a CPU for each request, and for which part of the time, in percent of one CPU.
fn running(
    profiles: &Profiles<'_>,
    pid: u32,
    tids: &BTreeSet<u32>,
    each: PerRequest,
) -> (LatencyActivity, f64) {
    let Profiles { on_cpu, sums, .. } = *profiles;
    let (mut running, mut samples) = (Sum::default(), 0u64);
    let mut features: BTreeMap<usize, u64> = BTreeMap::new();
    let is_on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
    for row in rows_of(on_cpu, pid, tids).filter(is_on_cpu) {
        running.add(row);
        samples = samples.saturating_add(row.count);
        *features.entry(sums.feature_of(row)).or_default() += row.total_ns;
    }
    let leading = features.into_iter().max_by_key(|(_, ns)| *ns);
    let leading = leading
        .filter(|(_, ns)| samples >= LEAST_SAMPLES && percent(*ns, running.ns) >= NAMED_PERCENT);
    let named = leading.and_then(|(feature, ns)| Some((sums.known_title(feature)?, ns)));
    let activity = LatencyActivity {
        what_ns: named.as_ref().map(|(_, ns)| each.of(*ns)),
        what: named.map(|(title, _)| title),
        stack: functions(on_cpu, running.heaviest()),
        ..activity(Kind::Running, each.of(running.ns))
    };
    (activity, percent(running.ns, each.window_ns))
}

/// Requests to a process, and the threads that had them.
#[derive(Debug, Default)]
struct Incoming {
    requests: u64,
    tids: BTreeSet<u32>,
}

impl Incoming {
    fn of(table: &RequestTable, pid: u32) -> Result<Self, Unknown> {
        let mut found = Self::default();
        for operation in &table.operations {
            let edge = table.edge_of(operation);
            let Some(edge) = edge.filter(|edge| edge.key.server.pid == Some(pid)) else {
                continue;
            };
            if operation.tally.variance.is_none() {
                return Err("how many requests came to it is not known");
            }
            if edge.server_tids.len() >= MAX_SERVER_THREADS {
                return Err("it has too many threads with requests");
            }
            found.requests = found.requests.saturating_add(operation.tally.count);
            found.tids.extend(&edge.server_tids);
        }
        let is_it = |sidecar: &&Sidecar| sidecar.process.pid == Some(pid) && sidecar.pairs() > 0;
        if let Some(sidecar) = table.sidecars.iter().find(is_it) {
            let (pairs, alone) = (sidecar.pairs(), sidecar.unmatched_in);
            if table.counters.sampled_one_of > 1 {
                return Err("not all of its connections were captured");
            }
            if alone > pairs {
                return Err("it answered most requests by itself");
            }
            // What it answers by itself is no request that passes through.
            let all = u128::from(pairs) + u128::from(alone);
            let passed_on = u128::from(found.requests) * u128::from(pairs) / all;
            found.requests = u64::try_from(passed_on).unwrap_or(u64::MAX);
        }
        if found.tids.is_empty() || found.requests == 0 {
            return Err("its own sockets did not see the requests");
        }
        Ok(found)
    }
}

pub(super) fn activity(kind: Kind, mean_ns: u64) -> LatencyActivity {
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

/// Parts that add up to the whole, most time first. What the threads did between requests is in their sums: where these are more
/// than the whole, all are scaled down in proportion. Requests of its own were measured: a wait for a lock gives way to them.
fn whole(
    mut activities: Vec<LatencyActivity>,
    mean_ns: u64,
    is_queue: impl Fn(u64) -> bool,
) -> Vec<LatencyActivity> {
    let rank = |kind: Kind| match kind {
        Kind::OwnRequests => 1,
        Kind::Lock => 2,
        _ => 0,
    };
    let certain = activities
        .iter()
        .filter(|activity| rank(activity.kind) == 0);
    let certain_ns: u128 = certain.map(|activity| u128::from(activity.mean_ns)).sum();
    let scaled = |ns: u64| -> u64 {
        if certain_ns <= u128::from(mean_ns) {
            return ns;
        }
        let part = u128::from(ns) * u128::from(mean_ns) / certain_ns;
        u64::try_from(part).unwrap_or(ns)
    };
    let mut left = mean_ns;
    activities.sort_by_key(|activity| rank(activity.kind));
    for activity in &mut activities {
        if rank(activity.kind) == 0 {
            activity.mean_ns = scaled(activity.mean_ns);
            activity.what_ns = activity.what_ns.map(scaled);
        }
        activity.mean_ns = activity.mean_ns.min(left);
        left -= activity.mean_ns;
    }
    let rest = if is_queue(left) {
        Kind::Queued
    } else {
        Kind::Suspended
    };
    activities.push(activity(rest, left));
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
    let frames = stack
        .frames
        .iter()
        .map(|frame| &profile.frames[*frame as usize])
        .filter(|frame| frame.space == FrameSpace::User);
    frames
        .flat_map(|frame| functions_of(profile, frame))
        .take(FUNCTIONS)
        .collect()
}
