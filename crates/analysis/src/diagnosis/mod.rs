//! Which part of a process costs what, with evidence and the setting that changes it.
//!
//! Rules are data (`rules/diagnosis.toml`, and the user's file). They are applied when a result is read,
//! to names, so that results of any age profit from better rules and from symbols that came later.
//!
//! ```text
//! rules (file) -> attribute (stack -> cell) -> matrix (sums) -> findings, verdict
//!                 input -> coverage, totals, workers, network, response_flags, measures --^
//!                 input -> latency (inside: samples and waits of the threads with requests) -> verdict
//! ```

mod file;
mod source;
mod rules;
mod lookup;
mod listing;
mod place;
mod proof;

mod fit;
mod walk;
mod attribute;
mod cell;
mod interval;
mod matrix;

mod input;
mod scope;
mod coverage;
mod totals;
mod workers;
mod network;
mod loops;
mod response_flags;
mod inside;
mod asked;
mod latency;
mod measures;
mod findings;
mod verdict;

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

pub use input::DiagnosisInput;
pub use interval::student_quantile;
pub(crate) use interval::{FEWEST, proportion};
pub use loops::event_loops;
pub use place::place;
pub use proof::KnownNames;
pub use rules::{DiagnosisRules, DiagnosisRulesError};
pub use scope::pids_of;

use findings::FindingContext;
use inside::Recorded;
use matrix::CellSums;
use measures::{Measurements, Switches};
use profiler_model::{
    Clock, IdleMode, ProcessKey, Profile, ProfileBuilder, ThreadState, UnsampledTime,
    diagnosis::{
        Configuration, DiagnosedProcess, DiagnosedWindow, Diagnosis, Measurement, RulesInForce,
        Totals,
    },
    float,
    latency::Latency,
    percent,
    printable::printable,
};
use scope::Cut;

use crate::idle::IdleRules;

/// The CPU time whose stacks are known: that between the samples of a wall-clock profile belongs to
/// them. What was estimated or left out is added to `limits`.
fn sampled_time<'a>(profile: &'a Profile, limits: &mut Vec<String>) -> Cow<'a, Profile> {
    if profile.clock != Clock::Wall {
        return Cow::Borrowed(profile);
    }
    let mut sampled = profile.clone();
    let UnsampledTime {
        cpu_ns,
        shared_ns,
        left_ns,
    } = sampled.share_out_unsampled();
    if shared_ns > 0 {
        limits.push(format!(
            "{:.0} % of the CPU time lies between two samples, where threads ran for less than a \
             period: the samples of each thread stand for it. An on-CPU result at a higher rate \
             shows more.",
            percent(shared_ns, cpu_ns)
        ));
    }
    if left_ns > 0 {
        limits.push(format!(
            "{:.0} % of the CPU time is that of threads without a sample and is not in the matrix.",
            percent(left_ns, cpu_ns)
        ));
        sampled.drop_unsampled();
    }
    Cow::Owned(sampled)
}

/// Diagnoses what the evidence shows. Blocks for as long as it takes to go over the samples a few times.
pub fn diagnose(rules: &DiagnosisRules, idle: &IdleRules, whole: &DiagnosisInput<'_>) -> Diagnosis {
    let mut limits = whole.limits.clone();
    let cut = Cut::of(whole);
    let input = &cut.input(whole);
    let empty = ProfileBuilder::new(0, 1, Clock::Unknown).finish();
    let on_cpu = input.on_cpu.filter(|profile| has_samples(profile));
    let sampled = sampled_time(on_cpu.unwrap_or(&empty), &mut limits);
    let profile: &Profile = &sampled;
    let sums = CellSums::of(rules, profile);
    let coverage = coverage::coverage(profile, &sums, on_cpu.unwrap_or(&empty));
    let totals = totals::totals(input, &sums, &mut limits);
    let waits = input.off_cpu.filter(|profile| input::has_waits(profile));
    if waits.is_none() {
        limits.push(
            "What threads waited for, and which part causes context switches: waits were not recorded."
                .to_owned(),
        );
    }
    let switches = waits.map(|profile| Switches::of(rules, profile));
    let busy = waits.map(|profile| without_idle(idle, profile));
    let workers = workers::workers(rules, input, on_cpu.map(|_| &sums), busy.as_ref());
    let requests = totals.requests.as_ref().map(|requests| requests.count);
    let network = network::network(input, requests, &mut limits);
    if network.is_none() {
        limits.push(
            "Connections, retransmissions and resets: connections were not watched.".to_owned(),
        );
    }
    match input.event_loop {
        None => limits.push(
            "Stalls of event loops: they were not watched, or not for this part alone.".to_owned(),
        ),
        Some(report) if report.lost > 0 => limits.push(format!(
            "Stalls of event loops: {} threads or stalls are missing.",
            report.lost
        )),
        Some(_) => {}
    }
    let configuration = totals::configuration(input);
    if configuration.is_none() {
        limits.push("What is configured now: no process was asked, or none could be.".to_owned());
    }
    let all = Everything::of(idle, whole);
    let sums_of_all = all.as_ref().map(|all| CellSums::of(rules, &all.sampled));
    let (sampled_of_all, busy_of_all) = match (&all, &sums_of_all) {
        (Some(all), Some(sums)) => (Some((&*all.sampled, sums)), all.busy.as_ref()),
        _ => (on_cpu.map(|_| (profile, &sums)), busy.as_ref()),
    };
    let throttled = totals::throttled_pids(input);
    let recorded = input
        .requests
        .map(|table| Recorded::new(table, sampled_of_all, busy_of_all, input.edges, throttled));
    let (latency, no_latency) = latency::latency(whole, recorded.as_ref(), &mut limits);
    let processes = processes(rules, profile, &sums);
    let other_processes = match (&all, &sums_of_all) {
        (Some(all), Some(sums)) => others(rules, &all.sampled, sums, &whole.pids),
        _ => Vec::new(),
    };
    let sets = sets_of(rules, input);
    let flags = response_flags::flagged(input);
    let facts = Measurements {
        rules,
        on_cpu: on_cpu.map(|_| (profile, &sums)),
        switches: switches.as_ref(),
        workers: &workers,
        network: network.as_ref(),
        event_loop: input.event_loop,
        requests,
        flags: &flags,
        window_ns: input.window_ns(),
    };
    let asked = FindingContext {
        facts: &facts,
        sets: &sets,
        configuration: configuration.as_ref(),
        cpu_us_per_request: totals.cpu_us_per_request,
        coverage: &coverage,
    };
    let findings = asked.findings();
    let good = asked.good(&findings);
    let matrix = sums.matrix(&|id| rules.has_setting(id));
    let not_measured = not_measured(input, &latency, &totals, configuration.as_ref());
    verdict::limits(&coverage, sets.contains("envoy"), &mut limits);
    let verdict = verdict::verdict(&verdict::Summary {
        processes: &processes,
        coverage: &coverage,
        findings: &findings,
        matrix: &matrix,
        threshold_percent: rules.threshold_percent,
        not_measured: &not_measured,
        latency: &latency,
        no_latency: no_latency.as_deref(),
    });
    Diagnosis {
        version: Diagnosis::VERSION,
        verdict,
        latency,
        rules: RulesInForce {
            version: rules::VERSION,
            user_file: rules
                .user_file
                .as_ref()
                .map(|path| path.display().to_string()),
        },
        processes,
        other_processes,
        window: window(input),
        coverage,
        totals,
        matrix,
        workers,
        event_loop: input.event_loop.cloned(),
        network: network.map(|network| network.report),
        findings,
        good,
        configuration,
        not_measured,
        limits,
    }
}

/// What a diagnosis of some processes needs of all: their latency is not theirs alone.
struct Everything<'a> {
    sampled: Cow<'a, Profile>,
    busy: Option<Profile>,
}

impl<'a> Everything<'a> {
    /// `None`: the diagnosis is about all.
    fn of(idle: &IdleRules, whole: &DiagnosisInput<'a>) -> Option<Self> {
        let on_cpu = whole.on_cpu.filter(|profile| has_samples(profile))?;
        if whole.pids.is_empty() {
            return None;
        }
        let waits = whole.off_cpu.filter(|profile| input::has_waits(profile));
        Some(Self {
            // The limits are those of the processes that the diagnosis is about.
            sampled: sampled_time(on_cpu, &mut Vec::new()),
            busy: waits.map(|profile| without_idle(idle, profile)),
        })
    }
}

fn without_idle(idle: &IdleRules, profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    idle.apply(&mut profile, IdleMode::Hide);
    profile
}

fn others(
    rules: &DiagnosisRules,
    all: &Profile,
    sums: &CellSums<'_>,
    pids: &[u32],
) -> Vec<DiagnosedProcess> {
    let mut found = processes(rules, all, sums);
    found.retain(|process| !pids.contains(&process.pid));
    found
}

fn not_measured(
    input: &DiagnosisInput<'_>,
    latency: &[Latency],
    totals: &Totals,
    configuration: Option<&Configuration>,
) -> Vec<Measurement> {
    let is_missing = |part: &Measurement| match part {
        Measurement::Latency => latency.is_empty(),
        Measurement::Waits => input.off_cpu.is_none(),
        Measurement::Connections => input.edges.is_none(),
        Measurement::EventLoops => input.event_loop.is_none(),
        Measurement::CpuTime => totals.cpu_ns.is_none(),
        Measurement::Requests => totals.requests.is_none(),
        Measurement::Configuration => configuration.is_none(),
    };
    Measurement::ALL.into_iter().filter(is_missing).collect()
}

fn has_samples(profile: &Profile) -> bool {
    profile
        .samples
        .iter()
        .any(|row| row.state == ThreadState::OnCpu)
}

/// Processes with samples on a CPU, most time first.
fn processes(
    rules: &DiagnosisRules,
    profile: &Profile,
    sums: &CellSums<'_>,
) -> Vec<DiagnosedProcess> {
    let mut found: BTreeMap<ProcessKey, (u32, u64, u64)> = BTreeMap::new();
    for row in &profile.samples {
        if row.state != ThreadState::OnCpu {
            continue;
        }
        let id = profile.threads[row.thread as usize].process;
        let key = profile.processes[id as usize].key;
        let sum = found.entry(key).or_insert((id, 0, 0));
        sum.1 = sum.1.saturating_add(row.count);
        sum.2 = sum.2.saturating_add(row.total_ns);
    }
    let mut processes: Vec<DiagnosedProcess> = found
        .into_iter()
        .map(|(key, (id, samples, ns))| {
            let process = &profile.processes[id as usize];
            let (comm, exe) = (profile.text(process.comm), profile.text(process.exe));
            let container = profile.text(process.container);
            DiagnosedProcess {
                pid: key.pid,
                start_ticks: key.start_ticks,
                comm: printable(comm).into_owned(),
                exe: printable(exe).into_owned(),
                container: (!container.is_empty()).then(|| printable(container).into_owned()),
                rule_set: rules.sets[rules.set_of(comm, exe)].id.get_ref().clone(),
                samples,
                share_percent: percent(ns, sums.ns),
            }
        })
        .collect();
    processes.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent));
    processes
}

/// Ids of the sets that processes with samples or waits belong to.
fn sets_of<'a>(rules: &'a DiagnosisRules, input: &DiagnosisInput<'_>) -> BTreeSet<&'a str> {
    let profiles = [input.on_cpu, input.off_cpu].into_iter().flatten();
    let mut sets = BTreeSet::new();
    for profile in profiles {
        for process in input::sampled_processes(profile) {
            let set = rules.set_of(profile.text(process.comm), profile.text(process.exe));
            sets.insert(rules.sets[set].id.get_ref().as_str());
        }
    }
    sets
}

fn window(input: &DiagnosisInput<'_>) -> DiagnosedWindow {
    let Some(profile) = input.on_cpu.or(input.off_cpu) else {
        return DiagnosedWindow {
            from_ns: 0,
            to_ns: 0,
            duration_s: 0.0,
        };
    };
    let length = profile.to_ns.saturating_sub(profile.from_ns);
    DiagnosedWindow {
        from_ns: profile.origin_ns.saturating_add(profile.from_ns),
        to_ns: profile.origin_ns.saturating_add(profile.to_ns),
        duration_s: float(length) / 1e9,
    }
}
