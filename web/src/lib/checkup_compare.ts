// Two check-ups of one target beside each other, in words and numbers.

import type { CheckupComparison, ComparedRow, ComparedTotal } from "../api/types";
import { micros } from "./diagnosis";

/** A change carries its sign, also where it is rounded to nothing. */
export function points(change: number): string {
  const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
  const size = Math.abs(change);
  return `${sign}${size.toFixed(size < 1 ? 2 : 1)}`;
}

export function pointsInterval({ low, high }: Pick<ComparedRow, "low" | "high">): string {
  return `${points(low)} to ${points(high)}`;
}

export type Direction = "less" | "more" | "same";

/** Whether something costs less or more now; what chance can explain is the same. */
export function directionOf({ significant }: { significant: boolean }, change: number): Direction {
  if (!significant || change === 0) return "same";
  return change < 0 ? "less" : "more";
}

export const DIRECTIONS: Readonly<Record<Direction, { readonly mark: string; readonly word: string }>> = {
  less: { mark: "↓", word: "smaller share" },
  more: { mark: "↑", word: "larger share" },
  same: { mark: "≈", word: "no significant change" },
};

/** CPU of one request that a feature takes more (or less) now; null where requests are not known. */
export function perRequest({ a_us, b_us }: Pick<ComparedRow, "a_us" | "b_us">): number | null {
  return a_us === null || b_us === null ? null : b_us - a_us;
}

/**
 * What changed most first: by the CPU of one request, because a share also grows when another goes.
 * Where that is not known by the share, what chance can explain below.
 */
export function sortedRows(rows: readonly ComparedRow[]): ComparedRow[] {
  const size = (row: ComparedRow): number => Math.abs(perRequest(row) ?? row.change);
  const known = rows.every((row) => perRequest(row) !== null);
  return rows.toSorted(
    (a, b) => (known ? 0 : Number(b.significant) - Number(a.significant)) || size(b) - size(a),
  );
}

/** Microseconds with a sign: "−66.8 µs". */
export function microsChange(us: number): string {
  const sign = us > 0 ? "+" : us < 0 ? "−" : "±";
  return `${sign}${micros(Math.abs(us))}`;
}

/** Where a scale ends on which all changes fit, to both sides. */
export function changeScale(rows: readonly ComparedRow[]): number {
  return (
    Math.max(1, ...rows.map(({ change, low, high }) => Math.max(...[change, low, high].map(Math.abs)))) * 1.05
  );
}

/** Where a change and its interval stand, in percent of a width whose middle is no change. */
export function changeBar(
  { change, low, high }: Pick<ComparedRow, "change" | "low" | "high">,
  end: number,
): { readonly at: number; readonly from: number; readonly to: number } {
  const place = (value: number): number => Math.max(0, Math.min(100, 50 + (value / end) * 50));
  return { at: place(change), from: place(low), to: place(high) };
}

export function totalText({ change_percent, low, high, significant }: ComparedTotal): string {
  const sure = significant ? "significant" : "not significant";
  return `${points(change_percent)} % (${points(low)} to ${points(high)} %), ${sure}`;
}

/** Whether nothing at all can be said. */
export function isEmpty({ rows, totals }: CheckupComparison): boolean {
  return rows.length === 0 && totals.cpu_cores === null && totals.cpu_us_per_request === null;
}
