// What was counted within the last seconds of a live table, for rates and for marks.

import { useRef } from "preact/hooks";
import type { Edge, EdgeTable } from "../api/types";
import { groundOf, RATE_MS, stillNeeded, TROUBLE_MS } from "../lib/table_history";

const LEAST_MS = 2_000;

/** The edges of a table by id; null without one. */
export function edgesById(table: EdgeTable | null): ReadonlyMap<string, Edge> | null {
  return table === null ? null : new Map(table.edges.map((edge) => [edge.id, edge]));
}

export interface RateWindow {
  /** What counts from; null for the beginning of the measurement. */
  readonly before: EdgeTable | null;
  readonly seconds: number;
  /** In words. */
  readonly text: string;
  /** The window in which trouble is marked. */
  readonly trouble: { readonly before: EdgeTable | null; readonly text: string };
}

/**
 * The windows of `table`. A table that does not change any more, and the rates of the first seconds of a live one, are
 * seen as a whole: `seconds` is then the time since counting began.
 */
export function useRateWindow(table: EdgeTable, live: boolean, seconds: number): RateWindow {
  const kept = useRef<{ at: number; table: EdgeTable }[]>([]);
  const now = performance.now();
  if (kept.current.at(-1)?.table !== table)
    kept.current = stillNeeded([...kept.current, { at: now, table }], now);
  const newest = kept.current.at(-1)!;
  if (!live)
    return {
      before: null,
      seconds,
      text: "average since counting began",
      trouble: { before: null, text: "since counting began" },
    };
  const since = (ms: number) => {
    const ground = groundOf(kept.current, newest.at, ms) ?? newest;
    return { before: ground.table, spanMs: newest.at - ground.at };
  };
  const last = (spanMs: number): string => `the last ${Math.round(spanMs / 1000)} s`;
  const rates = since(RATE_MS);
  const marks = since(TROUBLE_MS);
  const trouble = { before: marks.before, text: `in ${last(marks.spanMs)}` };
  return rates.spanMs < LEAST_MS
    ? { before: null, seconds, text: "average since counting began", trouble }
    : { before: rates.before, seconds: rates.spanMs / 1000, text: `over ${last(rates.spanMs)}`, trouble };
}
