// Whether two counts of samples differ by more than chance: the two-proportion z-test with a pooled
// estimate (NIST/SEMATECH e-Handbook of Statistical Methods, 7.3.3), the normal form of the
// conditional test of two Poisson means (Przyborowski and Wilenski, 1940), and the adjustment for
// many tests by Benjamini and Hochberg (1995). The twin of crates/model/src/significance.rs;
// both are tested against tests/fixtures/statistics/two_samples.json.

export type Pair = readonly [a: number, b: number];

export interface Test {
  /** Positive when the second side has more. */
  readonly z: number;
  /** Two-sided. */
  readonly p: number;
}

/** Changes with an adjusted p-value below this are called significant. */
export const ALPHA = 0.05;
/** The normal approximation needs as many expected samples in each cell. */
const MIN_EXPECTED = 5;
const NEAR = 2.5;
const TERMS = 120;

/** Compares `hits[0]` of `all[0]` samples with `hits[1]` of `all[1]`; null when there are too few. */
export function proportions(hits: Pair, all: Pair): Test | null {
  const [na, nb] = all;
  const xa = Math.min(hits[0], na);
  const xb = Math.min(hits[1], nb);
  const pooled = (xa + xb) / (na + nb);
  const fewest = Math.min(na, nb) * Math.min(pooled, 1 - pooled);
  if (!(fewest >= MIN_EXPECTED)) return null;
  return tested((xb / nb - xa / na) / Math.sqrt(pooled * (1 - pooled) * (1 / na + 1 / nb)));
}

/** Compares `hits[0]` where `expected[0]` can be taken with `hits[1]` where `expected[1]` can. */
export function rates(hits: Pair, expected: Pair): Test | null {
  const sum = hits[0] + hits[1];
  const ofB = expected[1] / (expected[0] + expected[1]);
  if (!(sum * Math.min(ofB, 1 - ofB) >= MIN_EXPECTED)) return null;
  return tested((hits[1] - sum * ofB) / Math.sqrt(sum * ofB * (1 - ofB)));
}

function tested(z: number): Test {
  return { z, p: erfc(Math.abs(z) / Math.SQRT2) };
}

/** For each p-value the smallest false discovery rate at which it would be called significant. */
export function adjusted(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[b]! - values[a]!);
  const out = new Array<number>(values.length).fill(1);
  let least = 1;
  order.forEach((place, i) => {
    least = Math.min(least, (values[place]! * values.length) / (values.length - i));
    out[place] = least;
  });
  return out;
}

/** For x >= 0, to 14 digits: the series DLMF 7.6.2 near zero, the continued fraction DLMF 7.9.1 elsewhere. */
function erfc(x: number): number {
  const scale = Math.exp(-x * x) / Math.sqrt(Math.PI);
  if (x < NEAR) {
    let term = x;
    let sum = x;
    for (let n = 1; n < TERMS; n += 1) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return 1 - 2 * scale * sum;
  }
  let below = x;
  for (let n = TERMS - 1; n >= 1; n -= 1) below = x + n / 2 / below;
  return scale / below;
}
