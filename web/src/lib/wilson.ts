// How sure a share is that was counted from samples.

/** Two-sided 95 % of a normal distribution. */
const Z = 1.959964;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The 95 % interval (Wilson's score) of the share `hits / samples`, between 0 and 1; null without
 * samples. It holds for samples that are independent of each other.
 */
export function wilson(hits: number, samples: number): Interval | null {
  if (!(samples > 0) || hits < 0 || hits > samples) return null;
  const share = hits / samples;
  const square = Z * Z;
  const middle = (share + square / (2 * samples)) / (1 + square / samples);
  const spread =
    (Z / (1 + square / samples)) *
    Math.sqrt((share * (1 - share)) / samples + square / (4 * samples * samples));
  // The formula gives exactly 0 and 1 at the ends; floating point does not.
  return { low: hits === 0 ? 0 : middle - spread, high: hits === samples ? 1 : middle + spread };
}
