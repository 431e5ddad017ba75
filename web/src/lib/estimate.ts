// What a task will give before it runs: how many samples, and how exact a share will be.

import type { Process } from "../api/types";
import { count } from "./format";

/** 95 % of a normal distribution lies within this many standard errors. */
const Z95 = 1.96;

/** Cores that the processes use now; null where none has a reading. */
export function coresOf(processes: readonly Process[]): number | null {
  const known = processes.flatMap(({ cpu_percent }) => cpu_percent ?? []);
  return known.length === 0 ? null : known.reduce((sum, percent) => sum + percent, 0) / 100;
}

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
  return count(Math.round(value / step) * step);
}

/** A share is told well enough within so many points. */
const GOOD_POINTS = 2;

/** Seconds after which a share of 10 % is told within that; rounded up to what people type. */
function goodSeconds(seconds: number, points: number): number {
  const needed = seconds * (points / GOOD_POINTS) ** 2;
  const step = needed < 60 ? 5 : needed < 600 ? 10 : 60;
  return Math.ceil(needed / step) * step;
}

/** Without a reading of the target's CPU, and where what is shown does not depend on it. */
const USUAL_SECONDS = 30;
/** More than this has to be asked for: a target that does next to nothing would need many minutes. */
export const MOST_SECONDS = 60;

/**
 * Seconds in which a share of 10 % of the CPU time is told within two points, between 10 and 60. `sampled`: shares of CPU time
 * (or of time off it) are what is shown; `cores`: as now, null where it is not known.
 */
export function recommendedSeconds(sampled: boolean, hertz: number, cores: number | null): number {
  if (!sampled || cores === null) return USUAL_SECONDS;
  const points = resolutionPoints(expectedSamples(10, hertz, cores), 0.1);
  return points === null ? MOST_SECONDS : Math.min(MOST_SECONDS, Math.max(10, goodSeconds(10, points)));
}

/** The line under the form. */
export function estimateLine(seconds: number | null, hertz: number, cores: number): string {
  const perSecond = hertz * cores;
  if (seconds === null)
    return `About ${roughly(perSecond)} samples each second (${hertz} Hz × ${cores.toFixed(2)} cores as now), until stopped.`;
  const samples = expectedSamples(seconds, hertz, cores);
  const points = resolutionPoints(samples, 0.1);
  const about = `About ${roughly(samples)} samples (${seconds} s × ${hertz} Hz × ${cores.toFixed(2)} cores as now)`;
  if (points === null) return `${about}: too few to tell anything.`;
  const exact = `${about}: a function of 10 % reads 10 ± ${points.toFixed(1)} %.`;
  // One digit is shown: what reads as good is good.
  if (Number(points.toFixed(1)) <= GOOD_POINTS) return exact;
  return `${exact} For ± ${GOOD_POINTS} %, record ${count(goodSeconds(seconds, points))} s.`;
}
