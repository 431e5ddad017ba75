// Folds the first frames of a process that hand every sample on (thread start, main, event loop) into one, up to
// where its stacks part. Only what is drawn changes: no number does, and a path keeps its key, so that a link
// to a zoomed frame leads to it whether frames are folded or not.

import { type FlameIndex, indexFlameGraph, labelOf, pathKey } from "./flame_index";
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
  for (let node = 1; node < count; node += 1) {
    if (!isProcess(labelOf(index, parent[node]!).kind) || isProcess(labelOf(index, node).kind)) continue;
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

  const { kept, depth } = keep(index, replaced);
  const pick = (all: Uint32Array): Uint32Array => kept.map((node) => all[node]!);
  const { features } = graph;
  const made = indexFlameGraph(
    {
      ...graph,
      labels,
      depth,
      self: Float64Array.from(kept, (node) => graph.self[node]!),
      label: kept.map((node) => replaced.get(node) ?? graph.label[node]!),
      ...(features && {
        features: { ...features, own: Uint16Array.from(kept, (node) => features.own[node]!) },
      }),
    },
    0,
    [pick(index.pathHash[0]), pick(index.pathHash[1])],
  );
  return { ...made, folds, foldedPaths: foldedPaths(index, replaced) };
}

/** The nodes that stay, and how deep they are then. */
function keep(
  index: FlameIndex,
  replaced: ReadonlyMap<number, number>,
): { kept: Uint32Array; depth: Uint32Array } {
  const { graph, count, parent } = index;
  const gone = new Uint8Array(count);
  for (const [node, label] of replaced) if (label === -1) gone[node] = 1;
  const left = count - gone.reduce((sum, one) => sum + one, 0);
  const kept = new Uint32Array(left);
  const depth = new Uint32Array(left);
  const raised = new Uint32Array(count);
  let at = 0;
  for (let node = 0; node < count; node += 1) {
    if (node > 0) raised[node] = raised[parent[node]!]! + gone[node]!;
    if (gone[node] === 1) continue;
    kept[at] = node;
    depth[at] = graph.depth[node]! - raised[node]!;
    at += 1;
  }
  return { kept, depth };
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
