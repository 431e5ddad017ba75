// Rows of the overview: what is shown first, what they are as a target, and their cells as text.

import type { NodeOverview, OverviewRequests, OverviewRow, OverviewTime, Target } from "../api/types";
import { count } from "./format";
import type { PageState } from "./query_state";

export interface OverviewParts {
  /** Pods, and what else needs attention, in the agent's order. */
  readonly first: readonly OverviewRow[];
  /** What else runs on the node. */
  readonly node: readonly OverviewRow[];
}

/** The rows that the filter wants. On a node without pods all rows are first. */
export function overviewParts(overview: NodeOverview, filter: string): OverviewParts {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = overview.rows.filter((row) => {
    const text = [row.title, row.workload ?? "", row.kind, ...row.troubles.map((trouble) => trouble.text)]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const isFirst = (row: OverviewRow): boolean => row.kind === "pod" || row.troubles.length > 0;
  if (!overview.rows.some(({ kind }) => kind === "pod")) return { first: rows, node: [] };
  return { first: rows.filter(isFirst), node: rows.filter((row) => !isFirst(row)) };
}

/** What a check-up of the row measures; null where nothing can be. By its name a pod is the same after a restart. */
export function targetOf({ pod, pids }: OverviewRow): Target | null {
  if (pod !== null) return { pod: { namespace: pod.namespace, name: pod.name } };
  return pids.length === 0 ? null : { pids: [...pids] };
}

/** The page with the row's processes. */
export function processesOf({ kind, title, network_namespace }: OverviewRow): Partial<PageState> {
  if (kind !== "pod") return { view: "processes", q: title.replace(/\.service$/, "") };
  return { view: "pods", q: String(network_namespace ?? title) };
}

/** The requests that the row is about: those that it answered, else those that it sent. */
export function requestsOf({ answered, sent }: OverviewRow): {
  readonly requests: OverviewRequests | null;
  readonly areSent: boolean;
} {
  return { requests: answered ?? sent, areSent: answered === null && sent !== null };
}

/** Rates with as many digits as they are worth. */
export function rate(value: number): string {
  if (value === 0) return "0";
  return value < 10 ? value.toFixed(1) : count(value);
}

/** A time is less than the end of its bucket. */
export function below(time: OverviewTime): string {
  return `< ${count(time.to_ms)} ms`;
}

/** The percentile with what is known of it. */
export function between(percentile: string, time: OverviewTime): string {
  return `${percentile} is between ${count(time.from_ms)} and ${count(time.to_ms)} ms: Envoy counts times in buckets`;
}

export function errorShare({ count, errors }: OverviewRequests): number | null {
  return count === 0 ? null : (100 * errors) / count;
}

/** Cores of all rows together; null before the second reading. */
export function coresOf(rows: readonly OverviewRow[]): number | null {
  const known = rows.flatMap(({ cpu }) => cpu.cores ?? []);
  return known.length === 0 ? null : known.reduce((sum, cores) => sum + cores, 0);
}
