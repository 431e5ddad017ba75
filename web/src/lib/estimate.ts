// What a task will give before it runs: how many samples, and how exact a share will be.

/** 95 % of a normal distribution lies within this many standard errors. */
const Z95 = 1.96;

/** Samples to expect: one for each period of CPU time. */
export function expectedSamples(seconds: number, hertz: number, cores: number): number {
  return seconds * hertz * cores;
}

/** Half width of the 95 % interval of a share, in percentage points; null without samples. */
export function resolutionPoints(samples: number, share: number): number | null {
  if (samples < 1) return null;
  return Z95 * Math.sqrt((share * (1 - share)) / samples) * 100;
}

/** Two significant digits: 831.6 -> "830". */
export function roughly(value: number): string {
  if (value < 1) return value <= 0 ? "0" : "< 1";
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return (Math.round(value / step) * step).toLocaleString();
}

/** The line under the form. */
export function estimateLine(seconds: number | null, hertz: number, cores: number): string {
  const perSecond = hertz * cores;
  if (seconds === null)
    return `${hertz} Hz × ${cores.toFixed(2)} cores ≈ ${roughly(perSecond)} samples each second, until stopped`;
  const samples = expectedSamples(seconds, hertz, cores);
  const points = resolutionPoints(samples, 0.1);
  const exact =
    points === null ? "too few to tell anything" : `±${points.toFixed(1)} points at a share of 10 %`;
  return `${seconds} s × ${hertz} Hz × ${cores.toFixed(2)} cores ≈ ${roughly(samples)} samples, ${exact}`;
}
