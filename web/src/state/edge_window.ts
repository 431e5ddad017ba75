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

/** What a window of `ms` counts from, and how long it is by now. */
function groundIn<T>(kept: readonly Kept<T>[], ms: number): { before: T; spanMs: number } {
  const newest = kept.at(-1)!;
  const ground = groundOf(kept, newest.at, ms) ?? newest;
  return { before: ground.value, spanMs: newest.at - ground.at };
}

/** What is said of the whole time. */
const WHOLE = "average since counting began";
const last = (spanMs: number): string => `the last ${Math.round(spanMs / 1000)} s`;

/**
 * The window of the node's map for any value that grows while `live`. `before`: null for the beginning of the
 * measurement.
 */
export function useMapWindow<T>(
  value: T,
  live: boolean,
): { readonly before: T | null; readonly text: string } {
  const { before, spanMs } = groundIn(useKept(value), MAP_MS);
  return live && spanMs >= LEAST_MS
    ? { before, text: `over ${last(spanMs)}` }
    : { before: null, text: WHOLE };
}

export interface RateWindows {
  /** What happens now, on lines that are looked at one by one. */
  readonly lines: RateWindow;
  /** What goes on between pods: steady enough to be compared. */
  readonly map: RateWindow;
}

/**
 * The windows of `table`. A table that does not change any more, and the rates of the first seconds of a live one, are
 * seen as a whole: `seconds` is then the time since counting began.
 */
export function useRateWindows(table: EdgeTable, live: boolean, seconds: number): RateWindows {
  const kept = useKept(table);
  const of = (rateMs: number, troubleMs: number): RateWindow => {
    if (!live)
      return {
        before: null,
        seconds,
        text: WHOLE,
        trouble: { before: null, text: "since counting began" },
      };
    const rates = groundIn(kept, rateMs);
    const marks = groundIn(kept, troubleMs);
    const trouble = { before: marks.before, text: `in ${last(marks.spanMs)}` };
    return rates.spanMs < LEAST_MS
      ? { before: null, seconds, text: WHOLE, trouble }
      : { before: rates.before, seconds: rates.spanMs / 1000, text: `over ${last(rates.spanMs)}`, trouble };
  };
  return { lines: of(RATE_MS, TROUBLE_MS), map: of(MAP_MS, MAP_MS) };
}
