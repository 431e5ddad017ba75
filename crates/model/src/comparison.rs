//! Two diagnoses side by side: what changed, and whether by more than chance.

/// `a` is the earlier one. Names of check-ups and features are the agent's own; nothing is untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckupComparison {
    pub totals: ComparedTotals,
    /// The largest change first.
    pub rows: Vec<ComparedRow>,
    pub findings: ComparedFindings,
    /// One sentence.
    pub verdict: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedTotals {
    /// `None`: requests are not known on both sides.
    pub cpu_us_per_request: Option<ComparedTotal>,
    /// `None`: the kernel's accounts were not read on both sides.
    pub cpu_cores: Option<ComparedTotal>,
}

/// A number of each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedTotal {
    pub a: f64,
    pub b: f64,
    /// Of `a`, with its 95 % interval.
    pub change_percent: f64,
    pub low: f64,
    pub high: f64,
    pub significant: bool,
}

/// A feature on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    pub feature: String,
    pub a_percent: f64,
    pub b_percent: f64,
    /// Microseconds of CPU time for each request; `None`: requests are not known.
    pub a_us: Option<f64>,
    pub b_us: Option<f64>,
    /// Points of percent, `b` minus `a`, with its 95 % interval.
    pub change: f64,
    pub low: f64,
    pub high: f64,
    /// Adjusted for the number of rows; `None`: too few samples for a test.
    pub p: Option<f64>,
    pub significant: bool,
}

/// Findings of both sides by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedFindings {
    pub gone: Vec<FindingName>,
    pub new: Vec<FindingName>,
    pub still: Vec<FindingName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingName {
    pub id: String,
    pub title: String,
}
