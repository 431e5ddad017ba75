//! What findings are measured by beside samples on the CPU, each in percent.

use std::{collections::BTreeMap, fmt::Write as _};

use profiler_model::{
    Clock, FrameId, Profile, SampleRow, ThreadState,
    diagnosis::{
        CellChoice, Confidence, Estimate, EventLoopReport, EvidenceFrame, LoopStall, LoopThread,
        ThreadRole, Workers,
    },
    percent,
    printable::printable,
    thousands,
};

use super::{
    DiagnosisRules,
    attribute::{Attributions, Grounds},
    file::Measure,
    interval::{FEWEST, proportion},
    matrix::{CellSums, frame_text},
    network::Network,
    response_flags::FlaggedRequests,
};

/// Processes that had the CPU and are named.
const HOLDERS: usize = 4;
/// CPU of the busiest worker, in percent of one, below which nobody waits for it and its load is no finding.
const BUSY_PERCENT: f64 = 10.0;
/// Frames that are kept as evidence.
const EVIDENCE: usize = 5;

/// What was found out about the window, for the findings.
pub(super) struct Measurements<'a> {
    pub(super) rules: &'a DiagnosisRules,
    /// `None`: no profile has samples on the CPU.
    pub(super) on_cpu: Option<(&'a Profile, &'a CellSums<'a>)>,
    pub(super) switches: Option<&'a Switches<'a>>,
    pub(super) workers: &'a Workers,
    pub(super) network: Option<&'a Network>,
    pub(super) event_loop: Option<&'a EventLoopReport>,
    pub(super) requests: Option<u64>,
    pub(super) flags: &'a [FlaggedRequests],
    pub(super) window_ns: u64,
}

/// Which stalls of event loops are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum CountedStalls {
    All,
    /// Without those that waited for a CPU, which have a finding of their own.
    OnACpu,
}

/// One measurement.
pub(super) struct Measured {
    pub(super) estimate: Estimate,
    /// How many things were looked at: samples, switches, periods, writes...
    pub(super) of: u64,
    pub(super) evidence: Vec<EvidenceFrame>,
    pub(super) confidence: Confidence,
    /// A sentence with the numbers, where the percentage alone does not say enough.
    pub(super) text: Option<String>,
}

impl Measured {
    fn counted(estimate: Estimate, of: u64, text: Option<String>) -> Self {
        Self {
            estimate,
            of,
            evidence: Vec::new(),
            confidence: Confidence::Exact,
            text,
        }
    }
}

impl Measurements<'_> {
    /// The measure, or `None` when what it needs is not known, or too little of it.
    pub(super) fn measure(&self, measure: Measure, cells: &[CellChoice]) -> Option<Measured> {
        let measured = self.measure_of(measure, cells);
        measured.filter(|measured| !measure.is_share_of_work() || measured.of >= FEWEST)
    }

    fn measure_of(&self, measure: Measure, cells: &[CellChoice]) -> Option<Measured> {
        match measure {
            Measure::Share => self.share(cells),
            Measure::Switches => self.switches.and_then(|switches| switches.share_of(cells)),
            Measure::Throttled => {
                let throttled = self.workers.throttled?;
                let text = format!(
                    "The quota was used up in {} of {} periods; threads stood still for {} ms in sum \
                     over CPUs.",
                    throttled.throttled_periods,
                    throttled.periods,
                    throttled.throttled_ns / 1_000_000
                );
                Some(Measured::counted(
                    proportion(throttled.throttled_periods, throttled.periods),
                    throttled.periods,
                    Some(text),
                ))
            }
            Measure::Imbalance => self.imbalance(),
            Measure::RunQueue => self.run_queue(),
            Measure::Stalls => self.stalls(CountedStalls::All),
            // Each flag is measured by itself.
            Measure::ResponseFlags => None,
            Measure::Connections => {
                let (network, requests) = (self.network?, self.requests?);
                let opened = network.report.connections_opened;
                let (of, all) = (thousands(opened), thousands(requests));
                let text = format!("{of} new connections for {all} requests.");
                let estimate = proportion(opened.min(requests), requests);
                Some(Measured::counted(estimate, requests, Some(text)))
            }
            Measure::Retransmits => {
                let network = self.network?;
                network.report.retransmit_percent?;
                let text = format!(
                    "{} segments were retransmitted, for {} writes.",
                    thousands(network.retransmits),
                    thousands(network.writes)
                );
                let estimate = proportion(network.retransmits.min(network.writes), network.writes);
                Some(Measured::counted(estimate, network.writes, Some(text)))
            }
        }
    }

    fn share(&self, cells: &[CellChoice]) -> Option<Measured> {
        let (profile, sums) = self.on_cpu?;
        let evidence = sums
            .evidence_of(profile, cells)
            .into_iter()
            .map(|(frame, samples, ns)| EvidenceFrame {
                frame,
                share_percent: percent(ns, sums.ns),
                samples,
            })
            .collect();
        Some(Measured {
            estimate: sums.share_of(cells),
            of: sums.samples,
            evidence,
            confidence: confidence(&sums.grounds_of(cells)),
            text: None,
        })
    }

    fn imbalance(&self) -> Option<Measured> {
        let found = self.workers.imbalance?;
        if found.busiest_percent < BUSY_PERCENT {
            return None;
        }
        let more = |ratio: f64| ((ratio - 1.0) * 100.0).max(0.0);
        let text = format!(
            "The busiest worker runs {:.1} % of a CPU, the mean is {:.1} %.",
            found.busiest_percent, found.mean_percent
        );
        let estimate = Estimate {
            value: more(found.ratio),
            low: more(found.low),
            high: more(found.high),
        };
        let workers = self.workers.threads.iter();
        let workers = workers
            .filter(|thread| thread.role == ThreadRole::Worker)
            .count();
        Some(Measured::counted(estimate, workers as u64, Some(text)))
    }

    /// Of the worker that waits most; the time is measured and has no doubt of sampling.
    fn run_queue(&self) -> Option<Measured> {
        let workers = self.workers.threads.iter();
        let waiting = workers
            .filter(|thread| matches!(thread.role, ThreadRole::Worker | ThreadRole::Main))
            .filter_map(|thread| Some((thread.run_queue_percent?, thread)));
        let (percent, thread) = waiting.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut text = format!(
            "Thread {} ({}) was ready to run without a CPU for {percent:.1} % of the time.",
            printable(&thread.name),
            thread.tid
        );
        if let Some(contention) = thread
            .contention
            .as_ref()
            .filter(|found| found.known_ns > 0)
        {
            // Writing to a String cannot fail.
            let _infallible = write!(
                text,
                " Meanwhile the CPU was with: {}.",
                contention.line(HOLDERS)
            );
            let pods = contention.pods_line(HOLDERS);
            if !pods.is_empty() {
                let _infallible = write!(text, " By pod: {pods}.");
            }
        }
        Some(Measured::counted(exact(percent), 1, Some(text)))
    }

    /// Stalls of the worst thread; those that are not listed always count.
    pub(super) fn stalls(&self, which: CountedStalls) -> Option<Measured> {
        let report = self.event_loop?;
        let counted = |stall: &LoopStall| match which {
            CountedStalls::All => true,
            CountedStalls::OnACpu => !waited_for_a_cpu(stall),
        };
        let of_thread = |thread: &LoopThread| {
            let of_it = report.stalls.iter().filter(|stall| stall.tid == thread.tid);
            let left_out = of_it.filter(|stall| !counted(stall));
            left_out.fold((thread.stalls, thread.stalled_ns), |(stalls, ns), stall| {
                let ns = ns.saturating_sub(stall.duration_ns);
                (stalls.saturating_sub(1), ns)
            })
        };
        let threads = report
            .threads
            .iter()
            .map(|thread| (thread, of_thread(thread)));
        let (worst, (stalls, stalled_ns)) = threads.max_by_key(|(_, (_, ns))| *ns)?;
        let loops = report.threads.iter().map(|thread| thread.loops).sum();
        let stalled = percent(stalled_ns, self.window_ns).min(100.0);
        let text = format!(
            "Thread {} ({}) was away from its event loop for longer than {} ms {stalls} times, {} ms in all.",
            printable(&worst.name),
            worst.tid,
            report.threshold_ms,
            stalled_ns / 1_000_000
        );
        let mut measured = Measured::counted(exact(stalled), loops, Some(text));
        // A frame that held a thread many times is reported once.
        let mut leaves: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for stall in report.stalls.iter().filter(|stall| counted(stall)) {
            if let Some(leaf) = stall.stack.first() {
                let (ns, samples) = leaves.entry(leaf).or_default();
                *ns = ns.saturating_add(stall.duration_ns);
                *samples = samples.saturating_add(stall.samples);
            }
        }
        let mut leaves: Vec<_> = leaves.into_iter().collect();
        leaves.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
        measured.evidence = leaves
            .into_iter()
            .take(EVIDENCE)
            .map(|(frame, (ns, samples))| EvidenceFrame {
                frame: printable(frame).into_owned(),
                share_percent: percent(ns, self.window_ns),
                samples,
            })
            .collect();
        Some(measured)
    }
}

/// Whether a stall's thread was ready to run and no CPU was free.
fn waited_for_a_cpu(stall: &LoopStall) -> bool {
    let states = [ThreadState::Preempted, ThreadState::Woken];
    let mut markers = states
        .into_iter()
        .filter_map(|state| state.marker(Clock::Wall));
    let leaf = stall.stack.first().map(String::as_str);
    markers.any(|marker| leaf == Some(marker))
}

fn exact(percent: f64) -> Estimate {
    Estimate {
        value: percent,
        low: percent,
        high: percent,
    }
}

/// What samples of these grounds allow to say.
pub(super) fn confidence(grounds: &BTreeMap<Grounds, u64>) -> Confidence {
    let has = |kind| grounds.get(&kind).is_some_and(|samples| *samples > 0);
    match (
        has(Grounds::Exact),
        has(Grounds::Inferred),
        has(Grounds::Thread),
    ) {
        (true | false, false, false) => Confidence::Exact,
        (false, true, false) => Confidence::Inferred,
        (false, false, true) => Confidence::Thread,
        _ => Confidence::Mixed,
    }
}

/// Context switches of a profile of waits, by the same features.
pub(super) struct Switches<'a> {
    profile: &'a Profile,
    attributions: Attributions<'a>,
    count: u64,
}

impl<'a> Switches<'a> {
    pub(super) fn of(rules: &'a DiagnosisRules, profile: &'a Profile) -> Self {
        let count = profile
            .samples
            .iter()
            .filter(|row| is_wait(row))
            .map(|row| row.count)
            .sum();
        Self {
            profile,
            attributions: Attributions::of(rules, profile),
            count,
        }
    }

    fn share_of(&self, cells: &[CellChoice]) -> Option<Measured> {
        if self.count == 0 {
            return None;
        }
        let mut part = 0u64;
        let mut grounds: BTreeMap<Grounds, u64> = BTreeMap::new();
        let mut frames: BTreeMap<(FrameId, usize), u64> = BTreeMap::new();
        for row in self.profile.samples.iter().filter(|row| is_wait(row)) {
            let found = self.attributions.of_row(row);
            let feature = self.attributions.feature_id(found.feature);
            let mechanism = self.attributions.mechanism_id(found.mechanism);
            let chosen = cells.iter().any(|cell| {
                cell.feature.as_deref().is_none_or(|id| id == feature)
                    && cell.mechanism.as_deref().is_none_or(|id| id == mechanism)
            });
            if chosen {
                part = part.saturating_add(row.count);
                *grounds.entry(found.grounds).or_default() += row.count;
                if let Some(frame) = found.frame {
                    *frames.entry(frame).or_default() += row.count;
                }
            }
        }
        let mut frames: Vec<_> = frames.into_iter().collect();
        frames.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let evidence = frames
            .into_iter()
            .take(EVIDENCE)
            .map(|((frame, level), samples)| EvidenceFrame {
                frame: frame_text(self.profile, frame, level),
                share_percent: percent(samples, self.count),
                samples,
            })
            .collect();
        Some(Measured {
            estimate: proportion(part, self.count),
            of: self.count,
            evidence,
            confidence: confidence(&grounds),
            text: Some(format!("{part} of {} context switches.", self.count)),
        })
    }
}

fn is_wait(row: &SampleRow) -> bool {
    row.state != ThreadState::OnCpu
}
