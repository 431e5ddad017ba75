//! Whether two counts of samples differ by more than chance.
//!
//! Shares are compared by the two-proportion z-test with a pooled estimate (NIST/SEMATECH
//! e-Handbook of Statistical Methods, 7.3.3), rates by the normal form of the conditional test of
//! two Poisson means (Przyborowski and Wilenski, 1940), and many tests at once are adjusted by the
//! step-up procedure of Benjamini and Hochberg (1995). Tested against
//! `tests/fixtures/statistics/two_samples.json`.

use crate::float;

/// Changes with an adjusted p-value below this are called significant.
pub const ALPHA: f64 = 0.05;
/// The normal approximation needs as many expected samples in each cell.
const MIN_EXPECTED: f64 = 5.0;

/// One number of each side of a comparison: of the base, and of what is compared with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    pub a: u64,
    pub b: u64,
}

/// The result of one test; `z` is positive when the second side has more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    pub z: f64,
    /// Two-sided.
    pub p: f64,
}

/// Compares `hits.a` of `all.a` samples with `hits.b` of `all.b`. None when there are too few of
/// them for an answer.
pub fn proportions(hits: Pair, all: Pair) -> Option<Test> {
    let (xa, xb) = (float(hits.a.min(all.a)), float(hits.b.min(all.b)));
    let (na, nb) = (float(all.a), float(all.b));
    let pooled = (xa + xb) / (na + nb);
    let fewest = na.min(nb) * pooled.min(1.0 - pooled);
    if fewest.is_nan() || fewest < MIN_EXPECTED {
        return None;
    }
    let error = (pooled * (1.0 - pooled) * (1.0 / na + 1.0 / nb)).sqrt();
    Some(Test::of((xb / nb - xa / na) / error))
}

/// Compares `hits.a` samples where `expected.a` can be taken with `hits.b` where `expected.b` can.
/// None when there are too few for an answer, or when it is not known how many can be taken.
pub fn rates(hits: Pair, expected: [f64; 2]) -> Option<Test> {
    let (xa, xb) = (float(hits.a), float(hits.b));
    let [ea, eb] = expected;
    let of_b = eb / (ea + eb);
    let fewest = (xa + xb) * of_b.min(1.0 - of_b);
    if fewest.is_nan() || fewest < MIN_EXPECTED {
        return None;
    }
    let error = ((xa + xb) * of_b * (1.0 - of_b)).sqrt();
    Some(Test::of((xb - (xa + xb) * of_b) / error))
}

impl Test {
    /// The test of a difference in its standard errors.
    pub fn of(z: f64) -> Self {
        let p = complement_of_error_function(z.abs() / std::f64::consts::SQRT_2);
        Self { z, p }
    }
}

/// For each p-value the smallest false discovery rate at which it would be called significant.
pub fn adjusted(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*right].total_cmp(&values[*left]));
    let tests = float(values.len() as u64);
    let mut adjusted = vec![1.0; values.len()];
    let mut least: f64 = 1.0;
    let mut rank = tests;
    for place in order {
        least = least.min(values[place] * tests / rank);
        adjusted[place] = least;
        rank -= 1.0;
    }
    adjusted
}

/// `erfc(x)` for x >= 0, to 14 digits: the series DLMF 7.6.2 near zero, the continued fraction
/// DLMF 7.9.1 elsewhere.
pub fn complement_of_error_function(x: f64) -> f64 {
    const NEAR: f64 = 2.5;
    const TERMS: u32 = 120;
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < NEAR {
        let mut term = x;
        let mut sum = x;
        for n in 1..TERMS {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - 2.0 * scale * sum;
    }
    let mut below = x;
    for n in (1..TERMS).rev() {
        below = x + f64::from(n) / 2.0 / below;
    }
    scale / below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        let error = (found - expected).abs();
        assert!(
            error <= 1e-9 * expected.abs().max(1e-3),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn known_values_of_both_tests() {
        let text = include_str!("../../../tests/fixtures/statistics/two_samples.json");
        let known: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut seen = 0;
        for case in known["cases"].as_array().unwrap() {
            let pair = |name: &str| Pair {
                a: case[name][0].as_u64().unwrap(),
                b: case[name][1].as_u64().unwrap(),
            };
            let (hits, all) = (pair("hits"), pair("all"));
            let found = match case["test"].as_str().unwrap() {
                "proportions" => proportions(hits, all),
                _ => rates(hits, [float(all.a), float(all.b)]),
            };
            seen += 1;
            match (found, case["p"].as_f64()) {
                (Some(test), Some(p)) => {
                    close(test.z, case["z"].as_f64().unwrap());
                    close(test.p, p);
                }
                (found, p) => assert!(found.is_none() && p.is_none(), "{case}: {found:?}"),
            }
        }
        assert!(seen >= 8, "only {seen} cases");
    }

    #[test]
    fn the_tail_agrees_where_its_two_forms_meet() {
        close(complement_of_error_function(0.0), 1.0);
        let (below, above) = (2.5 - 1e-12, 2.5 + 1e-12);
        let (below, above) = (
            complement_of_error_function(below),
            complement_of_error_function(above),
        );
        assert!((below / above - 1.0).abs() < 1e-9, "{below} {above}");
    }

    /// The example of Benjamini and Hochberg's paper has 15 p-values; four of them are found at
    /// a rate of 0.05.
    #[test]
    fn many_tests_are_adjusted_as_in_the_paper() {
        let values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let adjusted = adjusted(&values);
        assert_eq!(adjusted.iter().filter(|value| **value < ALPHA).count(), 4);
        close(adjusted[0], 0.0015);
        close(adjusted[3], 0.0095 * 15.0 / 4.0);
        close(adjusted[14], 1.0);
        assert!(adjusted.is_sorted());
        assert_eq!(super::adjusted(&[]), Vec::<f64>::new());
    }
}
