//! The form of a file of rules, as TOML has it. Checking is done in [`super::rules`].

use profiler_model::{diagnosis::ThreadRole, name_pattern::Pattern};
use serde::Deserialize;
use toml::Spanned;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) version: Spanned<u32>,
    /// Findings below this share of the time are none; at the lower end of the interval.
    #[serde(default)]
    pub(super) threshold_percent: Option<Spanned<f64>>,
    /// Names of rules and findings that are left out.
    #[serde(default)]
    pub(super) disable: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) set: Vec<SetEntry>,
    #[serde(default)]
    pub(super) role: Vec<RoleEntry>,
    #[serde(default)]
    pub(super) feature: Vec<FeatureEntry>,
    #[serde(default)]
    pub(super) mechanism: Vec<MechanismEntry>,
    #[serde(default)]
    pub(super) rule: Vec<RuleEntry>,
    #[serde(default)]
    pub(super) finding: Vec<FindingEntry>,
    #[serde(default)]
    pub(super) good: Vec<GoodEntry>,
}

/// A kind of process that has rules of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetEntry {
    pub(super) id: Spanned<String>,
    /// `comm` of the process or the last part of its executable's path. Only the last set has none:
    /// it takes what is left.
    #[serde(default)]
    pub(super) process: Vec<Pattern>,
}

/// What threads of a set are for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleEntry {
    pub(super) sets: Vec<Spanned<String>>,
    pub(super) role: RoleName,
    pub(super) thread: Vec<Pattern>,
}

/// A role, written as its name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleName {
    Worker,
    Main,
    Helper,
    Other,
}

impl From<RoleName> for ThreadRole {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Worker => Self::Worker,
            RoleName::Main => Self::Main,
            RoleName::Helper => Self::Helper,
            RoleName::Other => Self::Other,
        }
    }
}

/// A row of the matrix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeatureEntry {
    /// Ends in `:*` for a family whose members are named by what a pattern's `{name}` matched.
    pub(super) id: Spanned<String>,
    /// `{name}` stands for the member's name.
    pub(super) title: String,
    pub(super) about: String,
    /// Everything that it calls is its own work, wherever it happens: a setting switches all of it off.
    #[serde(default)]
    pub(super) asks: bool,
    /// Functions that it calls to hand a request on: what they do further down is not its own work.
    #[serde(default)]
    pub(super) passes_on: Vec<Pattern>,
}

/// A column of the matrix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MechanismEntry {
    pub(super) id: Spanned<String>,
    pub(super) title: String,
}

/// Where a frame's code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Space {
    #[default]
    User,
    Kernel,
}

/// See `rules/diagnosis.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    pub(super) name: Spanned<String>,
    pub(super) sets: Vec<Spanned<String>>,
    pub(super) feature: Option<Spanned<String>>,
    pub(super) mechanism: Option<Spanned<String>>,
    /// Nothing nearer to the leaf was asked for by what is nearer to the root.
    #[serde(default)]
    pub(super) boundary: bool,
    /// The mechanism where no rule knows it.
    pub(super) otherwise: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) space: Space,
    #[serde(default)]
    pub(super) frames: Vec<Pattern>,
    /// The same, of names that only builds with symbols have.
    #[serde(default)]
    pub(super) symbols: Vec<Pattern>,
    #[serde(default)]
    pub(super) module: Vec<Pattern>,
    #[serde(default)]
    pub(super) thread: Vec<Pattern>,
    #[serde(default)]
    pub(super) process: Vec<Pattern>,
    #[serde(default)]
    pub(super) with: Vec<Pattern>,
    #[serde(default)]
    pub(super) without: Vec<Pattern>,
    /// No frame of the same file with a name that no rule knows is nearer to the leaf.
    #[serde(default)]
    pub(super) nearest: bool,
}

/// What a finding is measured by, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    /// The cells' share of the samples' time.
    #[default]
    Share,
    /// The cells' share of context switches.
    Switches,
    /// Periods of the CPU quota in which it was used up.
    Throttled,
    /// How much more than the mean the busiest worker runs.
    Imbalance,
    /// Time of the window that the worst worker waits for a CPU.
    RunQueue,
    /// Time of the window that the worst thread is away from its event loop for longer than the threshold.
    Stalls,
    /// New connections for each hundred requests.
    Connections,
    /// Segments sent again for each hundred writes.
    Retransmits,
    /// Requests with a response flag, of one Envoy; one finding for each flag, by a threshold of its own.
    ResponseFlags,
}

impl Measure {
    /// A share of what the process does. Of what does next to nothing it says nothing.
    pub(super) fn is_share_of_work(self) -> bool {
        match self {
            Self::Share | Self::Switches | Self::Connections => true,
            Self::Throttled
            | Self::Imbalance
            | Self::RunQueue
            | Self::Stalls
            | Self::Retransmits
            | Self::ResponseFlags => false,
        }
    }
}

/// Something that costs, and what to change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingEntry {
    /// Of a family of features: the start of the id, which the member's name follows.
    pub(super) id: Spanned<String>,
    pub(super) title: String,
    pub(super) sets: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) measure: Measure,
    /// As the parameter `cell`; `filter:*` makes one finding of each member.
    #[serde(default)]
    pub(super) cells: Vec<Spanned<String>>,
    /// Members of a family that have a finding of their own.
    #[serde(default)]
    pub(super) except: Vec<Spanned<String>>,
    /// What a process spends here that has nothing to change.
    #[serde(default)]
    pub(super) normal_percent: f64,
    /// Share of the rest that the setting can save.
    #[serde(default = "all")]
    pub(super) savable: f64,
    /// Worth knowing, no fault.
    #[serde(default)]
    pub(super) info: bool,
    pub(super) reason: String,
    /// Keys of configuration items that say what is configured now.
    #[serde(default)]
    pub(super) configured: Vec<Pattern>,
    /// There is a finding only if the process says that it has such an item: `KEY` or `KEY=PATTERN`.
    #[serde(default)]
    pub(super) only_if: Vec<Pattern>,
    /// Findings that have the same cause: where there is one of them, this one is added to its reason.
    #[serde(default)]
    pub(super) part_of: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) settings: Vec<SettingEntry>,
}

fn all() -> f64 {
    1.0
}

/// Something to change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingEntry {
    pub(super) system: System,
    pub(super) key: String,
    pub(super) yaml: String,
    pub(super) scope: String,
    pub(super) side_effects: String,
    /// Configuration items that show that it is in force, `KEY=VALUE`: then it is not advised.
    #[serde(default)]
    pub(super) unless: Vec<Pattern>,
}

/// Whose setting it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum System {
    Istio,
    Envoy,
    Nginx,
    Kubernetes,
}

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Istio => "istio",
            Self::Envoy => "envoy",
            Self::Nginx => "nginx",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// The set of the processes that have such settings; `None`: any process may.
    pub(super) fn set(self) -> Option<&'static str> {
        match self {
            Self::Istio | Self::Envoy => Some("envoy"),
            Self::Nginx => Some("nginx"),
            Self::Kubernetes => None,
        }
    }
}

/// Something that is as it should be when its measure is zero.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GoodEntry {
    pub(super) id: Spanned<String>,
    pub(super) sets: Vec<Spanned<String>>,
    pub(super) measure: Measure,
    #[serde(default)]
    pub(super) cells: Vec<Spanned<String>>,
    pub(super) title: String,
    /// `{count}` stands for what was looked at.
    pub(super) text: String,
}
