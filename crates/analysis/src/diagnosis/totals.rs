//! CPU time and requests of the whole window.

use std::collections::BTreeSet;

use profiler_model::{
    ObservedProcess,
    diagnosis::{Configuration, Configured, Estimate, Requests, Throttled, Totals},
    float, percent,
};

use super::{input::DiagnosisInput, matrix::CellSums};

/// The kernel accounts time to a process in steps of this, at each of two readings.
const TICK_NS: u64 = 10_000_000;
/// Samples that stand for less than this much of the accounted time are said to.
const MISSING_PERCENT: f64 = 90.0;

/// The totals; what is missing is added to `limits`.
pub(super) fn totals(
    input: &DiagnosisInput<'_>,
    sums: &CellSums<'_>,
    limits: &mut Vec<String>,
) -> Totals {
    let observed = input.observed();
    let mut totals = Totals {
        cpu_cores: None,
        cpu_ns: None,
        sampled_ns: sums.ns,
        requests: None,
        cpu_us_per_request: None,
    };
    if observed.is_empty() {
        limits.push(
            "CPU time by the kernel's own accounting and CPU time for each request: the counters \
             were not read. A check-up reads them at its start and its end."
                .to_owned(),
        );
        return totals;
    }
    let cpu_ns: u64 = observed
        .iter()
        .map(|process| process.cpu_ns.difference())
        .sum();
    let length_ns = observed
        .iter()
        .map(|process| length(process))
        .max()
        .unwrap_or(1);
    totals.cpu_ns = Some(cpu_ns);
    totals.cpu_cores = Some(float(cpu_ns) / float(length_ns));
    // Both are rates over their own windows, which are not quite the same.
    let sampled = float(sums.ns) / float(input.window_ns());
    let accounted = float(cpu_ns) / float(length_ns);
    let seen = sampled / accounted.max(f64::MIN_POSITIVE) * 100.0;
    if cpu_ns > 10 * TICK_NS && seen < MISSING_PERCENT {
        limits.push(format!(
            "The samples stand for {seen:.0} % of the CPU time that the kernel accounts to the \
             processes: the rest was not sampled."
        ));
    }
    requests(&observed, cpu_ns, length_ns, &mut totals, limits);
    totals
}

fn requests(
    observed: &[&ObservedProcess],
    cpu_ns: u64,
    length_ns: u64,
    totals: &mut Totals,
    limits: &mut Vec<String>,
) {
    let known: Vec<_> = observed
        .iter()
        .filter_map(|process| process.requests.as_ref())
        .collect();
    let Some(first) = known.first() else {
        limits.push(
            "CPU time for each request: the requests of these processes are not counted, or their \
             counters could not be read."
                .to_owned(),
        );
        return;
    };
    let count: u64 = known.iter().map(|requests| requests.count).sum();
    totals.requests = Some(Requests {
        count,
        per_second: float(count) * 1e9 / float(length_ns),
        source: first.source.clone(),
    });
    if known.len() < observed.len() {
        limits.push(format!(
            "CPU time for each request: requests are known of {} of {} processes only; choose one \
             process.",
            known.len(),
            observed.len()
        ));
        return;
    }
    if count == 0 {
        limits.push("CPU time for each request: there were no requests.".to_owned());
        return;
    }
    let us = |ns: u64| float(ns) / 1000.0 / float(count);
    let doubt = TICK_NS * 2 * observed.len() as u64;
    totals.cpu_us_per_request = Some(Estimate {
        value: us(cpu_ns),
        low: us(cpu_ns.saturating_sub(doubt)),
        high: us(cpu_ns.saturating_add(doubt)),
    });
}

fn length(process: &ObservedProcess) -> u64 {
    process.to_ns.saturating_sub(process.from_ns).max(1)
}

/// What CPU quotas did to the processes; `None` when no process has one that could be read.
pub(super) fn throttled(input: &DiagnosisInput<'_>) -> Option<Throttled> {
    let of_process = input
        .observed()
        .into_iter()
        .filter_map(|process| process.throttled);
    // Processes of one cgroup have the same numbers: the worst is reported, not their sum.
    let worst = of_process.max_by_key(|throttled| throttled.throttled_ns)?;
    Some(Throttled {
        periods: worst.periods,
        throttled_periods: worst.throttled_periods,
        throttled_ns: worst.throttled_ns,
    })
}

/// All processes whose quota was used up, whichever the diagnosis is about.
pub(super) fn throttled_pids(input: &DiagnosisInput<'_>) -> BTreeSet<u32> {
    let all = input.observed.iter().flat_map(|found| &found.processes);
    all.filter(|process| {
        let quota = process.throttled;
        quota.is_some_and(|quota| quota.throttled_ns > 0)
    })
    .map(|process| process.key.pid)
    .collect()
}

/// What the processes report about their configuration; of several the first that says something, with
/// the items of all.
pub(super) fn configuration(input: &DiagnosisInput<'_>) -> Option<Configuration> {
    let all: Vec<_> = input
        .observed()
        .into_iter()
        .filter_map(|process| process.configuration.as_ref())
        .collect();
    let first = all.first()?;
    let mut items: Vec<Configured> = Vec::new();
    for item in all.iter().flat_map(|one| &one.items) {
        let item = Configured {
            key: item.key.clone(),
            value: item.value.clone(),
        };
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Some(Configuration {
        source: first.source.clone(),
        version: first.version.clone(),
        concurrency: first.concurrency,
        items,
    })
}

/// CPU time of a thread by the kernel's accounting, and the time ready to run without a CPU, in
/// percent of the window between the readings.
pub(super) fn of_thread(
    input: &DiagnosisInput<'_>,
    pid: u32,
    tid: u32,
) -> Option<(f64, Option<f64>)> {
    let process = input
        .observed()
        .into_iter()
        .find(|process| process.key.pid == pid)?;
    let thread = process.threads.iter().find(|thread| thread.tid == tid)?;
    let length = length(process);
    let queued = thread
        .run_queue_ns
        .map(|readings| percent(readings.difference(), length));
    Some((percent(thread.cpu_ns.difference(), length), queued))
}
