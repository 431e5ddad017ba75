// Callers and callees of one function, summed over the whole profile.

import { outermost } from "./flame_climb";
import type { FlameIndex } from "./flame_index";
import { functionOf } from "./flame_keys";

export interface Relative {
  /** First label of the function. */
  readonly label: number;
  readonly total: number;
}

export interface Relatives {
  readonly total: number;
  readonly self: number;
  /** Direct callers and callees of the outermost calls, the heaviest first. */
  readonly callers: readonly Relative[];
  readonly callees: readonly Relative[];
}

function ordered(sums: Map<number, number>): Relative[] {
  return [...sums]
    .map(([label, total]) => ({ label, total }))
    .sort((a, b) => b.total - a.total || a.label - b.label);
}

/** `target` is the first label of the function. Recursion counts once. */
export function relatives(index: FlameIndex, target: number): Relatives {
  const { label, self: own } = index.graph;
  const functions = functionOf(index.graph.labels);
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  const add = (to: Map<number, number>, id: number, amount: number): void => {
    if (amount > 0) to.set(id, (to.get(id) ?? 0) + amount);
  };
  let total = 0;
  let self = 0;
  for (const node of outermost(index, target)) {
    total += index.total[node]!;
    const up = index.parent[node]!;
    if (up >= 0) add(callers, functions[label[up]!]!, index.total[node]!);
    for (let child = node + 1; child < index.end[node]!; child = index.end[child]!)
      add(callees, functions[label[child]!]!, index.total[child]!);
    for (let inside = node; inside < index.end[node]!; inside += 1)
      if (functions[label[inside]!] === target) self += own[inside]!;
  }
  return { total, self, callers: ordered(callers), callees: ordered(callees) };
}
