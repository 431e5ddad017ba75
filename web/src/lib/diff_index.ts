// What drawing and listing a comparison needs: widths, both sides' totals, and how much of a change
// chance can explain. No recursion: a stack may be thousands of frames deep.

import type { ChangedFunction, ChangedFunctions, Verdict } from "../api/types";
import type { DiffGraph, Norm, Pair } from "./diff";
import { type FlameIndex, indexFlameGraph, labelOf } from "./flame_index";
import { Kind } from "./flamegraph";

export interface DiffIndex {
  readonly diff: DiffGraph;
  readonly norm: Norm;
  /** Geometry: a node is as wide as the mean of both normalised sides. Its totals are such means. */
  readonly flame: FlameIndex;
  readonly totalA: Float64Array;
  readonly totalB: Float64Array;
  /** What a side's amount is divided by; 0 when the side is empty. */
  readonly scale: Pair;
}

/** Widths are multiples of this part of the whole, so that float sums are exact. */
const WIDTH_UNITS = 2 ** 44;
/** P-values are read in parts of one, rounded down. */
const P_PARTS = 100_000;

function sums(depth: Uint32Array, self: Float64Array): Float64Array {
  const total = self.slice();
  const atDepth: number[] = [];
  const parent = new Int32Array(depth.length).fill(-1);
  for (let i = 0; i < depth.length; i += 1) {
    const own = depth[i]!;
    if (own > 0) parent[i] = atDepth[own - 1]!;
    atDepth[own] = i;
  }
  for (let i = depth.length - 1; i > 0; i -= 1) total[parent[i]!]! += total[i]!;
  return total;
}

export function indexDiff(diff: DiffGraph, norm: Norm): DiffIndex {
  const { depth, label, labels, selfA, selfB } = diff;
  const totalA = sums(depth, selfA);
  const totalB = sums(depth, selfB);
  const scale: Pair =
    norm === "share" ? [totalA[0]!, totalB[0]!] : [diff.coveredNs[0] / 1e9, diff.coveredNs[1] / 1e9];
  const [wholeA, wholeB] = [part(totalA[0]!, scale[0]), part(totalB[0]!, scale[1])];
  const whole = wholeA + wholeB;
  // Whole numbers, so that children and self add up to the total without rounding.
  const width = Float64Array.from(depth, (_, i) =>
    whole === 0
      ? 0
      : Math.round(((part(selfA[i]!, scale[0]) + part(selfB[i]!, scale[1])) / whole) * WIDTH_UNITS),
  );
  const flame = indexFlameGraph({ periodNs: 0, idle: null, labels, depth, self: width, label });
  return { diff, norm, flame, totalA, totalB, scale };
}

function part(amount: number, whole: number): number {
  return whole > 0 ? amount / whole : 0;
}

/** Both sides of an amount after normalising. */
export function normalised(index: DiffIndex, amount: Pair): Pair {
  return [part(amount[0], index.scale[0]), part(amount[1], index.scale[1])];
}

/** -1: all of it is gone; 0: the same; 1: all of it is new. */
export function tendency(index: DiffIndex, node: number): number {
  const [a, b] = normalised(index, [index.totalA[node]!, index.totalB[node]!]);
  return a + b === 0 ? 0 : (b - a) / (a + b);
}

/** What is known about the total of one frame, looked at alone, with its p-value where it was tested. */
export function verdictOf(index: DiffIndex, node: number): { verdict: Verdict; p: number | null } {
  const { unknown, codes } = index.diff.chances[index.norm];
  if (unknown !== null) return { verdict: "unknown", p: null };
  const code = codes[node]!;
  if (code === 0) return { verdict: "too_few", p: null };
  const p = Math.floor((code - 1) / 2) / P_PARTS;
  return { verdict: code % 2 === 0 ? "significant" : "not_significant", p };
}

/** For each node how it is coloured: tendency, or NaN where chance can explain the change. */
export function colours(index: DiffIndex): Float32Array {
  return Float32Array.from({ length: index.flame.count }, (_, node) => {
    const { verdict } = verdictOf(index, node);
    if (verdict === "not_significant" || verdict === "too_few") return Number.NaN;
    return tendency(index, node);
  });
}

/** A function as the agent compares it, its kind as graphs number it. */
export type ChangeRow = Omit<ChangedFunction, "kind"> & { readonly kind: number };

const KINDS: Readonly<Record<string, number>> = {
  user: Kind.User,
  kernel: Kind.Kernel,
  inlined: Kind.InlinedUser,
  inlined_kernel: Kind.InlinedKernel,
  marker: Kind.Marker,
  jit: Kind.Jit,
  other: Kind.Other,
  process: Kind.Process,
};

export function changeRows({ functions }: ChangedFunctions): ChangeRow[] {
  return functions.map((row) => ({ ...row, kind: KINDS[row.kind] ?? Kind.Other }));
}

/** Whether a table is of the functions below this node: the result of a running task grows, and its nodes move. */
export function isBelow({ root }: Pick<ChangedFunctions, "root">, index: DiffIndex, node: number): boolean {
  const [a, b] = root.total;
  return (
    labelOf(index.flame, node).name === root.name && index.totalA[node] === a && index.totalB[node] === b
  );
}
