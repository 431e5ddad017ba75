//! How sure a share is: 95 % intervals from blocks of time.
//!
//! Samples of one second are alike: a burst of one kind of work gives many at once. So a share is
//! estimated as a ratio over blocks of a second, whose variance includes how the blocks differ
//! (Cochran, Sampling Techniques, 3rd edition, 6.3), and it is never narrower than what the number of
//! samples alone allows (Wilson, 1927).

use profiler_model::{diagnosis::Estimate, float, significance};

/// Chance that an interval misses.
pub(super) const ALPHA: f64 = 0.05;
/// Fewer samples, switches or requests are no ground to say what a process spends its time on: none among 100
/// is compatible with a share of 3.7 % (Wilson's interval), and at 99 Hz for 30 s they are 3.4 % of a CPU.
pub(crate) const FEWEST: u64 = 100;
/// With fewer blocks their differences say too little.
const MIN_BLOCKS: usize = 5;

/// The share of `part` in `whole`, in percent with its interval. Both are sums of blocks in the same
/// order; `samples` is how many samples the whole has.
pub(super) fn share(part: &[u64], whole: &[u64], samples: u64) -> Estimate {
    share_at(part, whole, samples, ALPHA)
}

/// The same at another chance of missing.
pub(super) fn share_at(part: &[u64], whole: &[u64], samples: u64, alpha: f64) -> Estimate {
    let sum = |values: &[u64]| values.iter().map(|value| float(*value)).sum::<f64>();
    let all = sum(whole);
    if all <= 0.0 {
        return Estimate {
            value: 0.0,
            low: 0.0,
            high: 100.0,
        };
    }
    let ratio = (sum(part) / all).clamp(0.0, 1.0);
    let (mut low, mut high) = wilson(ratio, float(samples), normal_quantile(1.0 - alpha / 2.0));
    let used: Vec<(f64, f64)> = part
        .iter()
        .zip(whole)
        .filter(|(_, whole)| **whole > 0)
        .map(|(part, whole)| (float(*part), float(*whole)))
        .collect();
    if used.len() >= MIN_BLOCKS {
        let blocks = float(used.len() as u64);
        let squares: f64 = used
            .iter()
            .map(|(part, whole)| (part - ratio * whole).powi(2))
            .sum();
        let error = (blocks / (blocks - 1.0) * squares).sqrt() / all;
        let half = student_quantile(1.0 - alpha / 2.0, blocks - 1.0) * error;
        low = low.min(ratio - half);
        high = high.max(ratio + half);
    }
    Estimate {
        value: ratio * 100.0,
        low: low.clamp(0.0, ratio) * 100.0,
        high: high.clamp(ratio, 1.0) * 100.0,
    }
}

/// The share of `part` in `whole` things that are counted one by one, in percent with its interval.
pub(crate) fn proportion(part: u64, whole: u64) -> Estimate {
    if whole == 0 {
        return share(&[], &[], 0);
    }
    let ratio = (float(part) / float(whole)).min(1.0);
    let (low, high) = wilson(ratio, float(whole), normal_quantile(1.0 - ALPHA / 2.0));
    Estimate {
        value: ratio * 100.0,
        low: low.clamp(0.0, ratio) * 100.0,
        high: high.clamp(ratio, 1.0) * 100.0,
    }
}

/// The score interval of Wilson.
fn wilson(ratio: f64, samples: f64, z: f64) -> (f64, f64) {
    if samples <= 0.0 {
        return (0.0, 1.0);
    }
    let square = z * z / samples;
    let middle = (ratio + square / 2.0) / (1.0 + square);
    let half =
        z * (ratio * (1.0 - ratio) / samples + square / (4.0 * samples)).sqrt() / (1.0 + square);
    // The ends are exact where they touch: rounding must not leave a share above zero.
    let low = if ratio <= 0.0 { 0.0 } else { middle - half };
    let high = if ratio >= 1.0 { 1.0 } else { middle + half };
    (low, high)
}

/// The value below which a standard normal variable lies with chance `p`, 0.5 <= p < 1.
fn normal_quantile(p: f64) -> f64 {
    const STEPS: u32 = 80;
    let (mut low, mut high) = (0.0, 40.0);
    for _step in 0..STEPS {
        let middle: f64 = f64::midpoint(low, high);
        let above = significance::complement_of_error_function(middle / std::f64::consts::SQRT_2);
        if above / 2.0 > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The same of Student's t with at least four degrees of freedom, by the expansion of Cornish and
/// Fisher (Abramowitz and Stegun, 26.7.5); 1 % too small at four, better above.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let z = normal_quantile(p);
    let (z3, z5, z7, z9) = (z.powi(3), z.powi(5), z.powi(7), z.powi(9));
    let terms = [
        (z3 + z) / 4.0,
        (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0,
        (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0,
        (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / 92_160.0,
    ];
    let mut sum = z;
    let mut power = 1.0;
    for term in terms {
        power *= freedom;
        sum += term / power;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, error: f64) {
        assert!(
            (found - expected).abs() <= error,
            "{found} is not {expected}"
        );
    }

    /// Of the tables in the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        close(normal_quantile(0.975), 1.959_964, 1e-6);
        close(normal_quantile(0.5), 0.0, 1e-9);
        close(student_quantile(0.975, 4.0), 2.776, 0.02);
        close(student_quantile(0.975, 9.0), 2.262, 0.001);
        close(student_quantile(0.975, 29.0), 2.045, 0.001);
    }

    /// The worked example of Newcombe (1998), 81 of 263.
    #[test]
    fn counts_have_the_score_interval() {
        let found = proportion(81, 263);
        close(found.value, 30.798, 0.001);
        close(found.low, 25.53, 0.02);
        close(found.high, 36.62, 0.02);
        assert_eq!(proportion(0, 50).low.to_bits(), 0.0_f64.to_bits());
        close(proportion(0, 0).high, 100.0, 0.0);
    }

    #[test]
    fn even_blocks_give_no_less_than_the_samples_allow() {
        let whole = [100; 20];
        let found = share(&[10; 20], &whole, 2000);
        let by_count = proportion(200, 2000);
        assert_eq!(found, by_count);
    }

    #[test]
    fn bursts_widen_the_interval() {
        let whole = [100; 20];
        let mut part = [0; 20];
        part[3] = 100;
        part[4] = 100;
        let found = share(&part, &whole, 2000);
        let even = share(&[10; 20], &whole, 2000);
        close(found.value, even.value, 1e-9);
        assert!(found.high - found.low > 3.0 * (even.high - even.low));
        assert!(found.low >= 0.0 && found.high <= 100.0);
    }
}
