// What was counted within the last seconds of a live table, for rates and for marks.

import { useRef } from "preact/hooks";
import type { EdgeTable } from "../api/types";
import { groundOf, MAP_MS, RATE_MS, stillNeeded, TROUBLE_MS } from "../lib/table_history";

const LEAST_MS = 2_000;

export interface RateWindow {
  /** What counts from; null for the beginning of the measurement. */
  readonly before: EdgeTable | null;
  readonly seconds: number;
  /** In words. */
  readonly text: string;
  /** The window in which trouble is marked. */
  readonly trouble: { readonly before: EdgeTable | null; readonly text: string };
}

/** Lengths of the windows of rates and of trouble, in milliseconds. */
interface Spans {
  readonly rate: number;
  readonly trouble: number;
}

/** What happens now, on lines that are looked at one by one. */
export const LINE_SPANS: Spans = { rate: RATE_MS, trouble: TROUBLE_MS };
/** What goes on between pods: steady enough to be compared. */
export const MAP_SPANS: Spans = { rate: MAP_MS, trouble: MAP_MS };

interface Kept<T> {
  readonly at: number;
  readonly value: T;
}

/** All values that a window may count from; the newest is `value`. */
function useKept<T>(value: T): readonly Kept<T>[] {
  const kept = useRef<readonly Kept<T>[]>([]);
  if (kept.current.at(-1)?.value !== value) {
    const now = performance.now();
    kept.current = stillNeeded([...kept.current, { at: now, value }], now);
  }
  return kept.current;
}

/** What the window of the node's map counts from; null for the beginning of the measurement. */
export function useEarlier<T>(value: T, live: boolean): T | null {
  const kept = useKept(value);
  const newest = kept.at(-1)!;
  const ground = groundOf(kept, newest.at, MAP_MS);
  return live && ground !== undefined && newest.at - ground.at >= MAP_MS ? ground.value : null;
}

/**
 * The windows of `table`. A table that does not change any more, and the rates of the first seconds of a live one, are
 * seen as a whole: `seconds` is then the time since counting began.
 */
export function useRateWindow(table: EdgeTable, live: boolean, seconds: number, spans: Spans): RateWindow {
  const kept = useKept(table);
  const newest = kept.at(-1)!;
  if (!live)
    return {
      before: null,
      seconds,
      text: "average since counting began",
      trouble: { before: null, text: "since counting began" },
    };
  const since = (ms: number) => {
    const ground = groundOf(kept, newest.at, ms) ?? newest;
    return { before: ground.value, spanMs: newest.at - ground.at };
  };
  const last = (spanMs: number): string => `the last ${Math.round(spanMs / 1000)} s`;
  const rates = since(spans.rate);
  const marks = since(spans.trouble);
  const trouble = { before: marks.before, text: `in ${last(marks.spanMs)}` };
  return rates.spanMs < LEAST_MS
    ? { before: null, seconds, text: "average since counting began", trouble }
    : { before: rates.before, seconds: rates.spanMs / 1000, text: `over ${last(rates.spanMs)}`, trouble };
}
