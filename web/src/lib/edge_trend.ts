// An edge over its whole time in a few columns each: the small lines beside the numbers of the map's panel.

import type { EdgeSeries } from "../api/types";
import { type Group, groupSteps, joinSteps, type Steps, sum } from "./edge_series";

export interface Trend {
  readonly key: "bytes" | "calls" | "rtt" | "retransmits" | "drops" | "errors";
  readonly title: string;
  /** Of each column: a rate per second, or a mean in microseconds of those that have one. Null: not measured. */
  readonly values: readonly number[] | null;
}

function perSecond(steps: Steps, groups: readonly Group[], numbers: readonly number[]): number[] {
  return groupSteps(steps, groups).map(([from, to], i) => {
    const { first, end } = groups[i]!;
    return to > from ? (sum(numbers.slice(first, end)) * 1000) / (to - from) : 0;
  });
}

const added = (a: readonly number[], b: readonly number[]): number[] => a.map((one, i) => one + (b[i] ?? 0));

/** Six numbers as the client saw them, or the server where the client was not watched. */
export function trendsOf(series: EdgeSeries, columns: number): readonly Trend[] {
  const steps = series.steps_ms;
  const side = series.client ?? series.server;
  if (side === null || steps.length === 0) return [];
  const groups = joinSteps(steps, columns);
  const rate = (numbers: readonly number[] | null | undefined): readonly number[] | null =>
    numbers == null ? null : perSecond(steps, groups, numbers);
  const { write, read, write_rtt_us: rtt } = side;
  const mean =
    rtt === null
      ? null
      : groups.flatMap(({ first, end }) => {
          const values = sum(rtt.count.slice(first, end));
          return values === 0 ? [] : [sum(rtt.sum.slice(first, end)) / values];
        });
  const both = write !== null && read !== null;
  return [
    { key: "bytes", title: "Bytes", values: both ? rate(added(write.bytes, read.bytes)) : null },
    { key: "calls", title: "Calls", values: both ? rate(added(write.count, read.count)) : null },
    { key: "rtt", title: "Smoothed RTT", values: mean },
    { key: "retransmits", title: "Retransmits", values: rate(side.retransmit) },
    { key: "drops", title: "Drops", values: rate(side.drop?.count) },
    { key: "errors", title: "Errors", values: rate(side.error?.count) },
  ];
}
