//! Which part of a process costs what, with evidence and the setting that changes it.
//!
//! Rules are data (`rules/diagnosis.toml`, and the user's file). They are applied when a result is read,
//! to names, so that results of any age profit from better rules and from symbols that came later.
//!
//! ```text
//! rules (file) -> attribute (stack -> cell) -> matrix (sums) -> findings, verdict
//!                 evidence -> coverage, totals, workers, network, measures --^
//! ```

mod file;
mod source;
mod rules;
mod lookup;
mod listing;
mod proof;

mod fit;
mod walk;
mod attribute;
mod cell;
mod interval;
mod matrix;

mod evidence;
mod coverage;
mod totals;
mod workers;
mod network;
mod loops;
mod measures;
mod findings;
mod verdict;

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

pub use evidence::Evidence;
pub use interval::student_quantile;
pub use loops::event_loops;
pub use proof::KnownNames;
pub use rules::{DiagnosisRules, DiagnosisRulesError};

use findings::Asked;
use matrix::CellSums;
use measures::{Facts, Switches};
use profiler_model::{
    Clock, IdleMode, ProcessKey, Profile, ProfileBuilder, ThreadState, UnsampledTime,
    diagnosis::{
        Configuration, DiagnosedProcess, DiagnosedWindow, Diagnosis, Measurement, RulesInForce,
        Totals,
    },
    printable::printable,
};

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
            coverage::percent(shared_ns, cpu_ns)
        ));
    }
    if left_ns > 0 {
        limits.push(format!(
            "{:.0} % of the CPU time is that of threads without a sample and is not in the matrix.",
            coverage::percent(left_ns, cpu_ns)
        ));
        sampled.drop_unsampled();
    }
    Cow::Owned(sampled)
}

/// Diagnoses what the evidence shows. Blocks for as long as it takes to go over the samples a few times.
pub fn diagnose(rules: &DiagnosisRules, idle: &IdleRules, evidence: &Evidence<'_>) -> Diagnosis {
    let mut limits = evidence.limits.clone();
    let empty = ProfileBuilder::new(0, 1, Clock::Unknown).finish();
    let on_cpu = evidence.on_cpu.filter(|profile| has_samples(profile));
    let sampled = sampled_time(on_cpu.unwrap_or(&empty), &mut limits);
    let profile: &Profile = &sampled;
    let sums = CellSums::of(rules, profile);
    let coverage = coverage::coverage(profile, &sums, on_cpu.unwrap_or(&empty));
    let totals = totals::totals(evidence, &sums, &mut limits);
    let waits = evidence
        .off_cpu
        .filter(|profile| evidence::has_waits(profile));
    if waits.is_none() {
        limits.push(
            "What threads waited for, and which part causes context switches: waits were not recorded."
                .to_owned(),
        );
    }
    let switches = waits.map(|profile| Switches::of(rules, profile));
    let busy = waits.map(|profile| {
        let mut profile = profile.clone();
        idle.apply(&mut profile, IdleMode::Hide);
        profile
    });
    let workers = workers::workers(rules, evidence, on_cpu.map(|_| &sums), busy.as_ref());
    let requests = totals.requests.as_ref().map(|requests| requests.count);
    let network = network::network(evidence, requests, &mut limits);
    if network.is_none() {
        limits.push(
            "Connections, retransmissions and resets: connections were not watched.".to_owned(),
        );
    }
    match evidence.event_loop {
        None => limits.push(
            "Stalls of event loops: they were not watched, or not for this part alone.".to_owned(),
        ),
        Some(report) if report.lost > 0 => limits.push(format!(
            "Stalls of event loops: {} threads or stalls are missing.",
            report.lost
        )),
        Some(_) => {}
    }
    let configuration = totals::configuration(evidence);
    if configuration.is_none() {
        limits.push("What is configured now: no process was asked, or none could be.".to_owned());
    }
    let processes = processes(rules, profile, &sums);
    let sets = sets_of(rules, evidence);
    let facts = Facts {
        rules,
        on_cpu: on_cpu.map(|_| (profile, &sums)),
        switches: switches.as_ref(),
        workers: &workers,
        network: network.as_ref(),
        event_loop: evidence.event_loop,
        requests,
        window_ns: evidence.window_ns(),
    };
    let asked = Asked {
        facts: &facts,
        sets: &sets,
        configuration: configuration.as_ref(),
        cpu_us_per_request: totals.cpu_us_per_request,
        coverage: &coverage,
    };
    let findings = asked.findings();
    let good = asked.good(&findings);
    let matrix = sums.matrix(&|id| rules.has_setting(id));
    let not_measured = not_measured(evidence, &totals, configuration.as_ref());
    verdict::limits(&coverage, sets.contains("envoy"), &mut limits);
    let verdict = verdict::verdict(&verdict::Summary {
        processes: &processes,
        coverage: &coverage,
        findings: &findings,
        matrix: &matrix,
        threshold_percent: rules.threshold_percent,
        not_measured: &not_measured,
    });
    Diagnosis {
        version: Diagnosis::VERSION,
        verdict,
        rules: RulesInForce {
            version: rules::VERSION,
            user_file: rules
                .user_file
                .as_ref()
                .map(|path| path.display().to_string()),
        },
        processes,
        window: window(evidence),
        coverage,
        totals,
        matrix,
        workers,
        event_loop: evidence.event_loop.cloned(),
        network: network.map(|network| network.report),
        findings,
        good,
        configuration,
        not_measured,
        limits,
    }
}

fn not_measured(
    evidence: &Evidence<'_>,
    totals: &Totals,
    configuration: Option<&Configuration>,
) -> Vec<Measurement> {
    let is_missing = |part: &Measurement| match part {
        Measurement::Latency => true,
        Measurement::Waits => evidence.off_cpu.is_none(),
        Measurement::Connections => evidence.edges.is_none(),
        Measurement::EventLoops => evidence.event_loop.is_none(),
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
                share_percent: coverage::percent(ns, sums.ns),
            }
        })
        .collect();
    processes.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent));
    processes
}

/// Ids of the sets that processes with samples or waits belong to.
fn sets_of<'a>(rules: &'a DiagnosisRules, evidence: &Evidence<'_>) -> BTreeSet<&'a str> {
    let profiles = [evidence.on_cpu, evidence.off_cpu].into_iter().flatten();
    let mut sets = BTreeSet::new();
    for profile in profiles {
        let rows = profile.samples.iter();
        let used: BTreeSet<u32> = rows
            .map(|row| profile.threads[row.thread as usize].process)
            .collect();
        for id in used {
            let process = &profile.processes[id as usize];
            let set = rules.set_of(profile.text(process.comm), profile.text(process.exe));
            sets.insert(rules.sets[set].id.get_ref().as_str());
        }
    }
    sets
}

fn window(evidence: &Evidence<'_>) -> DiagnosedWindow {
    let Some(profile) = evidence.on_cpu.or(evidence.off_cpu) else {
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
        duration_s: interval::float(length) / 1e9,
    }
}
