// Folds the first frames of a process that hand every sample on (thread start, main, event loop) into one, up to
// where its stacks part. Only what is drawn changes: no number does, and a path keeps its key, so that a link
// to a zoomed frame leads to it whether frames are folded or not.

import { type FlameIndex, pathKey, rowsOf } from "./flame_index";
import { Kind, type Label, NameSource } from "./flamegraph";

/** Fewer frames are not worth a step of the reader. */
const LEAST_FOLDED = 3;

function isProcess(kind: number): boolean {
  return kind === Kind.Process || kind === Kind.Thread;
}

/** Children that have samples: the first of them, and whether there are more. */
function childrenOf(index: FlameIndex, node: number): { first: number; many: boolean } {
  let first = -1;
  for (let child = node + 1; child < index.end[node]!; child = index.end[child]!) {
    if (index.total[child] === 0) continue;
    if (first !== -1) return { first, many: true };
    first = child;
  }
  return { first, many: false };
}

/**
 * The frames from `first` on that hand every sample on to one frame, up to that where stacks part, which stays.
 * Empty where they never part: the last ones are what the time goes to.
 */
function chainFrom(index: FlameIndex, first: number): number[] {
  const chain: number[] = [];
  let node = first;
  while (index.graph.self[node] === 0) {
    const below = childrenOf(index, node);
    if (below.many) return chain;
    if (below.first === -1) return [];
    chain.push(node);
    node = below.first;
  }
  // Some stacks end in a frame with samples of its own; where none goes on, all of them are the work.
  return childrenOf(index, node).first === -1 ? [] : chain;
}

function foldedLabel(frames: number): Label {
  return {
    name: `${frames} first frames`,
    module: "",
    file: "",
    line: 0,
    kind: Kind.Other,
    source: NameSource.Marker,
  };
}

/** The tree with its first frames folded; the same index when there is nothing to fold. */
export function foldStart(index: FlameIndex): FlameIndex {
  const { graph, count, parent } = index;
  const labels: Label[] = [...graph.labels];
  const folds = new Map<number, readonly number[]>();
  /** For the first frame of a chain its new label, -1 for the others of it. */
  const replaced = new Map<number, number>();
  // By label: a million nodes have few of them.
  const isOutside = Uint8Array.from(labels, ({ kind }) => (isProcess(kind) ? 1 : 0));
  for (let node = 1; node < count; node += 1) {
    if (isOutside[graph.label[parent[node]!]!] === 0 || isOutside[graph.label[node]!] === 1) continue;
    if (index.total[node] === 0) continue;
    const chain = chainFrom(index, node);
    if (chain.length < LEAST_FOLDED) continue;
    for (const at of chain) replaced.set(at, -1);
    replaced.set(node, labels.length);
    folds.set(
      labels.length,
      chain.map((at) => graph.label[at]!),
    );
    labels.push(foldedLabel(chain.length));
  }
  if (folds.size === 0) return index;
  return { ...without(index, replaced, labels), folds, foldedPaths: foldedPaths(index, replaced) };
}

/**
 * The index without the nodes whose new label is -1. What hands every sample on has the samples and the place of what is
 * below it, so that nothing is computed anew but rows.
 */
function without(
  index: FlameIndex,
  replaced: ReadonlyMap<number, number>,
  labels: readonly Label[],
): FlameIndex {
  const { graph, count } = index;
  const gone = new Uint8Array(count);
  for (const [node, label] of replaced) if (label === -1) gone[node] = 1;
  const left = count - [...replaced.values()].filter((label) => label === -1).length;
  const depth = new Uint32Array(left);
  const parent = new Int32Array(left);
  /** Of each node: how many from the root to it are gone, which of those that stay it is or lies in, and which is it or the next. */
  const raised = new Uint32Array(count);
  const stands = new Int32Array(count);
  const next = new Uint32Array(count + 1);
  const runs: [number, number][] = [];
  let at = 0;
  let from = 0;
  for (let node = 0; node < count; node += 1) {
    const up = index.parent[node]!;
    if (up >= 0) raised[node] = raised[up]! + gone[node]!;
    next[node] = at;
    if (gone[node] === 1) {
      stands[node] = stands[up]!;
      runs.push([from, node]);
      from = node + 1;
      continue;
    }
    stands[node] = at;
    depth[at] = graph.depth[node]! - raised[node]!;
    parent[at] = up < 0 ? up : stands[up]!;
    at += 1;
  }
  runs.push([from, count]);
  const label = kept(graph.label, runs, new Uint32Array(left));
  for (const [node, its] of replaced) if (its !== -1) label[stands[node]!] = its;
  const end = kept(index.end, runs, new Uint32Array(left));
  next[count] = left;
  for (let i = 0; i < left; i += 1) end[i] = next[end[i]!]!;
  const { features } = graph;
  const [low, high] = index.pathHash;
  return {
    graph: {
      ...graph,
      labels,
      depth,
      self: kept(graph.self, runs, new Float64Array(left)),
      label,
      ...(features && { features: { ...features, own: kept(features.own, runs, new Uint16Array(left)) } }),
    },
    count: left,
    parent,
    end,
    total: kept(index.total, runs, new Float64Array(left)),
    start: kept(index.start, runs, new Float64Array(left)),
    pathHash: [kept(low, runs, new Uint32Array(left)), kept(high, runs, new Uint32Array(left))],
    ...rowsOf(depth),
  };
}

/** Copies the runs of nodes that stay. */
function kept<T extends Uint16Array | Uint32Array | Float64Array>(
  all: T,
  runs: readonly (readonly [number, number])[],
  into: T,
): T {
  let at = 0;
  for (const [from, to] of runs) {
    into.set(all.subarray(from, to), at);
    at += to - from;
  }
  return into;
}

/** Links to frames that are folded lead to the frame that stands for them. */
function foldedPaths(index: FlameIndex, replaced: ReadonlyMap<number, number>): Map<string, number> {
  const paths = new Map<string, number>();
  // They are in pre-order, the first frame of each chain before the others of it.
  let gone = 0;
  let stand = 0;
  for (const [node, label] of replaced) {
    if (label !== -1) stand = node - gone;
    else {
      gone += 1;
      paths.set(pathKey(index, node), stand);
    }
  }
  return paths;
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
