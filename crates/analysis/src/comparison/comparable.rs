//! Whether two diagnoses can be compared at all: what a comparison would say without having measured it.

use std::{collections::BTreeMap, fmt};

use profiler_model::diagnosis::{DiagnosedProcess, Measurement};

use super::compare::Side;
use crate::diagnosis::FEWEST;

/// Share of the samples, in percent, from which on a process has to be on the other side too.
const MEMBER_PERCENT: f64 = 1.0;
/// What a comparison of diagnoses rests on. The configuration is only shown, and latency is never measured.
const COMPARED: [Measurement; 5] = [
    Measurement::Waits,
    Measurement::Connections,
    Measurement::EventLoops,
    Measurement::CpuTime,
    Measurement::Requests,
];

/// One of the two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Earlier,
    Later,
}

impl fmt::Display for Which {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Earlier => "earlier",
            Self::Later => "later",
        })
    }
}

/// Why two check-ups are not compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotComparable {
    #[error("the {which} check-up is still running")]
    Running { which: Which },
    #[error("the {which} check-up failed: {what}: {reason}")]
    Failed {
        which: Which,
        what: &'static str,
        reason: String,
    },
    #[error(
        "the {which} check-up has {samples} samples on a CPU; to compare what costs CPU time needs {FEWEST}"
    )]
    FewSamples { which: Which, samples: u64 },
    #[error("the check-ups are of different processes: {differences}")]
    Processes { differences: String },
    #[error("{what} were measured in the {which} check-up alone")]
    Measured { what: &'static str, which: Which },
}

impl NotComparable {
    /// What makes a comparison possible.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Running { .. } => "wait until it has ended",
            Self::Failed { .. } | Self::Measured { .. } => {
                "run the check-up again; after a restart choose the new processes as its target"
            }
            Self::FewSamples { .. } => {
                "run the check-up again for longer, at a higher frequency or under more load"
            }
            Self::Processes { .. } => {
                "compare one process of each (pid_a and pid_b, or diagnose --pid), or check up the same \
                 processes again"
            }
        }
    }
}

/// Refuses a side with too few samples where nothing else can be compared: how long requests take needs none.
pub fn check_samples(which: Which, side: &Side) -> Result<(), NotComparable> {
    if side.latency.is_some() {
        return Ok(());
    }
    enough_samples(which, side)
}

/// Whether what costs CPU time can be compared.
pub(super) fn have_samples(a: &Side, b: &Side) -> Result<(), NotComparable> {
    enough_samples(Which::Earlier, a)?;
    enough_samples(Which::Later, b)
}

fn enough_samples(which: Which, side: &Side) -> Result<(), NotComparable> {
    let samples = side.samples;
    if samples < FEWEST {
        return Err(NotComparable::FewSamples { which, samples });
    }
    Ok(())
}

/// Refuses sides that are not about the same: other processes, or other measurements.
pub(super) fn check_sides(a: &Side, b: &Side) -> Result<(), NotComparable> {
    check_processes(a, b)?;
    let (Some(lacks_a), Some(lacks_b)) = (&a.not_measured, &b.not_measured) else {
        return Ok(());
    };
    for part in COMPARED {
        let which = match (lacks_a.contains(&part), lacks_b.contains(&part)) {
            (false, true) => Which::Earlier,
            (true, false) => Which::Later,
            (true, true) | (false, false) => continue,
        };
        let what = part.title();
        return Err(NotComparable::Measured { what, which });
    }
    Ok(())
}

/// A process of a diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct SideProcess {
    /// File name of its executable, or its name where that is not known.
    pub program: String,
    /// Each process serves by itself, so that their number belongs to the set. Servers that fork have as
    /// many as load asks for.
    pub counts: bool,
    pub share_percent: f64,
}

impl SideProcess {
    pub fn of(process: &DiagnosedProcess) -> Self {
        let DiagnosedProcess {
            comm,
            exe,
            rule_set,
            share_percent,
            ..
        } = process;
        Self::named(comm, exe, rule_set, *share_percent)
    }

    /// `rule_set` is as in [`DiagnosedProcess::rule_set`].
    pub fn named(comm: &str, exe: &str, rule_set: &str, share_percent: f64) -> Self {
        // An executable that was replaced under a running process.
        let exe = exe.trim_end_matches(" (deleted)");
        let program = exe.rsplit('/').next().filter(|name| !name.is_empty());
        Self {
            program: program.unwrap_or(comm).to_owned(),
            counts: rule_set == "envoy",
            share_percent,
        }
    }
}

/// Processes of one program on one side.
#[derive(Clone, Copy, Default)]
struct Members {
    all: usize,
    /// Those with at least [`MEMBER_PERCENT`].
    large: usize,
    share_percent: f64,
}

impl Members {
    fn add(&mut self, process: &SideProcess) {
        self.all += 1;
        self.large += usize::from(process.share_percent >= MEMBER_PERCENT);
        self.share_percent += process.share_percent;
    }
}

fn check_processes(a: &Side, b: &Side) -> Result<(), NotComparable> {
    let mut programs: BTreeMap<&str, (bool, [Members; 2])> = BTreeMap::new();
    for (place, side) in [a, b].into_iter().enumerate() {
        for process in &side.processes {
            let (counts, members) = programs.entry(&process.program).or_default();
            *counts |= process.counts;
            members[place].add(process);
        }
    }
    let differences: Vec<String> = programs
        .into_iter()
        .filter(|(_, (counts, [a, b]))| {
            let number = |processes: usize| if *counts { processes } else { processes.min(1) };
            number(a.large) > number(b.all) || number(b.large) > number(a.all)
        })
        .map(|(program, (_, [a, b]))| {
            format!(
                "{program}: {} before ({:.1} % of the CPU samples), {} after ({:.1} %)",
                a.all, a.share_percent, b.all, b.share_percent
            )
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let differences = differences.join("; ");
    Err(NotComparable::Processes { differences })
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
