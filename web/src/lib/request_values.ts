// Values of requests in buckets: percentiles with what is known of them, and the bars of a picture.

import type { RequestValues, ValueBounds } from "../api/types";

export type Percentile = "p50" | "p90" | "p99";
export const PERCENTILES: readonly Percentile[] = ["p50", "p90", "p99"];

type Show = (value: number) => string;

/** A percentile as its bucket allows: "≤ 12.3 ms", the value itself where the bucket has one; "–" without values. */
export function percentileText(values: RequestValues, which: Percentile, show: Show): string {
  const bounds = values.bounds[which];
  if (bounds === null) return "–";
  const [from, to] = bounds;
  return from === to || show(from) === show(to) ? show(to) : `≤ ${show(to)}`;
}

/** The mean of those that are known, with how many these are when others are not: "1.2 KB (3 of 10)"; "–" without
 * values. */
export function meanText(values: RequestValues, unknown: number, show: Show): string {
  if (values.mean === null) return "–";
  const part = unknown > 0 ? ` (${values.count} of ${values.count + unknown})` : "";
  return `${show(values.mean)}${part}`;
}

/** Both bounds: "11.5 ms to 12.3 ms"; null without values. */
export function boundsText(bounds: ValueBounds | null, show: Show): string | null {
  if (bounds === null) return null;
  const [from, to] = bounds;
  return from === to ? show(to) : `${show(from)} to ${show(to)}`;
}

/** Place on an axis with a step for each doubling; 0 has one too. */
function place(value: number): number {
  return Math.log2(value + 1);
}

export interface SpreadBar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Left and right edge, 0 to 1. */
  readonly left: number;
  readonly right: number;
  /** 0 to 1, of the highest bar of its row; by count per width, so that areas are counts. */
  readonly height: number;
}

export interface SpreadRow {
  readonly bars: readonly SpreadBar[];
  /** Where the percentiles lie, 0 to 1. */
  readonly marks: readonly {
    readonly which: Percentile;
    readonly left: number;
    readonly right: number;
  }[];
}

export interface SpreadPicture {
  /** One for each of the values that were given. */
  readonly rows: readonly SpreadRow[];
  readonly ticks: readonly { readonly value: number; readonly at: number }[];
}

/** Room between the labels of an axis, as a part of it. */
const LEAST_GAP = 0.18;
/** Labels are centred: nearer to an end they would be cut. */
const LEAST_INSET = 0.06;

/** Round numbers from the first to the last, as many as have room. `base`: 10, or 1024 for bytes. */
function ticksBetween(first: number, last: number, at: (value: number) => number, base: number): number[] {
  const steps = base === 10 ? [1, 2, 5] : [1, 4, 16, 64, 256];
  const all: number[] = first === 0 ? [0] : [];
  for (let power = 1; power <= last && Number.isFinite(power); power *= base)
    for (const step of steps) if (step * power >= first && step * power <= last) all.push(step * power);
  const whole = all.filter((value) => value === 0 || Number.isInteger(Math.log(value) / Math.log(base)));
  const kept: number[] = [];
  // Whole powers have the first choice.
  for (const value of [...whole, ...all])
    if (
      at(value) >= LEAST_INSET &&
      at(value) <= 1 - LEAST_INSET &&
      kept.every((other) => Math.abs(at(other) - at(value)) >= LEAST_GAP)
    )
      kept.push(value);
  return kept.sort((a, b) => a - b);
}

/** Bars of several sets of values over one logarithmic axis; null when none has a value. */
export function spreadPicture(
  sets: readonly (RequestValues | null)[],
  base: 10 | 1024,
): SpreadPicture | null {
  const buckets = sets.flatMap((values) => values?.buckets ?? []);
  if (buckets.length === 0) return null;
  const first = Math.min(...buckets.map(([from]) => from));
  const last = Math.max(...buckets.map(([, to]) => to));
  const [start, end] = [place(first), place(last + 1)];
  const at = (value: number): number => Math.min(1, Math.max(0, (place(value) - start) / (end - start)));
  const rows = sets.map((values): SpreadRow => {
    const found = values?.buckets ?? [];
    const bars = found.map(([from, to, count]) => ({
      from,
      to,
      count,
      left: at(from),
      right: at(to + 1),
      height: count / Math.max(1e-9, at(to + 1) - at(from)),
    }));
    const most = Math.max(...bars.map(({ height }) => height));
    const marks = PERCENTILES.flatMap((which) => {
      const bounds = values?.bounds[which];
      return bounds ? [{ which, left: at(bounds[0]), right: at(bounds[1] + 1) }] : [];
    });
    return { bars: bars.map((bar) => ({ ...bar, height: bar.height / most })), marks };
  });
  const ticks = ticksBetween(first, last, at, base).map((value) => ({ value, at: at(value) }));
  return { rows, ticks };
}
