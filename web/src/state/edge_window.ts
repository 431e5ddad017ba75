// Rates of the moment: what was counted within the last seconds of a live table.

import { useRef } from "preact/hooks";
import type { Edge, EdgeTable } from "../api/types";

/** Rates are over at least this. */
const WINDOW_MS = 10_000;
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
}

/**
 * The window of `table`. A table that does not change any more, and the first seconds of a live one, are seen as
 * a whole: `seconds` is then the time since counting began.
 */
export function useRateWindow(table: EdgeTable, live: boolean, seconds: number): RateWindow {
  const kept = useRef<{ at: number; table: EdgeTable }[]>([]);
  const tables = kept.current;
  const now = performance.now();
  if (tables.at(-1)?.table !== table) tables.push({ at: now, table });
  // One that is old enough stays as the ground.
  while (tables.length > 2 && now - tables[1]!.at >= WINDOW_MS) tables.shift();
  const newest = tables.at(-1)!;
  const ground = tables[0]!;
  const spanMs = newest.at - ground.at;
  if (!live || spanMs < LEAST_MS) return { before: null, seconds, text: "average since counting began" };
  return {
    before: ground.table,
    seconds: spanMs / 1000,
    text: `over the last ${Math.round(spanMs / 1000)} s`,
  };
}
