// A request beside the median one of its operation, as far as that is known.

import type { RequestOperation, RequestSample, Task, TaskRequests } from "../api/types";
import { count, duration } from "./format";
import { hasAll } from "./request_legs";
import { percentileText } from "./request_values";
import { operationOf, type SampleRow, samplesOf } from "./requests";

export interface MedianRow {
  readonly title: string;
  readonly own: string;
  /** Null: not known. */
  readonly median: string | null;
  /** How many times the median it is; null where one of both is not known or zero. */
  readonly times: number | null;
}

export interface AgainstMedian {
  readonly rows: readonly MedianRow[];
  /** Which requests the median is of. */
  readonly of: string;
  /** What is missing, and what would help; empty for nothing. */
  readonly missing: string;
  /** A request that took about as long as the median one; null where none is known. */
  readonly near: SampleRow | null;
}

type Times = Pick<RequestSample, "duration_ns" | "request_end_ns" | "first_byte_ns">;

const PARTS: readonly (readonly [string, (times: Times) => number | null])[] = [
  ["Request sent", ({ request_end_ns }) => request_end_ns],
  [
    "Waiting for the response",
    ({ request_end_ns: sent, first_byte_ns: first }) =>
      sent === null || first === null || first < sent ? null : first - sent,
  ],
  [
    "Response",
    ({ duration_ns, first_byte_ns }) => (first_byte_ns === null ? null : duration_ns - first_byte_ns),
  ],
];

function middle(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[(values.length - 1) >> 1] ?? null;
}

function row(title: string, own: number | null, median: number | null, text?: string): MedianRow {
  return {
    title,
    own: own === null ? "not seen" : duration(own),
    median: median === null ? null : (text ?? duration(median)),
    times: own === null || median === null || median <= 0 ? null : own / median,
  };
}

const isWhole = ({ outcome }: RequestSample): boolean => outcome !== "broken" && outcome !== "unknown";

/** By all requests of the operation that the same end saw whole. */
function byHistogram(operation: RequestOperation, sample: RequestSample): MedianRow[] {
  const side = operation[sample.seen_by];
  const median = (title: string, own: number | null, values: RequestOperation["latency_ns"] | undefined) =>
    row(title, own, values?.p50 ?? null, values && percentileText(values, "p50", duration));
  return [
    median("Whole", sample.duration_ns, side?.latency_ns),
    median("Until the first byte of the response", sample.first_byte_ns, side?.first_byte_ns),
  ];
}

/** Null: its operation is not known by itself. */
export function againstMedian(
  sample: RequestSample,
  answer: TaskRequests,
  rows: readonly SampleRow[],
  task: Pick<Task, "requests">,
): AgainstMedian | null {
  const operation = operationOf(sample, answer.operations);
  if (operation === null) return null;
  const all = task.requests?.samples === "all";
  const seen = operation[sample.seen_by]?.latency_ns.count ?? 0;
  const of = `Medians are of the ${count(seen)} requests of this operation that the ${sample.seen_by}'s end saw whole`;
  const whole = byHistogram(operation, sample);
  if (!all) {
    const unknown = PARTS.map(([title, value]) => row(title, value(sample), null));
    return {
      rows: [...whole, ...unknown],
      of: `${of}, whichever are kept as samples.`,
      missing:
        "Parts of the median request are not known: only the slowest and the failing requests are kept, which are not like the others. A task that keeps all samples has them.",
      near: null,
    };
  }
  const alike = samplesOf(operation, rows, answer.operations).filter(
    (found) => found.sample.seen_by === sample.seen_by && isWhole(found.sample),
  );
  const parts = PARTS.map(([title, value]) => {
    const known = alike.flatMap((found) => value(found.sample) ?? []);
    const few = known.length < alike.length ? ` (seen of ${count(known.length)})` : "";
    const median = middle(known);
    return row(title, value(sample), median, median === null ? undefined : `${duration(median)}${few}`);
  });
  const length = middle(alike.map((found) => found.sample.duration_ns));
  return {
    rows: [...whole, ...parts],
    of: `${of}; those of parts are of the ${count(alike.length)} of them that are samples.`,
    missing: hasAll(answer, task.requests?.samples)
      ? ""
      : `${count(answer.samples_left_out)} later requests of the task had no room, so parts are those of its beginning.`,
    near: alike.find((found) => found.sample.duration_ns === length) ?? null,
  };
}

/** "3.2×". */
export function timesText(times: number): string {
  return `${times < 10 ? times.toFixed(times < 0.1 ? 2 : 1) : count(times)}×`;
}
