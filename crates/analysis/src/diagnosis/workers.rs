//! The threads that do the work: how busy they are, what they wait for, and whether one has more to do
//! than the others.

use std::collections::BTreeMap;

use profiler_model::{
    Profile, SampleRow, ThreadId, ThreadState, WaitReason,
    diagnosis::{Imbalance, ThreadRole, WorkerThread, WorkerWait, Workers},
    float, percent,
    printable::printable,
};

use super::{
    DiagnosisRules,
    input::{DiagnosisInput, has_waits},
    interval::{ALPHA, FEWEST, share_at},
    matrix::CellSums,
    totals,
};
use crate::render::{summary::identity, wait_reasons::WaitReasons};

/// Threads that are listed.
const THREADS: usize = 200;

/// A thread in all profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: u32,
    tid: u32,
}

#[derive(Debug, Default)]
struct Sum {
    name: String,
    set: usize,
    on_cpu_ns: u64,
    samples: u64,
    blocks: Vec<u64>,
    runnable_ns: u64,
    waits: BTreeMap<WaitReason, (u64, u64)>,
    longest_ns: Option<u64>,
}

/// Sums by thread. `waits` has no idle waits.
pub(super) fn workers(
    rules: &DiagnosisRules,
    input: &DiagnosisInput<'_>,
    sums: Option<&CellSums<'_>>,
    waits: Option<&Profile>,
) -> Workers {
    let mut threads: BTreeMap<Key, Sum> = BTreeMap::new();
    if let (Some(profile), Some(sums)) = (input.on_cpu, sums) {
        add_samples(rules, profile, sums, &mut threads);
    }
    if let Some(profile) = waits {
        add_waits(rules, profile, &mut threads);
    }
    let window_ns = input.window_ns();
    // Of a time of their own: waits are watched a little longer.
    let waits_ns = waits.map_or(window_ns, |profile| {
        window_ns.max(profile.to_ns.saturating_sub(profile.from_ns))
    });
    let all_ns = threads
        .values()
        .map(|sum| sum.on_cpu_ns)
        .fold(0, u64::saturating_add);
    let role = |key: &Key, sum: &Sum| rules.role_of(sum.set, &sum.name, key.tid == key.pid);
    let mut list: Vec<WorkerThread> = threads
        .iter()
        .map(|(key, sum)| {
            let observed = totals::of_thread(input, key.pid, key.tid);
            let queued = observed.and_then(|(_, queued)| queued);
            let by_waits = || waits.map(|_| percent(sum.runnable_ns, waits_ns));
            let mut waits: Vec<WorkerWait> = sum
                .waits
                .iter()
                .map(|(reason, (count, ns))| WorkerWait {
                    reason: reason.name().to_owned(),
                    count: *count,
                    ns: *ns,
                    share_percent: percent(*ns, waits_ns),
                })
                .collect();
            waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
            WorkerThread {
                contention: None,
                pid: key.pid,
                tid: key.tid,
                name: printable(&sum.name).into_owned(),
                role: role(key, sum),
                cpu_percent: observed
                    .map_or_else(|| percent(sum.on_cpu_ns, window_ns), |(cpu, _)| cpu),
                share_percent: percent(sum.on_cpu_ns, all_ns),
                run_queue_percent: queued.or_else(by_waits),
                waits,
                longest_wait_ns: sum.longest_ns,
            }
        })
        .collect();
    let workers = list
        .iter()
        .filter(|thread| thread.role == ThreadRole::Worker)
        .filter_map(|thread| {
            let key = Key {
                pid: thread.pid,
                tid: thread.tid,
            };
            Some((thread, threads.get(&key)?))
        });
    let imbalance = imbalance(workers);
    list.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    list.truncate(THREADS);
    let waits = input.off_cpu.filter(|profile| has_waits(profile));
    if let Some(profile) = waits {
        let mut of_threads = profile.cpu_contentions(|thread| {
            let (pid, _, tid) = identity(profile, thread);
            Some((pid, tid))
        });
        for thread in &mut list {
            let contention = of_threads.remove(&(thread.pid, thread.tid));
            thread.contention = Some(contention.unwrap_or_default());
        }
    }
    Workers {
        threads: list,
        imbalance,
        throttled: totals::throttled(input),
        contention: waits.map(|profile| profile.cpu_contention(|_| true)),
    }
}

fn sum_of<'a>(
    rules: &DiagnosisRules,
    profile: &Profile,
    thread: ThreadId,
    threads: &'a mut BTreeMap<Key, Sum>,
) -> &'a mut Sum {
    let thread = &profile.threads[thread as usize];
    let process = &profile.processes[thread.process as usize];
    let key = Key {
        pid: process.key.pid,
        tid: thread.tid,
    };
    threads.entry(key).or_insert_with(|| Sum {
        name: profile.text(thread.name).to_owned(),
        set: rules.set_of(profile.text(process.comm), profile.text(process.exe)),
        ..Sum::default()
    })
}

fn add_samples(
    rules: &DiagnosisRules,
    profile: &Profile,
    sums: &CellSums<'_>,
    threads: &mut BTreeMap<Key, Sum>,
) {
    let on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
    for row in profile.samples.iter().filter(on_cpu) {
        let block = sums.block_of(row);
        let sum = sum_of(rules, profile, row.thread, threads);
        if sum.blocks.is_empty() {
            sum.blocks = vec![0; sums.blocks.len()];
        }
        if let Some(slot) = sum.blocks.get_mut(block) {
            *slot = slot.saturating_add(row.total_ns);
        }
        sum.on_cpu_ns = sum.on_cpu_ns.saturating_add(row.total_ns);
        sum.samples = sum.samples.saturating_add(row.count);
    }
}

fn add_waits(rules: &DiagnosisRules, profile: &Profile, threads: &mut BTreeMap<Key, Sum>) {
    let reasons = WaitReasons::of(profile);
    for row in &profile.samples {
        match row.state {
            ThreadState::OnCpu => continue,
            ThreadState::Preempted | ThreadState::Woken => {
                let sum = sum_of(rules, profile, row.thread, threads);
                sum.runnable_ns = sum.runnable_ns.saturating_add(row.total_ns);
                continue;
            }
            ThreadState::Interruptible
            | ThreadState::Uninterruptible
            | ThreadState::Io
            | ThreadState::Stopped => {}
        }
        let sum = sum_of(rules, profile, row.thread, threads);
        let wait = sum.waits.entry(reasons.of_row(row)).or_default();
        wait.0 = wait.0.saturating_add(row.count);
        wait.1 = wait.1.saturating_add(row.total_ns);
        // Of several waits at one place in one bucket the mean is known: one was as long.
        let length = row.total_ns / row.count.max(1);
        sum.longest_ns = Some(sum.longest_ns.map_or(length, |longest| longest.max(length)));
    }
}

/// Compares the workers of the process that has the most samples of workers, by the CPU use that is listed
/// of each. How much it varies is known from the samples alone: the interval is theirs.
fn imbalance<'a>(workers: impl Iterator<Item = (&'a WorkerThread, &'a Sum)>) -> Option<Imbalance> {
    type Worker<'a> = (&'a WorkerThread, &'a Sum);
    let mut by_process: BTreeMap<u32, Vec<Worker<'_>>> = BTreeMap::new();
    for worker in workers {
        by_process.entry(worker.0.pid).or_default().push(worker);
    }
    let samples =
        |workers: &Vec<Worker<'_>>| workers.iter().map(|(_, sum)| sum.samples).sum::<u64>();
    let workers = by_process
        .into_values()
        .filter(|workers| workers.len() > 1)
        .max_by_key(samples)?;
    let samples = samples(&workers);
    let by_use = |one: &&Worker<'_>, other: &&Worker<'_>| {
        let (one, other) = (one.0.cpu_percent, other.0.cpu_percent);
        one.total_cmp(&other)
    };
    let (busiest, most) = workers.iter().max_by(by_use)?;
    if samples < FEWEST || most.blocks.is_empty() {
        return None;
    }
    let mut all = vec![0u64; most.blocks.len()];
    for (_, sum) in &workers {
        for (slot, more) in all.iter_mut().zip(&sum.blocks) {
            *slot += more;
        }
    }
    let number = float(workers.len() as u64);
    // The busiest of several is looked at, which some worker always is.
    let found = share_at(&most.blocks, &all, samples, ALPHA / number);
    let total: f64 = workers.iter().map(|(thread, _)| thread.cpu_percent).sum();
    let mean_percent = total / number;
    let ratio = busiest.cpu_percent / mean_percent.max(f64::MIN_POSITIVE);
    let beside = |percent: f64| ratio + (percent - found.value) / 100.0 * number;
    let (low, high) = (beside(found.low), beside(found.high));
    Some(Imbalance {
        busiest_percent: busiest.cpu_percent,
        mean_percent,
        ratio,
        low,
        high,
        significant: low > 1.0,
    })
}
