// Stacks of one thread in the order of time buckets as boxes that join where neighbours agree.
// Inside a bucket the order is not known: its stacks share the bucket's width by their amounts and
// stand in the order of their frames, so that equal ones of neighbouring buckets can touch.

import type { Sequence, SequenceThread } from "../api/types";

/** A frame from `from` to `to`, in buckets; `amount` is what the buckets between have of it. */
export interface Box {
  readonly from: number;
  to: number;
  readonly depth: number;
  readonly label: number;
  amount: number;
}

export interface Lane {
  readonly thread: SequenceThread;
  /** Frames that all stacks begin with, which are left out of the rows. */
  readonly common: number;
  /** By depth, each from left to right. */
  readonly rows: readonly (readonly Box[])[];
  /** Amount in each bucket. */
  readonly amounts: Float64Array;
}

interface Part {
  readonly stack: readonly number[];
  readonly amount: number;
}

function compareStacks(a: readonly number[], b: readonly number[]): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i += 1) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** How many frames all stacks of a thread begin with; one frame of each is kept. */
function commonFrames(stacks: readonly (readonly number[])[]): number {
  const first = stacks[0] ?? [];
  let common = first.length;
  for (const stack of stacks) {
    let same = 0;
    while (same < common && same < stack.length && stack[same] === first[same]) same += 1;
    common = Math.min(same, stack.length - 1);
  }
  return Math.max(0, common);
}

/** The boxes of a thread. */
export function lane(sequence: Sequence, thread: SequenceThread): Lane {
  const rows: Box[][] = [];
  const used = [...new Set(thread.stack)].map((id) => sequence.stacks[id] ?? []);
  const common = commonFrames(used.filter((stack) => stack.length > 0));
  const amounts = new Float64Array(sequence.buckets);
  let at = 0;
  while (at < thread.bucket.length) {
    const bucket = thread.bucket[at]!;
    const parts: Part[] = [];
    let sum = 0;
    for (; at < thread.bucket.length && thread.bucket[at] === bucket; at += 1) {
      const stack = (sequence.stacks[thread.stack[at]!] ?? []).slice(common);
      parts.push({ stack, amount: thread.amount[at]! });
      sum += thread.amount[at]!;
    }
    if (bucket < amounts.length) amounts[bucket] = sum;
    if (sum === 0) continue;
    parts.sort((a, b) => compareStacks(a.stack, b.stack));
    let done = 0;
    for (const { stack, amount } of parts) {
      const from = bucket + done / sum;
      done += amount;
      put(rows, stack, from, done === sum ? bucket + 1 : bucket + done / sum, amount);
    }
  }
  return { thread, common, rows, amounts };
}

/** Adds a stack at the right end; frames that touch the same frames on their left are one box. */
function put(rows: Box[][], stack: readonly number[], from: number, to: number, amount: number): void {
  let joined = true;
  stack.forEach((label, depth) => {
    const row = rows[depth] ?? [];
    rows[depth] = row;
    const last = row[row.length - 1];
    joined &&= last !== undefined && last.to === from && last.label === label;
    if (joined && last !== undefined) {
      last.to = to;
      last.amount += amount;
    } else row.push({ from, to, depth, label, amount });
  });
}

/** The box of `depth` at `x` buckets, or null. */
export function boxAt(lane: Lane, depth: number, x: number): Box | null {
  const row = lane.rows[depth] ?? [];
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle]!.to > x) high = middle;
    else low = middle + 1;
  }
  const box = row[low];
  return box !== undefined && box.from <= x ? box : null;
}

/** The position in a row of the first box that ends after `x`. */
export function firstAfter(row: readonly Box[], x: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle]!.to > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The nearest box of the same depth left (-1) or right (+1), or null at the edge. */
export function besides(lane: Lane, box: Box, direction: -1 | 1): Box | null {
  const row = lane.rows[box.depth] ?? [];
  return row[row.indexOf(box) + direction] ?? null;
}

/**
 * Length of the buckets that are asked for: few enough for the screen, and long enough that a thread
 * which works all the time has a sample in each.
 */
export function sequenceBucketMs(lengthMs: number, frequencyHz: number, columns: number): number {
  const forScreen = lengthMs / columns;
  const forRate = frequencyHz > 0 ? 1000 / frequencyHz : 0;
  return 20 * Math.max(1, Math.ceil(Math.max(forScreen, forRate) / 20 - 1e-9));
}
