//! What changed between two diagnoses.
//!
//! Shares are compared twice, and the more doubtful answer counts: by the intervals of both diagnoses,
//! which come from blocks of time and so know about bursts, and by the counts of samples
//! ([`significance::proportions`]). The p-values of all rows are adjusted together, and a change below
//! [`SMALLEST_POINTS`] is never called significant.
//!
//! Two runs of the same differ by more than the variation inside each of them: other programs, CPU
//! frequency, caches. Totals, which nothing inside of a run can correct for that, have
//! [`BETWEEN_RUNS`] in their intervals.

use std::collections::{BTreeMap, BTreeSet};

use profiler_model::{
    Pair,
    comparison::{
        CheckupComparison, ComparedFindings, ComparedLatency, ComparedRow, ComparedTotal,
        ComparedTotals, FindingName, LatencyNumbers,
    },
    diagnosis::{Diagnosis, Estimate, Matrix, Measurement},
    float,
    latency::Latency,
    printable::printable_within,
    short_time,
    significance::{self, ALPHA},
};

use super::comparable::{NotComparable, SideProcess, check_sides, have_samples};
use crate::latency::NAME_COLUMNS;

/// Half of a 95 % interval in standard errors.
const HALF: f64 = 1.959_964;
/// Smallest change of a share, in points of percent.
const SMALLEST_POINTS: f64 = 1.0;
/// Standard deviation of a total between runs of the same, as part of it: eleven pairs of runs of one
/// Envoy at one load each, on a virtual machine with two CPUs, differed by 6.5 % (root mean square).
const BETWEEN_RUNS: f64 = 0.065 / std::f64::consts::SQRT_2;

/// What is compared of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub samples: u64,
    pub cpu_cores: Option<f64>,
    pub cpu_us_per_request: Option<Estimate>,
    pub rows: Vec<SideRow>,
    pub findings: Vec<FindingName>,
    pub processes: Vec<SideProcess>,
    /// Of the same target, and not compared.
    pub other_processes: Vec<SideProcess>,
    /// Of the process with the most requests, and its name.
    pub latency: Option<(String, LatencyNumbers)>,
    /// `None`: a document of an earlier version, which does not say so.
    pub not_measured: Option<Vec<Measurement>>,
}

/// The samples of one feature.
#[derive(Clone, Debug, PartialEq)]
pub struct SideRow {
    pub feature: String,
    pub title: String,
    pub samples: u64,
    /// Percent of all samples' time.
    pub share: Estimate,
}

impl Side {
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let Matrix { features, rows, .. } = &diagnosis.matrix;
        let rows = rows.iter().map(|row| {
            let info = features.iter().find(|feature| feature.id == row.feature);
            SideRow {
                feature: row.feature.clone(),
                title: info.map_or_else(|| row.feature.clone(), |info| info.title.clone()),
                samples: row.samples,
                share: row.share(),
            }
        });
        let findings = diagnosis.findings.iter().map(|finding| FindingName {
            id: finding.id.clone(),
            title: finding.title.clone(),
        });
        Self {
            samples: diagnosis.coverage.samples,
            cpu_cores: diagnosis.totals.cpu_cores,
            cpu_us_per_request: diagnosis.totals.cpu_us_per_request,
            rows: rows.collect(),
            findings: findings.collect(),
            processes: diagnosis.processes.iter().map(SideProcess::of).collect(),
            other_processes: diagnosis
                .other_processes
                .iter()
                .map(SideProcess::of)
                .collect(),
            latency: Self::latency_of(&diagnosis.latency),
            not_measured: Some(diagnosis.not_measured.clone()),
        }
    }

    /// The first: of the process with the most requests.
    pub fn latency_of(latency: &[Latency]) -> Option<(String, LatencyNumbers)> {
        let first = latency.first()?;
        Some((first.process.name.clone(), LatencyNumbers::of(first)))
    }

    /// A feature's row; one without samples has a share of zero, which is not known exactly either.
    fn row(&self, feature: &str) -> (u64, Estimate) {
        let found = self.rows.iter().find(|row| row.feature == feature);
        found.map_or_else(
            || {
                let square = HALF * HALF;
                let none = Estimate {
                    value: 0.0,
                    low: 0.0,
                    // Wilson's interval of none among all.
                    high: 100.0 * square / (float(self.samples) + square),
                };
                (0, none)
            },
            |row| (row.samples, row.share),
        )
    }
}

/// Compares an earlier diagnosis with a later one, where both are about the same. With too few samples how long
/// requests take is compared alone, where it is known.
pub fn compare(a: &Side, b: &Side) -> Result<CheckupComparison, NotComparable> {
    let latency = latency(a, b);
    let not_compared = match have_samples(a, b) {
        Err(few) if latency.is_none() => return Err(few),
        enough => enough.err().map(|few| few.to_string()),
    };
    check_sides(a, b)?;
    Ok(changes(a, b, latency, not_compared))
}

fn changes(
    a: &Side,
    b: &Side,
    latency: Option<ComparedLatency>,
    not_compared: Option<String>,
) -> CheckupComparison {
    let totals = ComparedTotals {
        cpu_us_per_request: a
            .cpu_us_per_request
            .zip(b.cpu_us_per_request)
            .and_then(|(a, b)| total(a, b)),
        cpu_cores: a
            .cpu_cores
            .zip(b.cpu_cores)
            .and_then(|(of_a, of_b)| total(sampled(of_a, a.samples), sampled(of_b, b.samples))),
    };
    let (rows, findings) = match not_compared {
        None => (rows(a, b), findings(a, b)),
        Some(_) => Default::default(),
    };
    let verdict = verdict(
        latency.as_ref(),
        &totals,
        &rows,
        &findings,
        not_compared.as_deref(),
    );
    CheckupComparison {
        verdict,
        latency,
        not_compared,
        programs: programs(&a.processes, &b.processes),
        other_programs: programs(&a.other_processes, &b.other_processes),
        totals,
        rows,
        findings,
    }
}

fn latency(a: &Side, b: &Side) -> Option<ComparedLatency> {
    let ((name_a, a), (name_b, b)) = a.latency.as_ref().zip(b.latency.as_ref())?;
    (name_a == name_b).then(|| ComparedLatency {
        process: name_b.clone(),
        a: *a,
        b: *b,
    })
}

fn programs(a: &[SideProcess], b: &[SideProcess]) -> Vec<String> {
    let names = a.iter().chain(b).map(|process| process.program.clone());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A number that is known exactly for its window, with the doubt that this many samples would have about
/// another window of the same work.
fn sampled(value: f64, samples: u64) -> Estimate {
    let half = HALF * value / float(samples.max(1)).sqrt();
    Estimate {
        value,
        low: value - half,
        high: value + half,
    }
}

/// `None` where the earlier number is zero: it has no percentage.
fn total(a: Estimate, b: Estimate) -> Option<ComparedTotal> {
    if a.value <= 0.0 {
        return None;
    }
    let ratio = b.value / a.value;
    // Errors of a quotient, to first order.
    let relative = |one: Estimate| {
        let inside = error(one) / one.value.max(f64::MIN_POSITIVE);
        inside.hypot(BETWEEN_RUNS)
    };
    let half = HALF * ratio * relative(a).hypot(relative(b)) * 100.0;
    let change_percent = (ratio - 1.0) * 100.0;
    let (low, high) = (change_percent - half, change_percent + half);
    Some(ComparedTotal {
        a: a.value,
        b: b.value,
        change_percent,
        low,
        high,
        significant: low > 0.0 || high < 0.0,
    })
}

/// Standard error of a number with its 95 % interval; of an interval that is longer to one side, that of
/// the longer side.
fn error(estimate: Estimate) -> f64 {
    let Estimate { value, low, high } = estimate;
    (value - low).max(high - value).max(0.0) / HALF
}

fn rows(a: &Side, b: &Side) -> Vec<ComparedRow> {
    let all = a.rows.iter().chain(&b.rows);
    let mut features: Vec<&str> = all.map(|row| row.feature.as_str()).collect();
    features.sort_unstable();
    features.dedup();
    let us = |side: &Side, percent: f64| {
        let whole = side.cpu_us_per_request?;
        Some(whole.value * percent / 100.0)
    };
    let titles: BTreeMap<&str, &str> = [a, b]
        .into_iter()
        .flat_map(|side| &side.rows)
        .map(|row| (row.feature.as_str(), row.title.as_str()))
        .collect();
    let mut rows: Vec<ComparedRow> = features
        .into_iter()
        .map(|feature| {
            let (of_a, of_b) = (a.row(feature), b.row(feature));
            let change = of_b.1.value - of_a.1.value;
            let deviation = error(of_a.1).hypot(error(of_b.1));
            let counts = Pair {
                a: of_a.0,
                b: of_b.0,
            };
            let all = Pair {
                a: a.samples,
                b: b.samples,
            };
            let by_counts = significance::proportions(counts, all);
            let p = by_counts.map(|test| {
                let by_blocks = significance::Test::of(change / deviation.max(f64::MIN_POSITIVE));
                test.p.max(by_blocks.p)
            });
            ComparedRow {
                feature: feature.to_owned(),
                title: titles.get(feature).copied().unwrap_or(feature).to_owned(),
                a_percent: of_a.1.value,
                b_percent: of_b.1.value,
                a_us: us(a, of_a.1.value),
                b_us: us(b, of_b.1.value),
                change,
                low: change - HALF * deviation,
                high: change + HALF * deviation,
                p,
                significant: false,
            }
        })
        .collect();
    let tested: Vec<f64> = rows.iter().filter_map(|row| row.p).collect();
    let adjusted = significance::adjusted(&tested);
    for (row, p) in rows.iter_mut().filter(|row| row.p.is_some()).zip(adjusted) {
        row.p = Some(p);
        row.significant = p < ALPHA && row.change.abs() >= SMALLEST_POINTS;
    }
    rows.sort_by(|one, other| {
        let size = |row: &ComparedRow| row.change.abs();
        size(other)
            .total_cmp(&size(one))
            .then_with(|| one.feature.cmp(&other.feature))
    });
    rows
}

fn findings(a: &Side, b: &Side) -> ComparedFindings {
    // By title too: each HTTP filter has a finding of the same id.
    let has = |side: &Side, finding: &FindingName| side.findings.contains(finding);
    let of = |side: &Side, wanted: &dyn Fn(&FindingName) -> bool| -> Vec<FindingName> {
        let found = side.findings.iter().filter(|finding| wanted(finding));
        found.cloned().collect()
    };
    ComparedFindings {
        gone: of(a, &|finding| !has(b, finding)),
        new: of(b, &|finding| !has(a, finding)),
        still: of(b, &|finding| has(a, finding)),
    }
}

/// What changed most, in one sentence.
fn verdict(
    latency: Option<&ComparedLatency>,
    totals: &ComparedTotals,
    rows: &[ComparedRow],
    findings: &ComparedFindings,
    not_compared: Option<&str>,
) -> String {
    let mut parts = Vec::new();
    if let Some(ComparedLatency { process, a, b }) = latency {
        parts.push(format!(
            "Requests to {} take {} on average (p95 {}), before {} (p95 {})",
            printable_within(process, NAME_COLUMNS),
            short_time(b.mean_ns),
            short_time(b.p95_ns),
            short_time(a.mean_ns),
            short_time(a.p95_ns)
        ));
    }
    match (totals.cpu_us_per_request, totals.cpu_cores) {
        (Some(total), _) => parts.push(of_total("CPU time for each request", "us", &total)),
        (None, Some(total)) => parts.push(of_total("CPU use", "cores", &total)),
        (None, None) => {}
    }
    let largest = rows.iter().find(|row| row.significant);
    parts.push(match (largest, not_compared) {
        (_, Some(why)) => why.to_owned(),
        (None, None) => "no part of it changed significantly".to_owned(),
        (Some(row), None) => {
            let title = &row.title;
            let (a, b) = (row.a_percent, row.b_percent);
            let direction = if row.change < 0.0 { "fell" } else { "rose" };
            format!("{title} {direction} from {a:.1} % to {b:.1} %")
        }
    });
    let ComparedFindings {
        gone,
        new,
        still: _,
    } = findings;
    for (list, word) in [(gone, "gone"), (new, "new")] {
        if let Some(first) = list.first() {
            let more = match list.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            parts.push(format!("{word}: {}{more}", first.title));
        }
    }
    parts.join("; ") + "."
}

fn of_total(what: &str, unit: &str, total: &ComparedTotal) -> String {
    let ComparedTotal {
        a,
        b,
        change_percent,
        low,
        high,
        significant,
    } = total;
    // What is small needs digits.
    let digits = if a.abs().max(b.abs()) < 10.0 { 3 } else { 1 };
    let numbers = format!("({a:.digits$} to {b:.digits$} {unit}, {low:+.1} to {high:+.1} %)");
    if *significant {
        let direction = if *change_percent < 0.0 {
            "fell"
        } else {
            "rose"
        };
        format!(
            "{what} {direction} by {:.1} % {numbers}",
            change_percent.abs()
        )
    } else {
        format!("{what} did not change significantly {numbers}")
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
