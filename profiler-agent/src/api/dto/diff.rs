//! Two results compared function by function.

use profiler_analysis::render::diff::{FunctionChange, Norm, Report, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::parameters::FromText;

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum DiffFormat {
    Table,
    Flamegraph,
}

impl FromText for DiffFormat {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "table" => Some(Self::Table),
            "flamegraph" => Some(Self::Flamegraph),
            _ => None,
        }
    }
}

/// What makes both sides comparable.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the parameter; the handler parses it with render::diff::Norm"
)]
pub(in crate::api) enum DiffNorm {
    Share,
    Rate,
}

/// One side of a comparison.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct DiffSide {
    /// Task, or name of a file.
    source: String,
    /// Sum of everything that is compared.
    total: u64,
    covered_ns: u64,
    /// Time that one unit stands for; 0 where it differs, 1 where the numbers are nanoseconds.
    unit_ns: u64,
}

/// A function on both sides, the base first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct DiffFunction {
    name: String,
    module: String,
    kind: &'static str,
    #[serde(rename = "self")]
    #[schema(value_type = (u64, u64))]
    own: [u64; 2],
    /// With the function anywhere in the stack; recursion counts once.
    #[schema(value_type = (u64, u64))]
    total: [u64; 2],
    /// Change of the self part: of its share, or of its units for each second.
    change: f64,
    /// The same with the function anywhere in the stack.
    total_change: f64,
    /// The side that alone has the function.
    #[schema(required)]
    badge: Option<DiffBadge>,
    verdict: DiffVerdict,
    #[schema(required)]
    z: Option<f64>,
    /// Two-sided p-value of this function alone.
    #[schema(required)]
    p: Option<f64>,
    /// With all tested functions in view: the smallest false discovery rate at which this one is
    /// called significant.
    #[schema(required)]
    q: Option<f64>,
}

/// Which side alone has a function: `removed`, the base; `new`, what is compared with it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DiffBadge {
    New,
    Removed,
}

/// Whether a change is more than chance.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DiffVerdict {
    Significant,
    NotSignificant,
    TooFew,
    Unknown,
}

/// A frame on both sides, the base first.
#[derive(Debug, Serialize, ToSchema)]
struct DiffRoot {
    name: String,
    #[schema(value_type = (u64, u64))]
    total: [u64; 2],
}

/// Two results compared.
#[derive(Debug, Serialize, ToSchema)]
pub struct Diff {
    a: DiffSide,
    b: DiffSide,
    norm: &'static str,
    value: &'static str,
    /// How significance was found.
    method: &'static str,
    /// Why nothing is said about significance.
    #[schema(required)]
    unknown: Option<&'static str>,
    /// What the functions are below: everything, or the frame that `below` names.
    root: DiffRoot,
    /// Functions that were tested.
    tested: u64,
    significant: usize,
    /// Functions on both sides together, of which `functions` may be only the first.
    all_functions: usize,
    /// Largest change of the self part first.
    functions: Vec<DiffFunction>,
}

const SHARES: &str = "two-proportion z-test of self samples, two-sided; q by Benjamini and Hochberg \
    over all tested functions, significant below 0.05: of those about one in twenty is chance. Samples \
    of one long phase depend on each other: differences near the limit deserve a second measurement";
const RATES: &str = "conditional test of two Poisson rates of self samples in its normal form, \
    two-sided; q by Benjamini and Hochberg over all tested functions, significant below 0.05: of those \
    about one in twenty is chance. Samples of one long phase depend on each other: differences near \
    the limit deserve a second measurement";

impl Diff {
    pub fn new(report: Report, sources: [String; 2], limit: usize) -> Self {
        let (norm, all) = (report.norm(), report.all());
        let (covered_ns, unit_ns) = (report.covered_ns(), report.unit_ns());
        let (name, root) = report.root;
        let functions = report.functions;
        let [first, second] = sources;
        let side = |source, total, covered_ns, unit_ns| DiffSide {
            source,
            total,
            covered_ns,
            unit_ns,
        };
        let significant = functions
            .iter()
            .filter(|function| function.verdict.is_significant())
            .count();
        Self {
            a: side(first, all.a, covered_ns[0], unit_ns[0]),
            b: side(second, all.b, covered_ns[1], unit_ns[1]),
            norm: norm.name(),
            value: report.value.name(),
            method: match norm {
                Norm::Share => SHARES,
                Norm::Rate => RATES,
            },
            unknown: report
                .unknown
                .map(profiler_analysis::render::diff::Unknown::reason),
            root: DiffRoot {
                name,
                total: [root.a, root.b],
            },
            tested: report.tested,
            significant,
            all_functions: functions.len(),
            functions: functions
                .into_iter()
                .take(limit)
                .map(DiffFunction::from)
                .collect(),
        }
    }
}

impl From<FunctionChange> for DiffFunction {
    fn from(function: FunctionChange) -> Self {
        let FunctionChange {
            name,
            module,
            kind,
            own,
            total,
            change,
            total_change,
            verdict,
        } = function;
        let (z, p, q) = match verdict {
            Verdict::Tested { test, q } => (Some(test.z), Some(test.p), Some(q)),
            Verdict::TooFew | Verdict::Unknown => (None, None, None),
        };
        let badge = match (total.a, total.b) {
            (0, _) => Some(DiffBadge::New),
            (_, 0) => Some(DiffBadge::Removed),
            _ => None,
        };
        let verdict = match verdict {
            Verdict::Tested { .. } if verdict.is_significant() => DiffVerdict::Significant,
            Verdict::Tested { .. } => DiffVerdict::NotSignificant,
            Verdict::TooFew => DiffVerdict::TooFew,
            Verdict::Unknown => DiffVerdict::Unknown,
        };
        Self {
            name,
            module,
            kind,
            own: [own.a, own.b],
            total: [total.a, total.b],
            change,
            total_change,
            badge,
            verdict,
            z,
            p,
            q,
        }
    }
}
