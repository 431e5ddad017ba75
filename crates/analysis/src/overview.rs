//! Which row of the overview needs attention, why, and in which order rows stand.
//!
//! `docs/overview.md` has the thresholds for people. A share counts by the lower end of its 95 % interval (Wilson's), so
//! that few requests or segments accuse nobody.

use profiler_model::{
    float,
    overview::{
        OverviewLimit, OverviewPoint, OverviewRequests, OverviewRow, OverviewSegments,
        OverviewTime, Trouble, TroubleLevel,
    },
    printable::printable_within,
};

use crate::diagnosis::proportion;

/// Shares from which on something is said, and from which on it is bad.
struct Thresholds {
    warning: f64,
    bad: f64,
}

/// Of responses that are 5xx.
const ERRORS: Thresholds = Thresholds {
    warning: 0.01,
    bad: 0.05,
};
/// Of segments that were retransmitted.
const RETRANSMITTED: Thresholds = Thresholds {
    warning: 0.01,
    bad: 0.05,
};
/// Of periods in which a CPU quota was used up.
const THROTTLED: Thresholds = Thresholds {
    warning: 0.05,
    bad: 0.25,
};
/// Fewer periods are no trouble: that is half a second.
const LEAST_THROTTLED: u64 = 5;
/// Of the time in which threads could run.
const WAITING: Thresholds = Thresholds {
    warning: 0.3,
    bad: 0.5,
};
/// Fewer waiting threads, on average, are no trouble whatever their share, and fewer than that are nothing bad.
const FEW_WAITING: f64 = 0.25;
const MANY_WAITING: f64 = 1.0;
/// Of a CPU quota, where nothing was stopped by it yet.
const NEAR_LIMIT: f64 = 0.9;
/// p95 is held against its median over earlier readings: so many times, and so many milliseconds more.
const SLOWER_TIMES: f64 = 2.0;
const SLOWER_MS: f64 = 10.0;
/// Earlier readings that this takes, and the time that they must span.
const LEAST_HISTORY: usize = 10;
const LEAST_HISTORY_NS: u64 = 100_000_000_000;
/// Requests from which on p95 is compared.
const LEAST_REQUESTS: u64 = 20;
/// Fewer cores keep nobody waiting.
const LEAST_BUSY: f64 = 0.1;
/// Columns of the title of the busiest row.
const TITLE_COLUMNS: usize = 60;

/// The row that uses most CPU, of the same reading.
#[derive(Debug)]
pub struct Busiest {
    id: String,
    title: String,
    cores: f64,
}

/// `None` where no row uses enough to keep others waiting.
pub fn busiest(rows: &[OverviewRow]) -> Option<Busiest> {
    let known = rows
        .iter()
        .filter_map(|row| Some((row, row.cpu.cores.filter(|cores| *cores >= LEAST_BUSY)?)));
    let (row, cores) = known.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(Busiest {
        id: row.id.clone(),
        title: printable_within(&row.title, TITLE_COLUMNS),
        cores,
    })
}

/// What needs attention on a row, the worst first. The row's history is that before this reading.
pub fn troubles(row: &OverviewRow, busiest: Option<&Busiest>) -> Vec<Trouble> {
    let mut found = Vec::new();
    if let Some(answered) = &row.answered {
        found.extend(errors(answered, "of its responses are errors (5xx)"));
        found.extend(slower(answered, &row.history));
    }
    if let Some(sent) = &row.sent {
        let failing = errors(sent, "of the responses that it gets are errors (5xx)");
        found.extend(failing.map(|trouble| Trouble {
            level: TroubleLevel::Elsewhere,
            ..trouble
        }));
    }
    found.extend(row.cpu.limit.as_ref().and_then(limited));
    found.extend(waiting(row, busiest));
    found.extend(row.segments.as_ref().and_then(retransmits));
    found.sort_by_key(|trouble| std::cmp::Reverse(trouble.level));
    found
}

/// Puts rows in the order in which they are to be looked at: by trouble, then the slowest, then the busiest; rows of the
/// node come after pods unless they are in trouble.
pub fn arrange(rows: &mut [OverviewRow]) {
    let level = |row: &OverviewRow| row.troubles.first().map(|trouble| trouble.level);
    let p95 = |row: &OverviewRow| {
        let answered = row.answered.and_then(|requests| requests.p95);
        answered.map_or(-1.0, |time| time.to_ms)
    };
    let busy = |row: &OverviewRow| row.cpu.cores.unwrap_or(-1.0);
    rows.sort_by(|a, b| {
        level(b)
            .cmp(&level(a))
            .then(a.kind.is_of_node().cmp(&b.kind.is_of_node()))
            .then(b.troubles.len().cmp(&a.troubles.len()))
            .then(p95(b).total_cmp(&p95(a)))
            .then(busy(b).total_cmp(&busy(a)))
            .then(a.id.cmp(&b.id))
    });
}

/// All rows in one sentence. Titles are untrusted, and as they are.
pub fn summary(rows: &[OverviewRow]) -> String {
    if rows.is_empty() {
        return "No process can be seen.".to_owned();
    }
    if rows.iter().all(|row| row.window_s.is_none()) {
        return "There is one reading so far: rates follow after the second.".to_owned();
    }
    let pods = rows.iter().filter(|row| !row.kind.is_of_node()).count();
    let of = match (pods, rows.len() - pods) {
        (0, others) => counted(others, "group of processes", "groups of processes"),
        (pods, 0) => counted(pods, "pod", "pods"),
        (pods, others) => format!(
            "{} and {} on the node",
            counted(pods, "pod", "pods"),
            counted(others, "group of processes", "groups of processes")
        ),
    };
    let troubled: Vec<&OverviewRow> = rows.iter().filter(|row| !row.troubles.is_empty()).collect();
    let answering = rows.iter().filter(|row| row.answered.is_some());
    let unknown = rows
        .iter()
        .filter(|row| !row.kind.is_of_node() && row.answered.is_none() && row.sent.is_none())
        .count();
    let blind = match unknown {
        0 => String::new(),
        unknown => format!(
            " Requests of {} are not known.",
            counted(unknown, "pod", "pods")
        ),
    };
    let Some(first) = troubled.first() else {
        let per_s: f64 = answering
            .filter_map(|row| row.answered)
            .map(|requests| requests.per_s)
            .sum();
        let requests = if rows.iter().any(|row| row.answered.is_some()) {
            format!(", {per_s:.0} requests/s answered")
        } else {
            String::new()
        };
        let slowest = slowest(rows).unwrap_or_default();
        return format!("Nothing needs attention: {of}{requests}{slowest}.{blind}");
    };
    let text = first.troubles.first().map_or("", |trouble| &trouble.text);
    let others = match troubled.len() - 1 {
        0 => format!("No other of {of} needs attention."),
        1 => format!("One more of {of} needs attention."),
        others => format!("{others} more of {of} need attention."),
    };
    format!("{}: {text}. {others}{blind}", first.title)
}

/// Who answers slowest. It is no trouble while it always was so.
fn slowest(rows: &[OverviewRow]) -> Option<String> {
    let with_times = rows.iter().filter_map(|row| {
        let answered = row
            .answered
            .filter(|answered| answered.count >= LEAST_REQUESTS)?;
        Some((row, answered.p95?))
    });
    let all: Vec<(&OverviewRow, OverviewTime)> = with_times.collect();
    let (row, p95) = all
        .iter()
        .rev()
        .max_by(|(_, a), (_, b)| a.to_ms.total_cmp(&b.to_ms))?;
    let of = match all.len() {
        1 => String::new(),
        all => format!("slowest of {all} is "),
    };
    Some(format!(
        "; {of}{}, p95 up to {} ms",
        row.title,
        milliseconds(p95.to_ms)
    ))
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The lower end of the 95 % interval of a share.
fn at_least(hits: u64, all: u64) -> f64 {
    proportion(hits, all).low / 100.0
}

impl Thresholds {
    fn level(&self, share: f64) -> Option<TroubleLevel> {
        if share >= self.bad {
            Some(TroubleLevel::Bad)
        } else if share >= self.warning {
            Some(TroubleLevel::Warning)
        } else {
            None
        }
    }
}

fn share(hits: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * float(hits) / float(all.max(1)))
}

fn errors(requests: &OverviewRequests, what: &str) -> Option<Trouble> {
    let OverviewRequests {
        window_s,
        count,
        errors,
        ..
    } = *requests;
    let level = ERRORS.level(at_least(errors, count))?;
    Some(Trouble {
        level,
        text: format!(
            "{} {what}: {errors} of {count} in {window_s:.0} s",
            share(errors, count)
        ),
    })
}

fn slower(requests: &OverviewRequests, history: &[OverviewPoint]) -> Option<Trouble> {
    let now = requests.p95?;
    let known = || history.iter().filter(|point| point.p95_ms.is_some());
    let span_ns = match (known().next(), known().next_back()) {
        (Some(first), Some(last)) => last.at_ns.saturating_sub(first.at_ns),
        _ => 0,
    };
    let mut earlier: Vec<f64> = known().filter_map(|point| point.p95_ms).collect();
    let is_enough = earlier.len() >= LEAST_HISTORY && span_ns >= LEAST_HISTORY_NS;
    if !is_enough || requests.count < LEAST_REQUESTS {
        return None;
    }
    earlier.sort_by(f64::total_cmp);
    let before = earlier[earlier.len() / 2];
    // By the ends that are nearest to each other.
    let is_slower = now.from_ms >= SLOWER_TIMES * before && now.from_ms >= before + SLOWER_MS;
    is_slower.then(|| Trouble {
        level: TroubleLevel::Warning,
        text: format!(
            "its responses take longer: p95 is {} ms, and was {} ms over the last minutes",
            milliseconds(now.to_ms),
            milliseconds(before)
        ),
    })
}

fn limited(limit: &OverviewLimit) -> Option<Trouble> {
    let OverviewLimit {
        cores,
        used_cores,
        periods,
        throttled_periods,
    } = *limit;
    let used = format!("{used_cores:.2} of {cores:.2} cores");
    let (periods, throttled) = (periods.unwrap_or(0), throttled_periods.unwrap_or(0));
    let level = THROTTLED.level(at_least(throttled, periods));
    if let Some(level) = level.filter(|_| throttled >= LEAST_THROTTLED) {
        let of = 100.0 * float(throttled) / float(periods);
        return Some(Trouble {
            level,
            text: format!(
                "a CPU limit stops it in {of:.0} % of the periods in which it runs ({used} are used)"
            ),
        });
    }
    (used_cores >= NEAR_LIMIT * cores).then(|| Trouble {
        level: TroubleLevel::Warning,
        text: format!("it is near a CPU limit: {used} are used"),
    })
}

fn waiting(row: &OverviewRow, busiest: Option<&Busiest>) -> Option<Trouble> {
    let (waiting, cores) = (row.cpu.waiting?, row.cpu.cores?);
    if waiting < FEW_WAITING {
        return None;
    }
    let share = waiting / (waiting + cores);
    let level = WAITING.level(share)?;
    // Work of the node that waits is what its priority is for.
    let level = if row.kind.is_of_node() || waiting < MANY_WAITING {
        TroubleLevel::Warning
    } else {
        level
    };
    Some(Trouble {
        level,
        text: format!(
            "its threads wait for a CPU {:.0} % of the time that they are runnable ({waiting:.2} threads on average){}",
            100.0 * share,
            busiest.map_or_else(String::new, |busiest| most_cpu(row, busiest))
        ),
    })
}

/// Whose use of the machine a wait may be due to. Nothing where a limit of its own is in the way.
fn most_cpu(row: &OverviewRow, busiest: &Busiest) -> String {
    let Busiest { id, title, cores } = busiest;
    if row.cpu.limit.as_ref().and_then(limited).is_some() {
        String::new()
    } else if *id == row.id {
        format!("; nothing on this machine uses more CPU: {cores:.2} cores")
    } else {
        format!("; most CPU on this machine: {title}, {cores:.2} cores")
    }
}

fn retransmits(segments: &OverviewSegments) -> Option<Trouble> {
    let OverviewSegments {
        sent,
        retransmitted,
        ..
    } = *segments;
    let all = sent.saturating_add(retransmitted);
    let level = RETRANSMITTED.level(at_least(retransmitted, all))?;
    Some(Trouble {
        level,
        text: format!(
            "{} of its TCP segments are retransmitted: {retransmitted} of {all}",
            share(retransmitted, all)
        ),
    })
}

/// Whole milliseconds, as they are counted.
fn milliseconds(ms: f64) -> String {
    format!("{ms:.0}")
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
