// Geometry of the heat maps over time: samples by fraction of a second, and by thread. Times are
// milliseconds since the start of the task.

import type { StripRange } from "./strip";

/** Length of the agent's own time buckets. */
export const OWN_MS = 20;
/** Cells of a column, from its start at the top to its end. */
export const ROWS = 50;
/** Columns at most: longer tasks get longer columns, and say so. */
const MAX_COLUMNS = 600;
/** Lengths of a column in seconds that people can count in. */
const STEPS_S = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600] as const;

export interface HeatScale {
  readonly columnMs: number;
  /** A cell: a fiftieth of a column. */
  readonly bucketMs: number;
}

/** The finest scale on which `lengthMs` has few enough columns. */
export function heatScale(lengthMs: number): HeatScale {
  const step =
    STEPS_S.find((seconds) => lengthMs <= seconds * 1000 * MAX_COLUMNS) ??
    Math.ceil(lengthMs / 1000 / MAX_COLUMNS / 3600) * 3600;
  return { columnMs: step * 1000, bucketMs: step * OWN_MS };
}

/** Length of a bucket of a row of at most `most` buckets; a multiple of the agent's own. */
export function rowBucketMs(lengthMs: number, most: number): number {
  return OWN_MS * Math.max(1, Math.ceil(lengthMs / OWN_MS / most));
}

export interface HeatMap {
  readonly scale: HeatScale;
  /** Start of the first column. */
  readonly originMs: number;
  readonly columns: number;
  /** Column by column, from its start to its end; -1 where nothing was measured. */
  readonly cells: Float64Array;
  readonly top: number;
}

/** Puts a timeline into columns. */
export function heatMap(scale: HeatScale, fromMs: number, counts: readonly number[]): HeatMap {
  const originMs = Math.floor(fromMs / scale.columnMs) * scale.columnMs;
  const first = Math.floor((fromMs - originMs) / scale.bucketMs);
  const columns = counts.length === 0 ? 0 : Math.ceil((first + counts.length) / ROWS);
  const cells = new Float64Array(columns * ROWS).fill(-1);
  let top = 0;
  counts.forEach((value, i) => {
    cells[first + i] = value;
    if (value > top) top = value;
  });
  return { scale, originMs, columns, cells, top };
}

/** The cell at a place between 0 and 1 from the left and from the top; null outside. */
export function cellAt(columns: number, x: number, y: number): number | null {
  if (columns === 0 || !(x >= 0 && x < 1 && y >= 0 && y < 1)) return null;
  return Math.floor(x * columns) * ROWS + Math.floor(y * ROWS);
}

/** The nearest cell to a place that may be outside. */
export function nearestCell(columns: number, x: number, y: number): number {
  const inside = (value: number): number => Math.min(Math.max(value, 0), 1 - 1e-9);
  return cellAt(columns, inside(x), inside(y)) ?? 0;
}

/** The time from the earlier to the later of two cells, both included. */
export function rangeOfCells(map: Pick<HeatMap, "scale" | "originMs">, a: number, b: number): StripRange {
  const { bucketMs } = map.scale;
  return {
    from: map.originMs + Math.min(a, b) * bucketMs,
    to: map.originMs + (Math.max(a, b) + 1) * bucketMs,
  };
}

/** First and last cell of a time range, cut at the map's ends; null when it lies outside. */
export function cellsOfRange(map: HeatMap, range: StripRange): readonly [number, number] | null {
  const { bucketMs } = map.scale;
  const first = Math.max(0, Math.floor((range.from - map.originMs) / bucketMs));
  const last = Math.min(map.cells.length - 1, Math.ceil((range.to - map.originMs) / bucketMs) - 1);
  return first > last ? null : [first, last];
}

/** The cell after a step of cells and columns; stays inside. */
export function stepped(map: HeatMap, cell: number, cells: number, columns: number): number {
  const next = cell + cells + columns * ROWS;
  return next < 0 || next >= map.cells.length ? cell : next;
}

/** Steps of colour; few enough to be told apart. */
export const LEVELS = 7;

/** 0 for nothing, 1 to LEVELS for more; the square root keeps the small ones visible. */
export function heatLevel(value: number, top: number): number {
  if (value <= 0 || top <= 0) return 0;
  return Math.max(1, Math.ceil(Math.sqrt(Math.min(1, value / top)) * LEVELS));
}

/** Smallest value of each level, for the legend. */
export function levelStarts(top: number): number[] {
  return Array.from({ length: LEVELS }, (_, level) => (level / LEVELS) ** 2 * top);
}

/** "12.34 s", "1:02.50" with as many digits as a cell needs. */
export function timeText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms - minutes * 60_000) / 1000;
  return minutes === 0 ? `${seconds.toFixed(2)} s` : `${minutes}:${seconds.toFixed(2).padStart(5, "0")} min`;
}

const TICK_STEPS_MS = [
  20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5,
] as const;

export interface Tick {
  /** 0 at the start of the range, 1 at its end. */
  readonly at: number;
  readonly text: string;
}

/** A tick further right has no place for its text. */
const LAST_TICK = 0.97;

/** At most `most` round moments of a range. */
export function timeTicks(fromMs: number, toMs: number, most: number): Tick[] {
  const length = toMs - fromMs;
  if (!(length > 0)) return [];
  const step =
    TICK_STEPS_MS.find((ms) => length / ms <= most - 1) ?? Math.ceil(length / most / 864e5) * 864e5;
  const ticks: Tick[] = [];
  for (let ms = Math.ceil(fromMs / step) * step; ms - fromMs <= length * LAST_TICK; ms += step)
    ticks.push({ at: (ms - fromMs) / length, text: tickText(ms, step) });
  return ticks;
}

function tickText(ms: number, step: number): string {
  if (step < 1000) return timeText(ms);
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}
