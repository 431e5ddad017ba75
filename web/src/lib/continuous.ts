// A profile that has no end: which part of its time is looked at, by the clock, and what it is compared with.

import type { Task } from "../api/types";
import { clockTime } from "./format";

export interface Span {
  readonly title: string;
  readonly ms: number;
}

const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const SPANS: readonly Span[] = [
  { title: "15 min", ms: 15 * MINUTE_MS },
  { title: "1 h", ms: HOUR_MS },
  { title: "24 h", ms: 24 * HOUR_MS },
];
const PROFILES: readonly string[] = ["on_cpu", "off_cpu", "wall"];

/** Whether a task records until it is stopped, as `--profile always` does. */
export function isContinuous({ kind, duration_s }: Pick<Task, "kind" | "duration_s">): boolean {
  return duration_s === null && PROFILES.includes(kind);
}

/** The one that the agent keeps of the whole node; the newest where there are several. */
export function nodeProfile(tasks: Iterable<Task>): Task | null {
  const all = [...tasks].filter(
    (task) => isContinuous(task) && "all" in task.target && task.state === "running",
  );
  return all.toSorted((a, b) => Number(b.id) - Number(a.id))[0] ?? null;
}

/** Milliseconds after the task's start at which the last `ms` begin; null where it is not as old. */
export function sinceOf(ms: number, lengthMs: number): number | null {
  return ms >= lengthMs ? null : Math.round(lengthMs - ms);
}

export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** The same time so much earlier; null where the task had not begun. */
export function earlier({ from, to }: TimeRange, ms: number): TimeRange | null {
  return from < ms ? null : { from: from - ms, to: to - ms };
}

const STEPS_MS: readonly number[] = [
  ...[1, 5, 10, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR_MS),
];

/** Clock times along a strip, at most `most`: where each stands (0 to 1) and what it says. Times are milliseconds since the epoch. */
export function clockTicks(fromMs: number, toMs: number, most: number): { at: number; text: string }[] {
  const length = toMs - fromMs;
  if (length <= 0) return [];
  const step = STEPS_MS.find((each) => length / each <= most) ?? STEPS_MS.at(-1)!;
  // Whole steps of the reader's own clock.
  const zone = new Date(fromMs).getTimezoneOffset() * MINUTE_MS;
  const ticks: { at: number; text: string }[] = [];
  for (
    let ms = Math.ceil((fromMs - zone) / step) * step + zone;
    ms <= toMs && ticks.length <= most;
    ms += step
  )
    ticks.push({ at: (ms - fromMs) / length, text: clockTime(new Date(ms), step < MINUTE_MS) });
  return ticks;
}
