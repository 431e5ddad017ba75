//! Values of requests in buckets.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Bounds, Spread};

/// How many values there are, and how large. Percentiles are the upper bound of the bucket that the
/// value is in, which is at most 6.25 % above it; `bounds` has both bounds.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestValues {
    count: u64,
    sum: u64,
    /// Null without values, as the others.
    #[schema(required)]
    mean: Option<u64>,
    /// Exact.
    #[schema(required)]
    min: Option<u64>,
    #[schema(required)]
    max: Option<u64>,
    #[schema(required)]
    p50: Option<u64>,
    #[schema(required)]
    p90: Option<u64>,
    #[schema(required)]
    p99: Option<u64>,
    #[schema(required)]
    p999: Option<u64>,
    bounds: RequestBounds,
    /// Every bucket that has values, in order: its least value, its greatest, and how many it has.
    #[schema(value_type = Vec<(u64, u64, u64)>)]
    buckets: Vec<[u64; 3]>,
}

/// Between which values each percentile lies.
#[derive(Debug, Serialize, ToSchema)]
struct RequestBounds {
    #[schema(required, value_type = Option<(u64, u64)>)]
    p50: Option<[u64; 2]>,
    #[schema(required, value_type = Option<(u64, u64)>)]
    p90: Option<[u64; 2]>,
    #[schema(required, value_type = Option<(u64, u64)>)]
    p99: Option<[u64; 2]>,
    #[schema(required, value_type = Option<(u64, u64)>)]
    p999: Option<[u64; 2]>,
}

impl From<&Spread> for RequestValues {
    fn from(spread: &Spread) -> Self {
        let bounds = |thousandths| {
            let found = spread.percentile(thousandths);
            found.map(|Bounds { from, to }| [from, to])
        };
        let bounds = RequestBounds {
            p50: bounds(500),
            p90: bounds(900),
            p99: bounds(990),
            p999: bounds(999),
        };
        let upper = |bounds: Option<[u64; 2]>| bounds.map(|[_, to]| to);
        Self {
            count: spread.count,
            sum: spread.sum,
            mean: spread.mean(),
            min: spread.least,
            max: spread.greatest,
            p50: upper(bounds.p50),
            p90: upper(bounds.p90),
            p99: upper(bounds.p99),
            p999: upper(bounds.p999),
            bounds,
            buckets: spread
                .buckets()
                .map(|(Bounds { from, to }, times)| [from, to, times])
                .collect(),
        }
    }
}
