//! What the probes can do on this kernel, and what they have cost and lost so far.

use profiler_model::{Losses, TaskSpec};

use crate::{CollectError, Collection, Collector};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeState {
    /// The kernel and the privileges allow it; it is attached when a task needs it.
    Available,
    Attached,
    /// The kernel lacks what it needs.
    Unavailable,
    /// Refused by privileges, by the kernel's hardening or by `--deny-probe`.
    Denied,
}

impl ProbeState {
    pub const ALL: [Self; 4] = [
        Self::Available,
        Self::Attached,
        Self::Unavailable,
        Self::Denied,
    ];

    /// Name in the API and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Attached => "attached",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
        }
    }
}

/// One probe as users see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStatus {
    pub name: String,
    pub state: ProbeState,
    /// Why it is not available, and what to do about it.
    pub reason: Option<String>,
    /// Oldest kernel that has what the probe needs, as `5.15`.
    pub minimum_kernel: String,
}

/// The kernel's own figures about one loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramStats {
    pub name: String,
    /// Counted by the kernel only while its BPF statistics are on (`--bpf-stats`).
    pub run_count: Option<u64>,
    pub run_time_ns: Option<u64>,
    /// Instructions the verifier walked through when the program was loaded.
    pub verified_instructions: Option<u64>,
}

/// Where the API reads the state of the probes. Called for each request: must not block for long.
pub trait ProbeStatusSource: Send + Sync + 'static {
    fn probes(&self) -> Vec<ProbeStatus>;

    fn programs(&self) -> Vec<ProgramStats>;

    /// Losses since the agent started that belong to no task, such as dropped process events.
    fn losses(&self) -> Losses;
}

/// Stands in where there is no kernel side at all: every task fails with the reason.
#[derive(Clone, Debug)]
pub struct AbsentProbes {
    pub reason: String,
}

impl Collector for AbsentProbes {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        Err(CollectError::Probe {
            probe: spec.kind().name(),
            reason: self.reason.clone(),
        })
    }
}

impl ProbeStatusSource for AbsentProbes {
    fn probes(&self) -> Vec<ProbeStatus> {
        vec![ProbeStatus {
            name: "on_cpu".into(),
            state: ProbeState::Unavailable,
            reason: Some(self.reason.clone()),
            minimum_kernel: "5.15".into(),
        }]
    }

    fn programs(&self) -> Vec<ProgramStats> {
        Vec::new()
    }

    fn losses(&self) -> Losses {
        Losses::default()
    }
}
