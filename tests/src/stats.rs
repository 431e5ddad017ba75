//! Medians and bootstrap intervals of paired measurements.

use serde::Serialize;

const RESAMPLES: usize = 4000;

/// A median with its 95 % bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// A mean with half the width of its 95 % interval by Student's t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanInterval {
    pub mean: f64,
    pub half_width: f64,
}

/// 97.5 % quantiles of Student's t with 1, 2, ... degrees of freedom; the last one serves for more.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// Mean of `values`; nothing is known of its interval with fewer than two, which is said by an infinite one.
#[expect(clippy::cast_precision_loss, reason = "numbers of runs are small")]
pub fn mean_interval(values: &[f64]) -> MeanInterval {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let half_width = match values.len() {
        0 | 1 => f64::INFINITY,
        more => {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (count - 1.0) / count).sqrt();
            STUDENT[(more - 2).min(STUDENT.len() - 1)] * error
        }
    };
    MeanInterval { mean, half_width }
}

/// The slope of a line with half the width of its 95 % interval by Student's t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    pub slope: f64,
    pub half_width: f64,
}

/// The line through points by least squares. `None` with fewer than three points, or when all have the same place.
#[expect(clippy::cast_precision_loss, reason = "numbers of points are small")]
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let freedom = points.len().checked_sub(2).filter(|freedom| *freedom > 0)?;
    let count = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / count, y / count);
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let common: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = common / spread;
    let squares: f64 = points
        .iter()
        .map(|point| (point.1 - y - slope * (point.0 - x)).powi(2))
        .sum();
    let error = (squares / freedom as f64 / spread).sqrt();
    Some(Slope {
        slope,
        half_width: STUDENT[(freedom - 1).min(STUDENT.len() - 1)] * error,
    })
}

/// Median of `values`; NaN when there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Median of `values` with its interval: percentiles of the medians of resamples.
pub fn estimate(values: &[f64]) -> Estimate {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let resample: Vec<f64> = values
                .iter()
                .map(|_| values[random.below(values.len())])
                .collect();
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |permille: usize| medians[(RESAMPLES - 1) * permille / 1000];
    Estimate {
        median: median(values),
        low: at(25),
        high: at(975),
    }
}

/// xorshift64: the same resamples every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd_counts() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn interval_of_a_mean_is_students() {
        let MeanInterval { mean, half_width } = mean_interval(&[1.0, 2.0, 3.0]);
        // Standard deviation 1, standard error 1 / sqrt(3), two degrees of freedom.
        assert!((mean - 2.0).abs() < 1e-9);
        assert!((half_width - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert!(mean_interval(&[1.0]).half_width.is_infinite());
    }

    #[test]
    fn slope_of_a_line_and_its_interval() {
        let Slope { slope, half_width } =
            super::slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((slope - 2.0).abs() < 1e-9 && half_width < 1e-9);
        // Residuals 1/3, -2/3, 1/3 with one degree of freedom: error sqrt(2/3 / 2).
        let bent = super::slope(&[(0.0, 0.0), (1.0, 0.0), (2.0, 2.0)]).unwrap();
        assert!((bent.slope - 1.0).abs() < 1e-9);
        assert!((bent.half_width - 12.706 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert!(super::slope(&[(0.0, 1.0), (1.0, 3.0)]).is_none());
        assert!(super::slope(&[(1.0, 1.0); 5]).is_none());
    }

    #[test]
    fn interval_holds_the_median_and_shrinks_with_equal_values() {
        let spread = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert!(spread.low <= spread.median && spread.median <= spread.high);
        assert!(spread.low < spread.high);
        let equal = estimate(&[2.0; 5]);
        assert!((equal.low - 2.0).abs() < 1e-9 && (equal.high - 2.0).abs() < 1e-9);
    }
}
