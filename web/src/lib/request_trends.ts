// Requests over the time of a task: rate, errors and percentiles, as steps that can be drawn.

import type { RequestSpans, TaskRequests } from "../api/types";
import { count, duration } from "./format";

export interface TrendLine {
  readonly title: string;
  /** One for each span; null where there is none. */
  readonly values: readonly (number | null)[];
}

export interface TrendChart {
  readonly title: string;
  /** One, or several on the same scale. */
  readonly lines: readonly TrendLine[];
  /** The highest of all; 0 without any. */
  readonly most: number;
  readonly text: (value: number) => string;
}

export interface Trends {
  readonly charts: readonly TrendChart[];
  /** Where each span begins, and where the last one ends: 0 to 1. */
  readonly edges: readonly number[];
  readonly seconds: number;
  /** Only the picked edge. */
  readonly ofEdge: boolean;
  /** Why it is not what the filters ask for; empty when it is. */
  readonly instead: string;
}

/** "3.2/s", "0.04/s". */
export function perSecond(rate: number): string {
  return `${rate >= 100 || rate === 0 ? count(rate) : rate.toFixed(rate >= 1 ? 1 : 2)}/s`;
}

function chart(title: string, lines: readonly TrendLine[], text: TrendChart["text"]): TrendChart {
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  return { title, lines, most, text };
}

interface Filter {
  /** Id of the picked edge; empty for all. */
  readonly edge: string;
  /** Other filters hide requests as well. */
  readonly narrower: boolean;
}

function insteadOf({ edge, narrower }: Filter, ofEdge: boolean, isSeen: boolean): string {
  const whose = ofEdge ? "all requests of this edge" : "all requests of all edges";
  if (edge !== "" && !ofEdge)
    return `Of ${whose}: ${isSeen ? "there was no room for this edge by itself" : "none were seen on this edge"}.`;
  return narrower ? `Of ${whose}: time is not kept by operation.` : "";
}

/** Null: nothing was kept, or nothing was seen. */
export function trendsOf(
  answer: Pick<TaskRequests, "over_time" | "window" | "operations">,
  filter: Filter,
): Trends | null {
  const { over_time, window } = answer;
  if (over_time === null || window === null) return null;
  const own: RequestSpans | undefined = Object.hasOwn(over_time.edges, filter.edge)
    ? over_time.edges[filter.edge]
    : undefined;
  const spans = own ?? over_time.all;
  const number = spans.count.length;
  const covered = window.to_ns - over_time.from_ns;
  if (number === 0 || covered <= 0 || !spans.count.some((each) => each > 0)) return null;
  const edges = Array.from({ length: number + 1 }, (_, i) =>
    i === number ? 1 : Math.min(1, (i * over_time.width_ns) / covered),
  );
  const rates = (counts: readonly number[]): number[] =>
    counts.map((each, i) => each / (((edges[i + 1]! - edges[i]!) * covered) / 1e9));
  return {
    charts: [
      chart("Requests", [{ title: "requests", values: rates(spans.count) }], perSecond),
      chart("Errors", [{ title: "errors", values: rates(spans.errors) }], perSecond),
      chart(
        "Latency",
        [
          { title: "p50", values: spans.p50_ns },
          { title: "p95", values: spans.p95_ns },
          { title: "p99", values: spans.p99_ns },
        ],
        duration,
      ),
    ],
    edges,
    seconds: covered / 1e9,
    ofEdge: own !== undefined,
    instead: insteadOf(
      filter,
      own !== undefined,
      answer.operations.some(({ edge }) => edge?.id === filter.edge),
    ),
  };
}

/** The path of a line of steps in a box of these sizes; spans without a value are left open. */
export function stepPath(
  values: readonly (number | null)[],
  edges: readonly number[],
  most: number,
  [wide, high]: readonly [number, number],
): string {
  const round = (value: number): string => value.toFixed(1);
  let path = "";
  let open = false;
  values.forEach((value, i) => {
    if (value !== null) {
      const y = round(high - 1 - (most === 0 ? 0 : (value / most) * (high - 3)));
      path += `${open ? "L" : "M"}${round(edges[i]! * wide)} ${y}H${round(edges[i + 1]! * wide)}`;
    }
    open = value !== null;
  });
  return path;
}

/** A chart in words: the highest of each line and the last one. */
export function chartText({ title, lines, text }: TrendChart): string {
  const said = lines.map((line) => {
    const known = line.values.filter((value) => value !== null);
    const last = known.at(-1);
    if (last === undefined) return `${line.title} not known`;
    return `${line.title} at most ${text(Math.max(...known))}, last ${text(last)}`;
  });
  return `${title} over time: ${said.join("; ")}`;
}
