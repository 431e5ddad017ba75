// How much of a profile belongs to each module.

import type { FlameIndex } from "./flame_index";
import { Kind, type Label } from "./flamegraph";

export interface ModuleShare {
  readonly module: string;
  readonly self: number;
  /** One of its frames, for its look. */
  readonly label: Label;
}

/** Modules by self samples, the most first; processes are not modules. */
export function moduleShares(index: FlameIndex): ModuleShare[] {
  const { labels, label, self } = index.graph;
  const byLabel = new Float64Array(labels.length);
  for (let node = 0; node < index.count; node += 1) byLabel[label[node]!]! += self[node]!;
  const sums = new Map<string, { module: string; self: number; label: Label }>();
  labels.forEach((item, id) => {
    if (item.module === "" || item.kind === Kind.Process || item.kind === Kind.Thread) return;
    const sum = sums.get(item.module);
    if (sum === undefined) sums.set(item.module, { module: item.module, self: byLabel[id]!, label: item });
    else sum.self += byLabel[id]!;
  });
  return [...sums.values()].sort((a, b) => b.self - a.self || (a.module < b.module ? -1 : 1));
}

/** Samples in frames that stand for several too small to be told apart. */
export function mergedSamples(index: FlameIndex): number {
  const { labels, label, self } = index.graph;
  let sum = 0;
  for (let node = 0; node < index.count; node += 1)
    if (labels[label[node]!]!.kind === Kind.Other) sum += self[node]!;
  return sum;
}
