//! Counts as floating-point numbers, and one of them as a share of another.

/// A count, or nanoseconds, to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "shares, rates and intervals need no more than 53 bits"
)]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// `part` of `whole` in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    float(part) * 100.0 / float(whole.max(1))
}
