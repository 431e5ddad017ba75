// Edges between processes: what the table sorts, filters and shows, as pure functions.

import type { Edge, EdgeEnd, EdgeSide, Histogram, NamedContainers } from "../api/types";
import { nameText } from "./container_names";
import { type Before, edgeOpen, edgeRate } from "./edge_activity";
import { histogramOfSides } from "./edge_metrics";
import { duration } from "./format";

/** The process, or the address where none is known. */
export function endName(end: EdgeEnd): string {
  return end.comm ?? end.name ?? end.address;
}

/** Where a value lies: above `above` and not above `upTo`, in the unit of the histogram. */
export interface Between {
  readonly above: number | null;
  readonly upTo: number | null;
}

/** The bucket of a percentile; null without values. */
export function percentile(histogram: Histogram, share: number): Between | null {
  const all = histogram.counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const rank = Math.max(1, Math.ceil(all * share));
  let seen = 0;
  const found = histogram.counts.findIndex((count) => {
    seen += count;
    return seen >= rank;
  });
  return bucket(histogram, found);
}

function bucket(histogram: Histogram, index: number): Between {
  return { above: histogram.bounds[index - 1] ?? null, upTo: histogram.bounds[index] ?? null };
}

function inUnit(ns: number, unitNs: number): string {
  return String(Number((ns / unitNs).toFixed(3)));
}

/** Both bounds in the unit of the larger one: "1–1.2 ms". `unitNs`: nanoseconds of a unit of the histogram. */
export function betweenText({ above, upTo }: Between, unitNs: number): string {
  // Whole microseconds are counted: none of them is less than one.
  if (above === null) return "< 1 µs";
  const larger = (upTo ?? above) * unitNs;
  const [scale, unit] =
    larger < 1e6 ? ([1e3, "µs"] as const) : larger < 1e9 ? ([1e6, "ms"] as const) : ([1e9, "s"] as const);
  const from = inUnit(above * unitNs, scale);
  return upTo === null ? `> ${from} ${unit}` : `${from}–${inUnit(upTo * unitNs, scale)} ${unit}`;
}

export interface Bar {
  readonly label: string;
  readonly count: number;
}

/** The buckets from the first to the last that hold something. */
export function bars(histogram: Histogram, unitNs: number): Bar[] {
  const { counts } = histogram;
  const first = counts.findIndex((count) => count > 0);
  if (first === -1) return [];
  const last = counts.findLastIndex((count) => count > 0);
  return counts.slice(first, last + 1).map((count, i) => ({
    label: betweenText(bucket(histogram, first + i), unitNs),
    count,
  }));
}

/** What a row of the table shows; null where it was not measured. */
export interface EdgeRow {
  readonly key: string;
  readonly edge: Edge;
  readonly connections: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Bytes per second in both directions, within the last seconds. */
  readonly rate: number | null;
  readonly sent: number | null;
  readonly received: number | null;
  readonly calls: number | null;
  /** The smallest round trip in microseconds. */
  readonly rtt: number | null;
  readonly wait: Between | null;
  readonly retransmits: number | null;
  readonly drops: number | null;
  readonly resets: number | null;
  readonly errors: number | null;
}

/** Sum over both ends of what each saw by itself; null when neither measured it. */
function both(edge: Edge, value: (side: EdgeSide) => number | null | undefined): number | null {
  const { client, server } = edge.metrics;
  let sum: number | null = null;
  for (const side of [client, server]) {
    const found = side === null ? null : value(side);
    if (found !== null && found !== undefined) sum = (sum ?? 0) + found;
  }
  return sum;
}

/** Bytes as the client sees them; turned round from the server where the client was not watched. */
export function edgeRow(edge: Edge, before: Before = null, seconds = 0): EdgeRow {
  const { client, server } = edge.metrics;
  const sent = client === null ? server?.read : client.write;
  const received = client === null ? server?.write : client.read;
  const wait = histogramOfSides([client, server], "wait");
  return {
    key: edge.id,
    edge,
    connections: (client ?? server)?.connections.count ?? 0,
    open: edgeOpen(edge),
    rate: edgeRate(edge, before, seconds),
    sent: sent?.bytes ?? null,
    received: received?.bytes ?? null,
    calls: sent || received ? (sent?.count ?? 0) + (received?.count ?? 0) : null,
    rtt: (client ?? server)?.min_rtt_us ?? null,
    wait: wait === null ? null : percentile(wait, 0.99),
    retransmits: both(edge, (side) => side.retransmit?.count),
    drops: both(edge, (side) => side.drop?.count),
    // A reset has one sender; what it received is the other end's.
    resets:
      client !== null && server !== null
        ? both(edge, (side) => side.reset?.sent)
        : both(edge, (side) => side.reset?.count),
    errors: both(edge, (side) => side.error?.count),
  };
}

/** Every word of the filter must be somewhere in what the row says about its ends. */
export function matchesEdge(edge: Edge, filter: string, named: NamedContainers): boolean {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const end = (which: EdgeEnd): string =>
    [
      which.comm ?? "",
      which.name ?? "",
      which.pid ?? "",
      which.container ?? "",
      nameText(named[which.container ?? ""]),
      which.address,
      which.port ?? "",
    ].join(" ");
  const text = `${end(edge.client)} ${end(edge.server)} ${edge.original_destination ?? ""} ${edge.protocol}`;
  const low = text.toLowerCase();
  return words.every((word) => low.includes(word));
}

const lower = (between: Between | null): number => (between === null ? -1 : (between.above ?? 0));

const VALUES: Readonly<Record<string, (row: EdgeRow) => number | string>> = {
  client: (row) => endName(row.edge.client).toLowerCase(),
  server: (row) => endName(row.edge.server).toLowerCase(),
  port: (row) => row.edge.server.port ?? -1,
  protocol: (row) => row.edge.protocol,
  connections: (row) => row.connections,
  open: (row) => row.open,
  rate: (row) => row.rate ?? -1,
  sent: (row) => row.sent ?? -1,
  received: (row) => row.received ?? -1,
  calls: (row) => row.calls ?? -1,
  rtt: (row) => row.rtt ?? -1,
  wait: (row) => lower(row.wait),
  retransmits: (row) => row.retransmits ?? -1,
  drops: (row) => row.drops ?? -1,
  resets: (row) => row.resets ?? -1,
  errors: (row) => row.errors ?? -1,
};

/** Compares by `sort` (`sent`, `-sent`, …), then by key, so that equal rows never swap places. */
export function compareEdges(sort: string): (a: EdgeRow, b: EdgeRow) => number {
  const descending = sort.startsWith("-");
  const value = VALUES[descending ? sort.slice(1) : sort] ?? VALUES.sent!;
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const left = value(a);
    const right = value(b);
    if (left < right) return -sign;
    if (left > right) return sign;
    return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
  };
}

const UNRESOLVED: Readonly<Record<string, string>> = {
  owner: "without a known process",
  peer_on_this_node: "whose other end is on this node and was not found",
  direction: "of which it is not known who connected",
  edges_left_out: "added up without an edge of their own, because there are too many edges",
  stored_result_damaged: "stored result that is damaged",
};

/** What could not be told, in words. */
export function unresolvedText(what: string): string {
  return UNRESOLVED[what] ?? what.replaceAll("_", " ");
}

const ERRNO: Readonly<Record<string, string>> = {
  "32": "broken pipe",
  "101": "network unreachable",
  "104": "connection reset",
  "110": "timed out",
  "111": "connection refused",
  "113": "host unreachable",
};

export function errnoText(number: string): string {
  const name = ERRNO[number];
  return name === undefined ? `errno ${number}` : `${name} (${number})`;
}

/** Mean of a time; null without values. */
export function meanText(sumNs: number, count: number): string | null {
  return count === 0 ? null : duration(sumNs / count);
}

/** What the agent says where the option was not ticked. */
const NOT_TIMED = "needs the timed mode";

/** Why `what` is missing, and what to do where something can be done. */
export function missingText(reason: string, what: string): string {
  return reason.includes(NOT_TIMED)
    ? `${what}: not recorded. Tick "Call durations" when starting a task.`
    : `${what}: not available, ${reason}`;
}
