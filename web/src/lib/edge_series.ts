// One edge over time: what the page of an edge shows, made of exact counts for each step.

import type { EdgeSeries, Histogram, SideSeries, ValueSeries } from "../api/types";
import { type Counted, countedOf, EDGE_METRICS, type EdgeMetric, type MetricKey } from "./edge_metrics";
import type { Between } from "./edges";
import { percentile } from "./edges";
import { moment } from "./format";

export type Steps = EdgeSeries["steps_ms"];

/** What stands in a row: how long it took to connect, at the client, and to be accepted, at the server, are one. */
export type RowKey = Exclude<MetricKey, "accept">;

/** One measured thing at one end. */
export interface Row extends Omit<EdgeMetric, "id">, Counted {
  /** Why it is not measured, where it is not. */
  readonly reason: string;
  /** Why there are no times, where there could be. */
  readonly timesReason: string;
}

export const ROWS = Object.keys(EDGE_METRICS).filter((key): key is RowKey => key !== "accept");

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0);
}

/** Seconds that the steps cover. */
export function seconds(steps: Steps): number {
  return sum(steps.map(([from, to]) => to - from)) / 1000;
}

/** First and last moment; null without steps. */
export function span(steps: Steps): readonly [number, number] | null {
  const first = steps[0];
  const last = steps.at(-1);
  return first === undefined || last === undefined ? null : [first[0], last[1]];
}

/** "14:03:22 to 14:03:32 (10–20 s)"; without the clock where it is not known when counting began. */
export function stepText([from, to]: readonly [number, number], zeroNs: number | null): string {
  const seconds = `${from / 1000}–${to / 1000} s`;
  if (zeroNs === null) return seconds;
  const clock = (ms: number): string => moment(zeroNs + ms * 1e6);
  return `${clock(from)} to ${clock(to)} (${seconds})`;
}

/** Numbers of an edge of a collection without an end are over the last minute, */
const RECENT_MS = 60_000;
/** which begins anew at each of these, so that it is asked for seldom. */
const BEGINS_MS = 10_000;

/** Where the last minute of a series begins; null when the whole is not longer. */
export function recentFrom(steps: Steps): number | null {
  const covered = span(steps);
  if (covered === null) return null;
  const from = Math.floor((covered[1] - RECENT_MS) / BEGINS_MS) * BEGINS_MS;
  return from > covered[0] ? from : null;
}

/** The time of the same length before a range, as far as counting had begun; null when it had not. */
export function timeBefore(from: number, to: number): { readonly from: number; readonly to: number } | null {
  const start = Math.max(0, from - (to - from));
  return from > start && to > from ? { from: start, to: from } : null;
}

/** Numbers of each step as rates per second. */
export function rates(steps: Steps, numbers: readonly number[]): number[] {
  return numbers.map((number, i) => {
    const [from, to] = steps[i] ?? [0, 0];
    return to > from ? (number * 1000) / (to - from) : 0;
  });
}

/** Steps that are drawn as one: from the first of them to before the last. */
export interface Group {
  readonly first: number;
  readonly end: number;
}

/**
 * Neighbouring steps joined, so that about `most` are left: a drawing has no more columns. Steps with a pause between
 * them stay apart.
 */
export function joinSteps(steps: Steps, most: number): readonly Group[] {
  const covered = span(steps);
  if (covered === null || steps.length <= most) return steps.map((_, i) => ({ first: i, end: i + 1 }));
  const least = (covered[1] - covered[0]) / most;
  const groups: Group[] = [];
  let first = 0;
  for (let i = 1; i <= steps.length; i += 1) {
    const joined = i < steps.length && steps[i - 1]![1] === steps[i]![0];
    if (joined && steps[i]![1] - steps[first]![0] <= least) continue;
    groups.push({ first, end: i });
    first = i;
  }
  return groups;
}

/** The time of each group. */
export function groupSteps(steps: Steps, groups: readonly Group[]): Steps {
  return groups.map(({ first, end }) => [steps[first]![0], steps[end - 1]![1]]);
}

/** The highest value of each group: a peak of one step is still seen. */
export function peaks(values: readonly number[], groups: readonly Group[]): number[] {
  return groups.map(({ first, end }) => Math.max(0, ...values.slice(first, end)));
}

/** Values of each group, added up bucket by bucket. */
export function joinValues(values: ValueSeries, groups: readonly Group[]): ValueSeries {
  const added = (numbers: readonly number[]): number[] =>
    groups.map(({ first, end }) => sum(numbers.slice(first, end)));
  const buckets = groups.map(({ first, end }) => {
    const counts = new Map<number, number>();
    for (let i = first; i < end; i += 1)
      for (const [bucket, number] of values.buckets[i] ?? [])
        counts.set(bucket, (counts.get(bucket) ?? 0) + number);
    return [...counts].sort(([a], [b]) => a - b);
  });
  return { ...values, count: added(values.count), sum: added(values.sum), buckets };
}

/** All steps in one histogram: exact, because every step counts in the same buckets. */
export function histogramOf(values: ValueSeries): Histogram {
  const counts = new Array<number>(values.bounds.length + 1).fill(0);
  for (const step of values.buckets)
    for (const [bucket, number] of step) if (bucket < counts.length) counts[bucket]! += number;
  return { bounds: values.bounds, counts };
}

/** The histogram of one step. */
export function stepHistogram(values: ValueSeries, step: number): Histogram {
  return histogramOf({ ...values, buckets: values.buckets.slice(step, step + 1) });
}

/** The step that a moment lies in; null between and beside steps. */
export function stepAt(steps: Steps, ms: number): number | null {
  let [low, high] = [0, steps.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [from, to] = steps[middle]!;
    if (ms < from) high = middle - 1;
    else if (ms >= to) low = middle + 1;
    else return middle;
  }
  return null;
}

function scaled(ns: number): readonly [number, string] {
  if (ns < 1e6) return [1e3, "µs"];
  return ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
}

const number = (value: number): string => String(Number(value.toFixed(3)));

/** A bucket in words: "between 20 and 25 ms". */
export function betweenWords({ above, upTo }: Between, unitNs: number): string {
  if (above === null) return "below 1 µs";
  const [scale, unit] = scaled((upTo ?? above) * unitNs);
  const from = number((above * unitNs) / scale);
  return upTo === null
    ? `above ${from} ${unit}`
    : `between ${from} and ${number((upTo * unitNs) / scale)} ${unit}`;
}

export const SHARES = [0.5, 0.95, 0.99] as const;

/** p50, p95 and p99, as far as buckets tell. */
export function percentiles(histogram: Histogram): readonly { share: number; between: Between }[] {
  return SHARES.flatMap((share) => {
    const between = percentile(histogram, share);
    return between === null ? [] : [{ share, between }];
  });
}

/** A cell of a heat map: step, bucket, and how dark it is (1 to 5). */
export interface Cell {
  readonly step: number;
  readonly bucket: number;
  readonly level: number;
}

export interface Heat {
  readonly cells: readonly Cell[];
  /** Buckets that are shown, from the lowest to the highest used. */
  readonly low: number;
  readonly high: number;
}

export const HEAT_LEVELS = 5;

/** Null when there is nothing. Levels grow with the logarithm of the count per second. */
export function heatOf(steps: Steps, values: ValueSeries): Heat | null {
  let [low, high, most] = [Number.POSITIVE_INFINITY, -1, 0];
  const cells: { step: number; bucket: number; rate: number }[] = [];
  values.buckets.forEach((buckets, step) => {
    const [from, to] = steps[step] ?? [0, 0];
    for (const [bucket, count] of buckets) {
      const rate = count / Math.max(1, to - from);
      low = Math.min(low, bucket);
      high = Math.max(high, bucket);
      most = Math.max(most, rate);
      cells.push({ step, bucket, rate });
    }
  });
  if (high < 0) return null;
  const top = Math.log1p(most * 1000);
  const level = (rate: number): number =>
    Math.max(1, Math.ceil((Math.log1p(rate * 1000) / top) * HEAT_LEVELS));
  return {
    cells: cells.map(({ step, bucket, rate }) => ({
      step,
      bucket,
      level: Math.min(HEAT_LEVELS, level(rate)),
    })),
    low,
    high,
  };
}

/** Lower and upper bound of a bucket in nanoseconds, with ends for the open ones that can be drawn. */
export function drawnBounds(histogram: Histogram, bucket: number, unitNs: number): readonly [number, number] {
  const { bounds } = histogram;
  const least = 1e3 * 0.5;
  const upTo = bounds[bucket];
  const above = bounds[bucket - 1];
  const low = above === undefined ? least : Math.max(1e3, above * unitNs);
  const high = upTo === undefined ? low * 2 : Math.max(1e3, upTo * unitNs);
  return [Math.min(low, high), high > low ? high : low * 2];
}

type Reasons = Readonly<Record<string, string>>;

/** What is shown at one end. `side`: which end it is. */
export function rowsOf(
  series: SideSeries,
  reasons: Reasons,
  side: "client" | "server",
): Readonly<Record<RowKey, Row>> {
  const reason = (metric: string): string => reasons[metric] ?? "no reason is given";
  const row = (key: RowKey): Row => {
    const own = key === "connect" && side === "server" ? "accept" : key;
    const { id, ...metric } = EDGE_METRICS[own];
    const counted = countedOf(series, own);
    const untimed = counted.bytes !== null && counted.values === null;
    return {
      ...metric,
      ...counted,
      reason: reason(id),
      timesReason: untimed ? reason(`${id}.time_ns`) : "",
    };
  };
  return Object.fromEntries(ROWS.map((key) => [key, row(key)])) as Record<RowKey, Row>;
}
