//! One row: what its processes used, its requests, its segments.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use profiler_host::{
    envoy_admin::{HttpCounts, HttpTraffic, TimeBucket, is_envoy},
    sockets::SegmentCounts,
};
use profiler_model::{
    ProcessKey, float,
    overview::{
        OverviewCpu, OverviewLimit, OverviewRequests, OverviewRow, OverviewSegments, OverviewTime,
    },
};

use super::{
    groups::Group,
    processes::{QuotaUse, Used},
};
use crate::envoys::Answers;

/// Rates that are older are none any more.
const STALE: Duration = Duration::from_secs(90);

/// What was read of all rows.
#[derive(Debug)]
pub(super) struct Readings {
    /// Between the two readings; `None` while there is one only.
    pub(super) window: Option<Duration>,
    pub(super) used: HashMap<ProcessKey, Used>,
    pub(super) quotas: HashMap<String, QuotaUse>,
    pub(super) envoys: BTreeMap<ProcessKey, Answers<HttpTraffic>>,
    pub(super) asks_envoys: bool,
}

/// Requests of a row.
#[derive(Default)]
struct Requests {
    answered: Option<OverviewRequests>,
    sent: Option<OverviewRequests>,
    unknown: Option<String>,
}

/// The row without troubles and history.
pub(super) fn row(
    group: &Group,
    readings: &Readings,
    segments: Option<SegmentCounts>,
) -> OverviewRow {
    let window_s = readings.window.map(|window| window.as_secs_f64());
    let Requests {
        answered,
        sent,
        unknown,
    } = requests(group, readings);
    OverviewRow {
        id: group.id.clone(),
        kind: group.kind,
        title: group.title.clone(),
        pod: group.pod.clone(),
        workload: group.workload.clone(),
        network_namespace: group.namespace,
        processes: group.members.len() as u64,
        pids: group.pids.clone(),
        window_s,
        cpu: window_s.map_or_else(OverviewCpu::default, |window_s| {
            cpu(group, readings, window_s)
        }),
        answered,
        sent,
        requests_unknown: unknown,
        segments: segments
            .zip(window_s)
            .map(|(counts, window_s)| OverviewSegments {
                sent: counts.sent,
                retransmitted: counts.retransmitted,
                retransmitted_per_s: float(counts.retransmitted) / window_s,
            }),
        troubles: Vec::new(),
        history: Vec::new(),
    }
}

/// What a row has of a quota.
#[derive(Default)]
struct Share {
    cores: f64,
    processes: usize,
    cpu_ns: u64,
}

impl Share {
    /// Whether the quota is the row's own, or the row has half of what is used of it.
    fn is_of_row(&self, quota: &QuotaUse) -> bool {
        self.processes == quota.processes || (self.cpu_ns > 0 && 2 * self.cpu_ns >= quota.cpu_ns)
    }
}

fn cpu(group: &Group, readings: &Readings, window_s: f64) -> OverviewCpu {
    let used = group
        .members
        .iter()
        .filter_map(|process| readings.used.get(&process.key));
    let (mut cpu_ns, mut waiting) = (0_u64, None);
    let mut limits: BTreeMap<&str, Share> = BTreeMap::new();
    for of_process in used {
        cpu_ns = cpu_ns.saturating_add(of_process.cpu_ns);
        if let Some(more) = of_process.waiting {
            waiting = Some(waiting.unwrap_or(0.0) + more);
        }
        for limit in &of_process.limits {
            let share = limits.entry(&limit.path).or_default();
            share.cores = float(limit.quota.quota_us) / float(limit.quota.period_us.max(1));
            share.processes += 1;
            share.cpu_ns = share.cpu_ns.saturating_add(of_process.cpu_ns);
        }
    }
    let per_s = |ns: u64| float(ns) / 1e9 / window_s;
    let limits = limits.into_iter().filter_map(|(path, share)| {
        let quota = readings.quotas.get(path).copied().unwrap_or_default();
        if !share.is_of_row(&quota) {
            return None;
        }
        let by_kernel = quota.counts.and_then(|counts| counts.usage_ns);
        Some(OverviewLimit {
            cores: share.cores,
            used_cores: per_s(by_kernel.unwrap_or(quota.cpu_ns)),
            periods: quota.counts.map(|counts| counts.periods),
            throttled_periods: quota.counts.map(|counts| counts.throttled),
        })
    });
    // The one that stops it most, then the one that is nearest.
    let tightest = limits.max_by(|a, b| {
        let throttled = |limit: &OverviewLimit| {
            float(limit.throttled_periods.unwrap_or(0)) / float(limit.periods.unwrap_or(0).max(1))
        };
        let share = |limit: &OverviewLimit| limit.used_cores / limit.cores.max(f64::EPSILON);
        throttled(a)
            .total_cmp(&throttled(b))
            .then(share(a).total_cmp(&share(b)))
    });
    OverviewCpu {
        cores: Some(per_s(cpu_ns)),
        waiting,
        limit: tightest,
    }
}

fn requests(group: &Group, readings: &Readings) -> Requests {
    let unknown = |why: String| Requests {
        unknown: Some(why),
        ..Requests::default()
    };
    let envoys: Vec<ProcessKey> = group
        .members
        .iter()
        .filter(|process| is_envoy(process))
        .map(|process| process.key)
        .collect();
    if envoys.is_empty() {
        return unknown("no Envoy in it counts them; a check-up measures them".to_owned());
    }
    if !readings.asks_envoys {
        return unknown("Envoys are not asked (envoy_admin is off)".to_owned());
    }
    let mut sums = Sums::default();
    let mut reasons = Vec::new();
    for key in &envoys {
        let known = match readings.envoys.get(key) {
            None => Err("its Envoy is not asked: there are too many".to_owned()),
            Some(Answers {
                error: Some(error), ..
            }) => Err(format!("its Envoy could not be asked: {error}")),
            Some(answers) => sums.add(answers, group.has_app),
        };
        reasons.extend(known.err());
    }
    let Sums { answered, sent } = sums;
    let missing = reasons.len();
    let why = reasons.into_iter().next();
    Requests {
        unknown: match (answered.is_none() && sent.is_none(), envoys.len()) {
            (true, _) | (_, 1) => why,
            (false, all) => why.map(|why| format!("without {missing} of {all} Envoys: {why}")),
        },
        answered: answered.map(|sum| sum.requests()),
        sent: sent.map(|sum| sum.requests()),
    }
}

/// Requests of several Envoys.
#[derive(Default)]
struct Sums {
    answered: Option<Sum>,
    sent: Option<Sum>,
}

#[derive(Default)]
struct Sum {
    window_s: f64,
    counts: HttpCounts,
    per_s: f64,
}

impl Sums {
    /// What an Envoy counted between its last two answers; `Err` is why nothing is known.
    fn add(&mut self, answers: &Answers<HttpTraffic>, has_app: bool) -> Result<(), String> {
        let (Some(before), Some(newest)) = (&answers.before, &answers.newest) else {
            return Err("its Envoy has been asked once so far".to_owned());
        };
        if newest.at.elapsed() > STALE {
            return Err("its Envoy has not answered for more than a minute".to_owned());
        }
        let window_s = newest.at.duration_since(before.at).as_secs_f64();
        let (earlier, now) = (&before.counted, &newest.counted);
        let directions = [
            (&earlier.inbound, &now.inbound, true),
            (&earlier.outbound, &now.outbound, !has_app),
            (&earlier.other, &now.other, true),
        ];
        let mut has_counted = false;
        for (earlier, now, is_answered) in directions {
            let Some(now) = now else { continue };
            has_counted = true;
            // A manager that was not used before has no counters.
            let nothing = HttpCounts::default();
            let Some(more) = now.since(earlier.as_ref().unwrap_or(&nothing)) else {
                return Err("its Envoy has begun to count anew".to_owned());
            };
            let sum = if is_answered {
                &mut self.answered
            } else {
                &mut self.sent
            };
            let sum = sum.get_or_insert_default();
            sum.window_s = sum.window_s.max(window_s);
            sum.per_s += float(more.completed) / window_s.max(f64::EPSILON);
            sum.counts.add(&more);
        }
        if has_counted {
            Ok(())
        } else {
            Err("its Envoy counts no HTTP requests".to_owned())
        }
    }
}

impl Sum {
    fn requests(&self) -> OverviewRequests {
        OverviewRequests {
            window_s: self.window_s,
            count: self.counts.completed,
            per_s: self.per_s,
            errors: self.counts.errors,
            p50: self.counts.percentile(50).map(time),
            p95: self.counts.percentile(95).map(time),
        }
    }
}

fn time(bucket: TimeBucket) -> OverviewTime {
    OverviewTime {
        from_ms: float(bucket.from_us) / 1e3,
        to_ms: float(bucket.to_us) / 1e3,
    }
}
