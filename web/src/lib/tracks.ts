// Rows over time as numbers to draw: how much, or what threads did.

import type { WaitCut } from "../api/client";
import type { Activity, Timeline } from "../api/types";
import { duration } from "./format";
import type { Track } from "./threads";

export interface Part {
  readonly activity: Activity;
  /** Microseconds in each column. */
  readonly timesUs: readonly number[];
}

export interface TrackParts {
  /** From the bottom up. */
  readonly parts: readonly Part[];
  /** Microseconds of the full height. */
  readonly fullUs: number;
  /** Not so where it is too small. */
  readonly isSent: boolean;
}

type Sent = NonNullable<Timeline["threads"]>[number];

/** What was sent for each row, if it was large enough. */
function sentFor(rows: readonly Track[], timeline: Timeline | null): readonly (Sent | undefined)[] {
  const threads = new Map(timeline?.threads?.toReversed().map((sent) => [`${sent.pid} ${sent.tid}`, sent]));
  // Of two processes that had one pid the larger comes first, and is drawn.
  const processes = new Map(timeline?.processes?.toReversed().map((sent) => [sent.pid, sent]));
  // The first row of a pid is the process, also where that has one thread.
  return rows.map(({ pid, tid }, row) =>
    rows[row - 1]?.pid === pid ? threads.get(`${pid} ${tid}`) : processes.get(pid),
  );
}

/** What the amounts of threads are: of all of them together, and of one cell. */
export function measureOf(waits: WaitCut | null): { isTime: boolean; unit: string; one: string } {
  if (waits === null) return { isTime: false, unit: "samples", one: "samples" };
  if (waits.value === "count") return { isTime: false, unit: "switches", one: "waits that ended" };
  return { isTime: true, unit: "time", one: "that ended" };
}

/** Amounts column by column from the top row; -1 in rows that are too small to be sent. */
export function trackAmounts(
  rows: readonly Track[],
  timeline: Timeline | null,
): { readonly columns: number; readonly rows: number; readonly cells: Float64Array; readonly top: number } {
  const columns = timeline?.counts.length ?? 0;
  const cells = new Float64Array(columns * rows.length).fill(-1);
  let top = 0;
  sentFor(rows, timeline).forEach((sent, row) => {
    sent?.counts.forEach((value, column) => {
      cells[column * rows.length + row] = value;
      if (value > top) top = value;
    });
  });
  return { columns, rows: rows.length, cells, top };
}

/** Whether the answer says what threads did. */
export function hasParts(timeline: Timeline | null): boolean {
  return (timeline?.threads ?? []).some(({ activities }) => (activities ?? []).length > 0);
}

/**
 * What threads did, row by row. A thread has all its time, so its full height is that of a column. Of
 * a process idle time is left out, as most threads idle most of the time, and its busiest column is the
 * full height.
 */
export function trackParts(rows: readonly Track[], timeline: Timeline): readonly TrackParts[] {
  const all = sentFor(rows, timeline);
  return rows.map(({ tid }, row) => {
    const sent = all[row];
    const isSent = sent !== undefined;
    const parts = (sent?.activities ?? []).map(({ activity, times_us }) => ({ activity, timesUs: times_us }));
    if (tid !== null) return { parts, fullUs: timeline.bucket_ms * 1000, isSent };
    const busy = parts.filter(({ activity }) => activity !== "idle");
    const fullUs = timeline.counts.reduce((most, _, column) => Math.max(most, partsAt(busy, column)), 0);
    return { parts: busy, fullUs, isSent };
  });
}

function partsAt(parts: readonly Part[], column: number): number {
  return parts.reduce((sum, { timesUs }) => sum + timesUs[column]!, 0);
}

/** "lock 62.0 ms, running 30.1 ms", the largest first. */
export function partsText({ parts }: TrackParts, column: number): string {
  const own = parts
    .map(({ activity, timesUs }) => ({ activity, us: timesUs[column] ?? 0 }))
    .filter(({ us }) => us > 0)
    .sort((a, b) => b.us - a.us);
  if (own.length === 0) return "nothing was recorded";
  return own.map(({ activity, us }) => `${activityText(activity)} ${duration(us * 1000)}`).join(", ");
}

export function activityText(activity: Activity): string {
  return activity.replaceAll("_", " ").replace("cpu", "CPU");
}
