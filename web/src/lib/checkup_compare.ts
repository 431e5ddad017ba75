// Two check-ups of one target beside each other, in words and numbers.

import type { CheckupComparison, ComparedRow, ComparedTotal } from "../api/diagnosis";

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
  less: { mark: "↓", word: "less" },
  more: { mark: "↑", word: "more" },
  same: { mark: "≈", word: "chance can explain it" },
};

/** What changed most first: what chance can explain stands below. */
export function sortedRows(rows: readonly ComparedRow[]): ComparedRow[] {
  return rows.toSorted(
    (a, b) => Number(b.significant) - Number(a.significant) || Math.abs(b.change) - Math.abs(a.change),
  );
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
  const sure = significant ? "significant" : "chance can explain it";
  return `${points(change_percent)} % (${points(low)} to ${points(high)} %), ${sure}`;
}

/** Whether nothing at all can be said. */
export function isEmpty({ rows, totals }: CheckupComparison): boolean {
  return rows.length === 0 && totals.cpu_cores === null && totals.cpu_us_per_request === null;
}
