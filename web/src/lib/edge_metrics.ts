// The metrics of one end of an edge: one table of what they are called and how they are read.

import type { EdgeSide, Histogram, SideSeries, ValueSeries } from "../api/types";

/** Metrics that the API has both as totals and as series. */
type MetricId = Exclude<keyof EdgeSide & keyof SideSeries, "connections">;

/** What the page calls a metric. */
export type MetricKey =
  | "write"
  | "read"
  | "rtt"
  | "connect"
  | "accept"
  | "close"
  | "wait"
  | "retransmit"
  | "drop"
  | "reset"
  | "error";

export interface EdgeMetric {
  /** Its name in the API, also where the API says why it is missing. */
  readonly id: MetricId;
  readonly title: string;
  readonly help: string;
  /** What is counted, in the plural. */
  readonly unit: string;
  /** Nanoseconds of a unit of its values. */
  readonly unitNs: number;
}

function metric(id: MetricId, title: string, help: string, unit: string, unitNs = 1): EdgeMetric {
  return { id, title, help, unit, unitNs };
}

function calls(id: "write" | "read", title: string): EdgeMetric {
  return metric(id, title, `${title}: calls that moved something; their time, where it is measured`, "calls");
}

/** In the order in which they are shown. */
export const EDGE_METRICS: Readonly<Record<MetricKey, EdgeMetric>> = {
  write: calls("write", "Write"),
  read: calls("read", "Read"),
  rtt: metric(
    "write_rtt_us",
    "Smoothed RTT",
    "Smoothed by the kernel (srtt) and looked at with each write. Acknowledgements that the peer delays are in it, so it can be the time of the peer's response",
    "values",
    1e3,
  ),
  connect: metric("connect", "Connect", "SYN to SYN-ACK", "connected"),
  accept: metric(
    "accept",
    "Accept wait",
    "From the establishment until the process took the connection out of the queue",
    "accepted",
  ),
  close: metric("close", "Close", "From the end of sending until the socket was closed", "closed"),
  wait: metric("receive_wait", "Receive wait", "From the arrival of data until the process read it", "reads"),
  retransmit: metric("retransmit", "Retransmits", "Segments that were retransmitted", "segments"),
  drop: metric("drop", "Drops", "Packets that the kernel dropped, by its own reasons", "packets"),
  reset: metric("reset", "Resets", "RST sent or received", "resets"),
  error: metric("error", "Errors", "Connections that ended with an error, by its number", "errors"),
};

/** Values of one end over the whole time. */
export interface Times {
  readonly count: number;
  readonly sum: number;
  readonly histogram: Histogram;
  /** Nanoseconds of a unit. */
  readonly unitNs: number;
}

/** The values of a metric at one end; null where it has none or they were not measured. */
export function timesOf(side: EdgeSide, key: MetricKey): Times | null {
  const { id, unitNs } = EDGE_METRICS[key];
  const found = side[id];
  if (found === null || !("histogram" in found) || found.histogram === null) return null;
  const sum = "sum" in found ? found.sum : found.time_ns;
  return sum === null ? null : { count: found.count, sum, histogram: found.histogram, unitNs };
}

/** Values of several ends in one histogram; null when none has any. */
export function histogramOfSides(sides: readonly (EdgeSide | null)[], key: MetricKey): Histogram | null {
  let all: Histogram | null = null;
  for (const side of sides) {
    const found = side === null ? undefined : timesOf(side, key)?.histogram;
    if (found === undefined) continue;
    all =
      all === null
        ? found
        : { bounds: all.bounds, counts: all.counts.map((value, i) => value + (found.counts[i] ?? 0)) };
  }
  return all;
}

/** What each step of a series counted; null: not measured. */
export interface Counted {
  readonly count: readonly number[] | null;
  readonly bytes: readonly number[] | null;
  readonly values: ValueSeries | null;
  /** Parts of the count by name; untrusted. */
  readonly parts: Readonly<Record<string, readonly number[]>>;
}

/** A metric over time at one end. */
export function countedOf(series: SideSeries, key: MetricKey): Counted {
  const found = series[EDGE_METRICS[key].id];
  const counted = { count: null, bytes: null, values: null, parts: {} };
  if (found === null) return counted;
  if ("by_name" in found) return { ...counted, count: found.count, parts: found.by_name };
  if ("bytes" in found) return { ...counted, count: found.count, bytes: found.bytes, values: found.time };
  if ("sent" in found) {
    const { sent, received } = found;
    return {
      ...counted,
      count: sent.map((value, i) => value + (received[i] ?? 0)),
      parts: { sent, received },
    };
  }
  if (!("buckets" in found)) return { ...counted, count: found };
  const failed = key === "connect" ? series.connects_failed : null;
  return { ...counted, count: found.count, values: found, parts: failed === null ? {} : { failed } };
}
