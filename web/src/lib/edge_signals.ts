// What the map says about a line: the numbers that can stand on it, and which lines are bad.

import type { Edge, EdgeSide, Histogram } from "../api/types";
import { lostPackets } from "./drop_reasons";
import { histogramOfSides } from "./edge_metrics";
import { type Between, betweenText, percentile } from "./edges";
import { bytes, count, duration, plural } from "./format";

export type EdgeLabel = "bytes" | "ops" | "rtt" | "wait" | "connect" | "retransmits" | "drops" | "errors";
export type EdgeSignal = "trouble" | "retransmits" | "drops" | "resets" | "errors" | "rtt";

export const EDGE_LABELS: readonly { readonly key: EdgeLabel; readonly title: string }[] = [
  { key: "bytes", title: "bytes/s" },
  { key: "ops", title: "calls/s" },
  { key: "rtt", title: "minimum RTT" },
  { key: "wait", title: "receive wait p95" },
  { key: "connect", title: "connect p95" },
  { key: "retransmits", title: "retransmits/s" },
  { key: "drops", title: "drops/s" },
  { key: "errors", title: "errors/s" },
];

export const EDGE_SIGNALS: readonly { readonly key: EdgeSignal; readonly title: string }[] = [
  { key: "trouble", title: "any trouble" },
  { key: "retransmits", title: "retransmits" },
  { key: "drops", title: "lost packets" },
  { key: "resets", title: "resets" },
  { key: "errors", title: "errors" },
  { key: "rtt", title: "minimum RTT" },
];

export const MAX_LABELS = 2;
/** Lines that are marked at most. */
export const MARKED = 5;

export function sidesOf(edges: readonly Edge[]): EdgeSide[] {
  return edges.flatMap(({ metrics }) =>
    [metrics.client, metrics.server].filter((side): side is EdgeSide => side !== null),
  );
}

/** The client's view of each edge; the server's where the client was not watched. */
function views(edges: readonly Edge[]): EdgeSide[] {
  return edges.flatMap(({ metrics }) => {
    const side = metrics.client ?? metrics.server;
    return side === null ? [] : [side];
  });
}

/** Sum of what was measured; null when it was not measured. */
function sum(
  sides: readonly EdgeSide[],
  value: (side: EdgeSide) => number | null | undefined,
): number | null {
  let all: number | null = null;
  for (const side of sides) {
    const found = value(side);
    if (found !== null && found !== undefined) all = (all ?? 0) + found;
  }
  return all;
}

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter((value): value is number => value !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The counters of a line, as numbers that only grow; null where they are not measured. */
export interface Counters {
  readonly bytes: number | null;
  readonly ops: number | null;
  readonly retransmits: number | null;
  readonly drops: number | null;
  /** Of the drops, those after which data is missing. */
  readonly lost: number | null;
  readonly resets: number | null;
  readonly errors: number | null;
  /** Smoothed round-trip times, microseconds. */
  readonly rtt: Histogram | null;
  /** The smallest round trip in microseconds, of the whole time. */
  readonly minRtt: number | null;
  readonly wait: Histogram | null;
  readonly connect: Histogram | null;
}

export function countersOf(edges: readonly Edge[]): Counters {
  const all = sidesOf(edges);
  const seen = views(edges);
  return {
    bytes: sum(seen, ({ write, read }) => (write || read ? (write?.bytes ?? 0) + (read?.bytes ?? 0) : null)),
    ops: sum(seen, ({ write, read }) => (write || read ? (write?.count ?? 0) + (read?.count ?? 0) : null)),
    retransmits: sum(all, (side) => side.retransmit?.count),
    drops: sum(all, (side) => side.drop?.count),
    lost: sum(all, ({ drop }) => (drop === null ? null : lostPackets(drop.count, drop.by_reason))),
    resets: sum(
      edges.flatMap(({ metrics: { client, server } }) => client ?? server ?? []),
      (side) => side.reset?.count,
    ),
    errors: sum(all, (side) => side.error?.count),
    rtt: histogramOfSides(seen, "rtt"),
    minRtt: least(seen.map((side) => side.min_rtt_us)),
    wait: histogramOfSides(all, "wait"),
    connect: histogramOfSides(seen, "connect"),
  };
}

const minus = (now: number | null, before: number | null): number | null =>
  now === null ? null : Math.max(0, now - (before ?? 0));

function lessHistogram(now: Histogram | null, before: Histogram | null): Histogram | null {
  if (now === null || before === null) return now;
  return {
    bounds: now.bounds,
    counts: now.counts.map((value, i) => Math.max(0, value - (before.counts[i] ?? 0))),
  };
}

/** What was counted since `before`. */
export function countersSince(now: Counters, before: Counters): Counters {
  return {
    bytes: minus(now.bytes, before.bytes),
    ops: minus(now.ops, before.ops),
    retransmits: minus(now.retransmits, before.retransmits),
    drops: minus(now.drops, before.drops),
    lost: minus(now.lost, before.lost),
    resets: minus(now.resets, before.resets),
    errors: minus(now.errors, before.errors),
    rtt: lessHistogram(now.rtt, before.rtt),
    minRtt: now.minRtt,
    wait: lessHistogram(now.wait, before.wait),
    connect: lessHistogram(now.connect, before.connect),
  };
}

/** A rate with three digits at most: "0.25/s", "12/s". */
export function rateText(value: number): string {
  if (value === 0) return "0/s";
  if (value < 0.01) return "< 0.01/s";
  return `${value < 10 ? Number(value.toFixed(2)) : count(value)}/s`;
}

function p95(histogram: Histogram | null): Between | null {
  return histogram === null ? null : percentile(histogram, 0.95);
}

/** The text of a label; a dash with the name where nothing is known. */
export function labelText(label: EdgeLabel, counters: Counters, seconds: number): string {
  const rate = (value: number | null, name: string): string =>
    value === null || seconds <= 0 ? `${name} –` : `${name} ${rateText(value / seconds)}`;
  const time = (histogram: Histogram | null, unitNs: number, name: string): string => {
    const between = p95(histogram);
    return between === null ? `${name} –` : `${name} ${betweenText(between, unitNs)}`;
  };
  switch (label) {
    case "bytes":
      return counters.bytes === null || seconds <= 0 ? "bytes –" : `${bytes(counters.bytes / seconds)}/s`;
    case "ops":
      return counters.ops === null || seconds <= 0 ? "calls –" : rateText(counters.ops / seconds);
    case "rtt":
      return counters.minRtt === null ? "min RTT –" : `min RTT ${duration(counters.minRtt * 1e3)}`;
    case "wait":
      return time(counters.wait, 1, "wait");
    case "connect":
      return time(counters.connect, 1, "connect");
    case "retransmits":
      return rate(counters.retransmits, "retr");
    case "drops":
      return rate(counters.drops, "drop");
    case "errors":
      return rate(counters.errors, "err");
  }
}

/** Retransmits and lost packets for each call, from which on they are trouble: TCP lives with fewer. */
const TROUBLE_SHARE = 0.001;

/** A number of packets where there are many for the calls of the same time; 0 otherwise. */
function many(packets: number | null, { ops }: Counters): number {
  return packets !== null && packets > (ops ?? 0) * TROUBLE_SHARE ? packets : 0;
}

/** How bad a line is in the window of `counters`, for comparing; 0 is good. */
export function badness(signal: EdgeSignal, counters: Counters): number {
  switch (signal) {
    case "trouble":
      return (
        many(counters.retransmits, counters) +
        many(counters.lost, counters) +
        (counters.resets ?? 0) +
        (counters.errors ?? 0)
      );
    case "retransmits":
      return many(counters.retransmits, counters);
    case "drops":
      return many(counters.lost, counters);
    case "resets":
      return counters.resets ?? 0;
    case "errors":
      return counters.errors ?? 0;
    case "rtt":
      return counters.minRtt ?? 0;
  }
}

/** What went wrong on a line in the window of `counters`, in words; empty when nothing did. */
export function troubleText(counters: Counters): string {
  const parts = [
    [many(counters.retransmits, counters), "retransmit"],
    [many(counters.lost, counters), "lost packet"],
    [counters.resets, "reset"],
    [counters.errors, "error"],
  ] as const;
  return parts
    .filter(([number]) => number !== null && number > 0)
    .map(([number, name]) => plural(number!, name))
    .join(", ");
}

/** Why a line is marked. */
export function markText(signal: EdgeSignal, counters: Counters): string {
  if (signal !== "rtt") return troubleText(counters);
  return counters.minRtt === null ? "" : labelText("rtt", counters, 0);
}

/** Keys of the worst lines, worst first; never those where nothing is wrong. */
export function worst<T extends { readonly key: string; readonly trouble: Counters }>(
  lines: readonly T[],
  signal: EdgeSignal,
): string[] {
  return lines
    .map(({ key, trouble }) => ({ key, value: badness(signal, trouble) }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value || (a.key < b.key ? -1 : 1))
    .slice(0, MARKED)
    .map(({ key }) => key);
}
