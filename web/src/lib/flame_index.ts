// What drawing, hit testing and searching need, computed from the columns in a few linear passes.
// No recursion: a stack may be thousands of frames deep.

import { type FlameGraph, type Label, MIXED } from "./flamegraph";

export interface FlameIndex {
  readonly graph: FlameGraph;
  readonly count: number;
  /** Parent of each node, -1 for the root. */
  readonly parent: Int32Array;
  /** First node after the subtree of each node. */
  readonly end: Uint32Array;
  /** Self plus all descendants, in samples. */
  readonly total: Float64Array;
  /** Left edge in samples from the left of the root. */
  readonly start: Float64Array;
  /** `rowNodes[rowOffset[d] .. rowOffset[d + 1]]` are the nodes of depth `d`, from left to right. */
  readonly rowOffset: Uint32Array;
  readonly rowNodes: Uint32Array;
  readonly rows: number;
  /** Names the path from the root to a node; stays the same when the profile is fetched again. */
  readonly pathHash: readonly [Uint32Array, Uint32Array];
  /** Labels that stand for several folded frames (lib/flame_fold.ts), with the labels of these. */
  readonly folds?: ReadonlyMap<number, readonly number[]>;
  /** Keys of paths that are folded, and the node that stands for each. */
  readonly foldedPaths?: ReadonlyMap<string, number>;
}

const FNV_PRIME = 0x01000193;
const NO_PARENT = -1;

/** 32-bit FNV-1a over UTF-16 units. */
export function hashText(text: string, seed = 0x811c9dc5): number {
  let hash = seed;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

function mix(parent: number, own: number, salt: number): number {
  let hash = Math.imul(parent ^ own ^ salt, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ own, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function labelHashes(labels: readonly Label[]): readonly [Uint32Array, Uint32Array] {
  const low = new Uint32Array(labels.length);
  const high = new Uint32Array(labels.length);
  labels.forEach((label, i) => {
    const text = `${label.kind}\0${label.name}\0${label.module}`;
    low[i] = hashText(text);
    high[i] = hashText(text, 0x9e3779b9);
  });
  return [low, high];
}

/** The nodes of each row. */
export function rowsOf(depth: Uint32Array): { rowOffset: Uint32Array; rowNodes: Uint32Array; rows: number } {
  let rows = 0;
  for (const value of depth) if (value >= rows) rows = value + 1;
  const rowOffset = new Uint32Array(rows + 1);
  for (const value of depth) rowOffset[value + 1]! += 1;
  for (let row = 0; row < rows; row += 1) rowOffset[row + 1]! += rowOffset[row]!;
  const cursor = rowOffset.slice();
  const rowNodes = new Uint32Array(depth.length);
  for (let i = 0; i < depth.length; i += 1) {
    const row = depth[i]!;
    rowNodes[cursor[row]!] = i;
    cursor[row]! += 1;
  }
  return { rowOffset, rowNodes, rows };
}

/** `salt` keeps the paths of two trees over the same functions apart. */
export function indexFlameGraph(graph: FlameGraph, salt = 0): FlameIndex {
  const { depth, self } = graph;
  const count = depth.length;
  const { rowOffset, rowNodes, rows } = rowsOf(depth);

  const parent = new Int32Array(count);
  const lastAtDepth = new Int32Array(rows);
  for (let i = 0; i < count; i += 1) {
    const own = depth[i]!;
    parent[i] = own === 0 ? NO_PARENT : lastAtDepth[own - 1]!;
    lastAtDepth[own] = i;
  }

  const total = self.slice();
  const end = new Uint32Array(count);
  for (let i = count - 1; i >= 0; i -= 1) {
    if (end[i] === 0) end[i] = i + 1;
    const up = parent[i]!;
    if (up === NO_PARENT) continue;
    total[up]! += total[i]!;
    if (end[up]! < end[i]!) end[up] = end[i]!;
  }

  const start = new Float64Array(count);
  const childStart = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const up = parent[i]!;
    if (up !== NO_PARENT) {
      start[i] = childStart[up]!;
      childStart[up]! += total[i]!;
    }
    childStart[i] = start[i]!;
  }
  const pathHash = pathHashes(graph, parent, salt);
  return { graph, count, parent, end, total, start, rowOffset, rowNodes, rows, pathHash };
}

function pathHashes(graph: FlameGraph, parent: Int32Array, salt: number): FlameIndex["pathHash"] {
  const { label } = graph;
  const [labelLow, labelHigh] = labelHashes(graph.labels);
  const low = new Uint32Array(label.length);
  const high = new Uint32Array(label.length);
  for (let i = 0; i < label.length; i += 1) {
    const up = parent[i]!;
    const own = label[i]!;
    low[i] = mix(up === NO_PARENT ? salt : low[up]!, labelLow[own]!, 0x27d4eb2f);
    high[i] = mix(up === NO_PARENT ? salt : high[up]!, labelHigh[own]!, 0x165667b1);
  }
  return [low, high];
}

/** No sample of a feature yet. */
const NO_FEATURE = MIXED - 1;
const featuresOf = new WeakMap<FlameIndex, Uint16Array>();

/** For each node the feature that all its samples belong to, or MIXED; null where the agent did not say. */
export function nodeFeatures(index: FlameIndex): Uint16Array | null {
  const { features, self } = index.graph;
  if (features === undefined) return null;
  const known = featuresOf.get(index);
  if (known !== undefined) return known;
  const of = new Uint16Array(index.count).fill(NO_FEATURE);
  const join = (node: number, feature: number): void => {
    if (of[node] === NO_FEATURE) of[node] = feature;
    else if (of[node] !== feature) of[node] = MIXED;
  };
  for (let node = index.count - 1; node >= 0; node -= 1) {
    if (self[node]! > 0) join(node, features.own[node]!);
    if (of[node] === NO_FEATURE) of[node] = MIXED;
    else if (index.parent[node]! !== NO_PARENT) join(index.parent[node]!, of[node]!);
  }
  featuresOf.set(index, of);
  return of;
}

/** The label of a node. */
export function labelOf(index: FlameIndex, node: number): Label {
  return index.graph.labels[index.graph.label[node]!]!;
}

/** 16 hex digits that name the node's path, for the address bar. */
export function pathKey(index: FlameIndex, node: number): string {
  const digits = (part: Uint32Array): string => part[node]!.toString(16).padStart(8, "0");
  return digits(index.pathHash[1]) + digits(index.pathHash[0]);
}

/** The node with this path, or 0 (the root) when it is not in this profile. */
export function findPath(index: FlameIndex, key: string): number {
  if (!/^[0-9a-f]{16}$/.test(key)) return 0;
  const high = Number.parseInt(key.slice(0, 8), 16);
  const low = Number.parseInt(key.slice(8), 16);
  for (let i = 0; i < index.count; i += 1) {
    if (index.pathHash[0][i] === low && index.pathHash[1][i] === high) return i;
  }
  return index.foldedPaths?.get(key) ?? 0;
}

/** Nodes from the root to `node`, both included. */
export function ancestry(index: FlameIndex, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at !== NO_PARENT; at = index.parent[at]!) path.push(at);
  return path.reverse();
}

/** True when `inner` is `outer` or lies below it. */
export function contains(index: FlameIndex, outer: number, inner: number): boolean {
  return inner >= outer && inner < index.end[outer]!;
}

/** Position in `rowNodes` of the first node of row `depth` that ends right of `x` (in samples). */
export function firstEndingAfter(index: FlameIndex, depth: number, x: number): number {
  let low = index.rowOffset[depth]!;
  let high = index.rowOffset[depth + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const node = index.rowNodes[middle]!;
    if (index.start[node]! + index.total[node]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Position of the last node of the row's range `[from, to)` that starts left of `x`; `from` if none. */
export function lastStartingBefore(index: FlameIndex, from: number, to: number, x: number): number {
  const { start, rowNodes } = index;
  let low = from;
  let high = to;
  // It is near in most rows: steps that double come sooner to it than halves of the row.
  for (let step = 1; low + step < to; step *= 2) {
    if (start[rowNodes[low + step]!]! >= x) {
      high = low + step;
      break;
    }
    low += step;
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (start[rowNodes[middle]!]! < x) low = middle + 1;
    else high = middle;
  }
  return Math.max(from, low - 1);
}

/** The node of row `depth` at `x` samples, or -1. */
export function nodeAt(index: FlameIndex, depth: number, x: number): number {
  if (depth < 0 || depth >= index.rows) return -1;
  const at = firstEndingAfter(index, depth, x);
  if (at >= index.rowOffset[depth + 1]!) return -1;
  const node = index.rowNodes[at]!;
  return index.start[node]! <= x ? node : -1;
}

/** Rows needed to show the subtree of `node` with all its ancestors. */
export function rowsBelow(index: FlameIndex, node: number): number {
  let deepest = 0;
  const { depth } = index.graph;
  for (let i = node; i < index.end[node]!; i += 1) if (depth[i]! > deepest) deepest = depth[i]!;
  return deepest + 1;
}

/** The child with the largest total, or -1 for a leaf. */
export function heaviestChild(index: FlameIndex, node: number): number {
  let best = -1;
  for (let child = node + 1; child < index.end[node]!; child = index.end[child]!) {
    if (index.total[child]! > 0 && (best === -1 || index.total[child]! > index.total[best]!)) best = child;
  }
  return best;
}

/** The nearest drawn node of the same row left (-1) or right (+1) of `node`, or -1 at the edge. */
export function neighbour(index: FlameIndex, node: number, direction: -1 | 1): number {
  const depth = index.graph.depth[node]!;
  const from = index.rowOffset[depth]!;
  const to = index.rowOffset[depth + 1]!;
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (index.rowNodes[middle]! < node) low = middle + 1;
    else high = middle;
  }
  for (let at = low + direction; at >= from && at < to; at += direction) {
    const other = index.rowNodes[at]!;
    if (index.total[other]! > 0) return other;
  }
  return -1;
}

/** Number of direct children. */
export function childCount(index: FlameIndex, node: number): number {
  let count = 0;
  for (let child = node + 1; child < index.end[node]!; child = index.end[child]!) count += 1;
  return count;
}
