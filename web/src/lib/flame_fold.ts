// Folds the frames that all stacks of a process begin with (thread start, main, event loop) into one.
// Only what is drawn changes: no number does, and a path keeps its key, so that a link to a zoomed
// frame leads to it whether frames are folded or not.

import { type FlameIndex, indexFlameGraph, labelOf } from "./flame_index";
import { Kind, type Label, NameSource } from "./flamegraph";

/** Fewer frames are not worth a step of the reader. */
const LEAST_FOLDED = 3;

/** Labels of the frames that one label stands for, by the number of that label. */
export type Folds = ReadonlyMap<number, readonly number[]>;

function isBase(kind: number): boolean {
  return kind === Kind.Root || kind === Kind.Process || kind === Kind.Thread;
}

/** The only child that has samples; -1 when there is none, or more than one. */
function onlyChild(index: FlameIndex, node: number): number {
  let only = -1;
  for (let child = node + 1; child < index.end[node]!; child = index.end[child]!) {
    if (index.total[child] === 0) continue;
    if (only !== -1) return -1;
    only = child;
  }
  return only;
}

/** The frames below a base that hand every sample on to the next one, without the last of them. */
function chainFrom(index: FlameIndex, first: number): number[] {
  const chain: number[] = [];
  let node = first;
  while (index.graph.self[node] === 0) {
    const next = onlyChild(index, node);
    if (next === -1 || labelOf(index, next).kind === Kind.Other) break;
    chain.push(node);
    node = next;
  }
  return chain;
}

function foldedLabel(frames: number): Label {
  return {
    name: `${frames} start-up frames`,
    module: "",
    file: "",
    line: 0,
    kind: Kind.Other,
    source: NameSource.Marker,
  };
}

/** The tree with its start-up frames folded; the same index when there is nothing to fold. */
export function foldStart(index: FlameIndex): FlameIndex {
  const { graph, count, parent } = index;
  /** For the first frame of a chain its number of frames, 0 for the others of it, -1 for what stays. */
  const folded = new Int32Array(count).fill(-1);
  const labels: Label[] = [...graph.labels];
  const folds = new Map<number, readonly number[]>();
  const labelAt = new Map<number, number>();
  for (let node = 1; node < count; node += 1) {
    const own = labelOf(index, node).kind;
    if (isBase(own) || index.total[node] === 0 || !isBase(labelOf(index, parent[node]!).kind)) continue;
    const chain = chainFrom(index, node);
    if (chain.length < LEAST_FOLDED) continue;
    const parts = chain.map((at) => graph.label[at]!);
    for (const at of chain) folded[at] = 0;
    folded[node] = chain.length;
    folds.set(labels.length, parts);
    labelAt.set(node, labels.length);
    labels.push(foldedLabel(parts.length));
  }
  if (folds.size === 0) return index;

  const kept: number[] = [];
  for (let node = 0; node < count; node += 1) if (folded[node] !== 0) kept.push(node);
  const lower = new Uint32Array(count);
  const depth = new Uint32Array(kept.length);
  const self = new Float64Array(kept.length);
  const label = new Uint32Array(kept.length);
  for (let node = 1; node < count; node += 1)
    lower[node] = lower[parent[node]!]! + (folded[node] === 0 ? 1 : 0);
  kept.forEach((node, at) => {
    depth[at] = graph.depth[node]! - lower[node]!;
    self[at] = graph.self[node]!;
    label[at] = labelAt.get(node) ?? graph.label[node]!;
  });
  const { features } = graph;
  const of = features && Uint16Array.from(kept, (node) => features.of[node]!);
  const made = indexFlameGraph({
    ...graph,
    labels,
    depth,
    self,
    label,
    ...(features && of && { features: { ...features, of } }),
  });
  const hashes = (all: Uint32Array): Uint32Array => Uint32Array.from(kept, (node) => all[node]!);
  return { ...made, folds, pathHash: [hashes(index.pathHash[0]), hashes(index.pathHash[1])] };
}

/** Names of the frames that a frame stands for, from the root's side; empty for one that stands for itself. */
export function foldedNames(index: FlameIndex, node: number): string[] {
  const { labels, label } = index.graph;
  return (index.folds?.get(label[node]!) ?? []).map((id) => labels[id]!.name);
}

/** Whether a frame stands for folded ones. */
export function isFolded(index: FlameIndex, node: number): boolean {
  return node >= 0 && (index.folds?.has(index.graph.label[node]!) ?? false);
}
