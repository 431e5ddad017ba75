// What drawing and listing a comparison needs: widths, both sides' totals, and how much of a change
// chance can explain. No recursion: a stack may be thousands of frames deep.

import type { DiffGraph } from "./diff";
import { type FlameIndex, indexFlameGraph } from "./flame_index";
import { Kind } from "./flamegraph";
import { ALPHA, adjusted, type Pair, proportions, rates, type Test } from "./significance";

export type Norm = "share" | "rate";

export type Verdict = "significant" | "not_significant" | "too_few" | "unknown";

export interface DiffIndex {
  readonly diff: DiffGraph;
  readonly norm: Norm;
  /** Geometry: a node is as wide as the mean of both normalised sides. Its totals are such means. */
  readonly flame: FlameIndex;
  readonly totalA: Float64Array;
  readonly totalB: Float64Array;
  /** What a side's amount is divided by; 0 when the side is empty. */
  readonly scale: Pair;
  /** Why nothing is said about chance, or null. */
  readonly unknown: "not_samples" | "no_period" | null;
}

/** Widths are multiples of this part of the whole, so that float sums are exact. */
const WIDTH_UNITS = 2 ** 44;

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

/** `sampled`: the numbers are samples of a clock, which tests apply to. */
export function indexDiff(diff: DiffGraph, norm: Norm, sampled: boolean): DiffIndex {
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
  const unknown = !sampled ? "not_samples" : norm === "rate" && diff.unitNs.includes(0) ? "no_period" : null;
  return { diff, norm, flame, totalA, totalB, scale, unknown };
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

export function test(index: DiffIndex, amount: Pair): Test | null {
  if (index.unknown !== null) return null;
  if (index.norm === "share") return proportions(amount, [index.totalA[0]!, index.totalB[0]!]);
  const { coveredNs, unitNs } = index.diff;
  return rates(amount, [coveredNs[0] / unitNs[0], coveredNs[1] / unitNs[1]]);
}

/** What is known about the total of one frame, looked at alone. */
export function verdictOf(index: DiffIndex, node: number): { verdict: Verdict; test: Test | null } {
  const found = test(index, [index.totalA[node]!, index.totalB[node]!]);
  if (index.unknown !== null) return { verdict: "unknown", test: null };
  if (found === null) return { verdict: "too_few", test: null };
  return { verdict: found.p < ALPHA ? "significant" : "not_significant", test: found };
}

/** For each node how it is coloured: tendency, or NaN where chance can explain the change. */
export function colours(index: DiffIndex): Float32Array {
  return Float32Array.from({ length: index.flame.count }, (_, node) => {
    const { verdict } = verdictOf(index, node);
    if (verdict === "not_significant" || verdict === "too_few") return Number.NaN;
    return tendency(index, node);
  });
}

export interface ChangeRow {
  readonly name: string;
  readonly module: string;
  readonly kind: number;
  readonly self: Pair;
  /** With the function anywhere in the stack; recursion counts once. */
  readonly total: Pair;
  /** Of the self part after normalising. */
  readonly change: number;
  readonly totalChange: number;
  readonly badge: "new" | "removed" | null;
  readonly verdict: Verdict;
  readonly p: number | null;
  /** With all tested functions in view. */
  readonly q: number | null;
}

interface Sum {
  readonly label: number;
  readonly self: [number, number];
  readonly total: [number, number];
  openUntil: number;
}

/** The functions below `root`, the largest change of their self part first. */
export function changes(index: DiffIndex, root: number): ChangeRow[] {
  const { diff, flame } = index;
  const rows = new Map<number, Sum>();
  for (let i = root; i < flame.end[root]!; i += 1) {
    const label = diff.label[i]!;
    if (diff.labels[label]!.kind === Kind.Root) continue;
    let row = rows.get(label);
    if (row === undefined) {
      row = { label, self: [0, 0], total: [0, 0], openUntil: 0 };
      rows.set(label, row);
    }
    row.self[0] += diff.selfA[i]!;
    row.self[1] += diff.selfB[i]!;
    if (i >= row.openUntil) {
      row.total[0] += index.totalA[i]!;
      row.total[1] += index.totalB[i]!;
      row.openUntil = flame.end[i]!;
    }
  }
  const sums = [...rows.values()];
  const tests = sums.map(({ self }) => (self[0] + self[1] === 0 ? null : test(index, self)));
  const places = sums.map((_, i) => i).filter((i) => tests[i] !== null);
  const qs = adjusted(places.map((place) => tests[place]!.p));
  const q = new Map(places.map((place, i) => [place, qs[i]!]));
  const built = sums.map((sum, i): ChangeRow => {
    const { name, module, kind } = diff.labels[sum.label]!;
    const [a, b] = normalised(index, sum.self);
    const [totalA, totalB] = normalised(index, sum.total);
    const own = q.get(i) ?? null;
    return {
      name,
      module,
      kind,
      self: sum.self,
      total: sum.total,
      change: b - a,
      totalChange: totalB - totalA,
      badge: sum.total[0] === 0 ? "new" : sum.total[1] === 0 ? "removed" : null,
      verdict:
        index.unknown !== null
          ? "unknown"
          : own === null
            ? "too_few"
            : own < ALPHA
              ? "significant"
              : "not_significant",
      p: tests[i]?.p ?? null,
      q: own,
    };
  });
  return built.sort((left, right) => Math.abs(right.change) - Math.abs(left.change));
}
