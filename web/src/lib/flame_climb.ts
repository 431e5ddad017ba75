// Trees that are read from the leaf to the root: who called what, for all functions (inverted) or
// for one (the upper half of a sandwich).
//
// A node of such a tree stands for a set of places in the profile, the cursors, each with the samples
// that came from there. Its children are those places' callers, by function; two cursors that meet at
// one caller become one. Branches too small to be seen become "(other)", so that the work stays near
// the size of the profile even where the whole tree would be far larger than it.

import type { FlameIndex } from "./flame_index";
import { functionOf, ranks } from "./flame_keys";
import { type FlameGraph, Kind, type Label, NameSource } from "./flamegraph";

/** Nodes below this part of all samples are merged, as the agent does with the profile itself. */
const PRUNING_SHARE = 8192;
/** More is refused in favour of "(other)": bounded memory and time for any profile. */
const MAX_NODES = 1_000_000;
const MAX_STEPS = 12_000_000;

export const OTHER: Label = {
  name: "(other)",
  module: "",
  file: "",
  line: 0,
  kind: Kind.Other,
  source: NameSource.Marker,
};

const extended = new WeakMap<readonly Label[], readonly Label[]>();

/** The labels with one for merged frames at the end. */
function withOther(labels: readonly Label[]): readonly Label[] {
  const known = extended.get(labels);
  if (known !== undefined) return known;
  const result = [...labels, OTHER];
  extended.set(labels, result);
  return result;
}

/** A stack of cursors that grows as needed. */
class Arena {
  nodes = new Uint32Array(1024);
  amounts = new Float64Array(1024);
  top = 0;

  reserve(room: number): void {
    if (this.top + room <= this.nodes.length) return;
    const size = Math.max(this.nodes.length * 2, this.top + room);
    const nodes = new Uint32Array(size);
    nodes.set(this.nodes);
    this.nodes = nodes;
    const amounts = new Float64Array(size);
    amounts.set(this.amounts);
    this.amounts = amounts;
  }

  push(node: number, amount: number): void {
    this.reserve(1);
    this.nodes[this.top] = node;
    this.amounts[this.top] = amount;
    this.top += 1;
  }
}

interface Start {
  /** Label of the root of the new tree. */
  readonly rootLabel: number;
  /** Samples that no cursor has: they stay at the new root. */
  readonly rootSelf: number;
  /** Whether the root's children are the functions of the cursors, or those of their callers. */
  readonly children: "cursors" | "callers";
  readonly cursors: Arena;
}

function climb(index: FlameIndex, start: Start): FlameGraph {
  const { graph, parent } = index;
  const { label } = graph;
  const labels = withOther(graph.labels);
  const other = labels.length - 1;
  const functions = functionOf(graph.labels);
  const rank = ranks(graph.labels);

  const outDepth: number[] = [];
  const outSelf: number[] = [];
  const outLabel: number[] = [];

  // Nodes that are still to be written, the next one last. Their cursors lie in the arena in the
  // same order, so that those of the last one are on top.
  const pendingLabel: number[] = [start.rootLabel];
  const pendingDepth: number[] = [0];
  const pendingFrom: number[] = [0];
  const pendingSelf: number[] = [start.rootSelf];
  const arena = start.cursors;

  let whole = start.rootSelf;
  for (let i = 0; i < arena.top; i += 1) whole += arena.amounts[i]!;
  const least = whole / PRUNING_SHARE;
  let steps = 0;

  const amountAt = new Float64Array(index.count);
  let touched = new Uint32Array(1024);
  const groupTotal = new Float64Array(graph.labels.length);
  const groupSize = new Uint32Array(graph.labels.length);
  const groupCursor = new Int32Array(graph.labels.length);

  while (pendingLabel.length > 0) {
    const own = pendingLabel.pop()!;
    const depth = pendingDepth.pop()!;
    const from = pendingFrom.pop()!;
    const self = pendingSelf.pop()!;
    const at = outDepth.length;
    outDepth.push(depth);
    outLabel.push(own);
    outSelf.push(self);
    if (from === arena.top) continue;

    // Where the cursors go next; those that meet become one.
    if (touched.length < arena.top - from) touched = new Uint32Array((arena.top - from) * 2);
    let places = 0;
    let ends = 0;
    const stay = depth === 0 && start.children === "cursors";
    steps += arena.top - from;
    for (let i = from; i < arena.top; i += 1) {
      const amount = arena.amounts[i]!;
      const node = arena.nodes[i]!;
      const next = stay ? node : parent[node]!;
      if (next <= 0) {
        ends += amount;
        continue;
      }
      if (amountAt[next] === 0) {
        touched[places] = next;
        places += 1;
      }
      amountAt[next]! += amount;
    }
    arena.top = from;
    outSelf[at]! += ends;

    const groups: number[] = [];
    for (let i = 0; i < places; i += 1) {
      const node = touched[i]!;
      const group = functions[label[node]!]!;
      if (groupSize[group] === 0) groups.push(group);
      groupSize[group]! += 1;
      groupTotal[group]! += amountAt[node]!;
    }
    const full = outDepth.length + pendingLabel.length + groups.length > MAX_NODES || steps > MAX_STEPS;
    const enough = depth === 0 ? 0 : least;
    const kept: number[] = [];
    let merged = 0;
    for (const group of groups) {
      groupCursor[group] = -1;
      if (!full && groupTotal[group]! >= enough) {
        kept.push(group);
        continue;
      }
      merged += groupTotal[group]!;
      groupSize[group] = 0;
      groupTotal[group] = 0;
    }
    // The heaviest on the left; equal ones by name, so that the same profile gives the same picture.
    if (kept.length > 1) kept.sort((a, b) => groupTotal[b]! - groupTotal[a]! || rank[a]! - rank[b]!);
    if (merged > 0) {
      pendingLabel.push(other);
      pendingDepth.push(depth + 1);
      pendingFrom.push(arena.top);
      pendingSelf.push(merged);
    }
    arena.reserve(places);
    for (let i = kept.length - 1; i >= 0; i -= 1) {
      const group = kept[i]!;
      groupCursor[group] = arena.top;
      pendingLabel.push(group);
      pendingDepth.push(depth + 1);
      pendingFrom.push(arena.top);
      pendingSelf.push(0);
      arena.top += groupSize[group]!;
      groupSize[group] = 0;
      groupTotal[group] = 0;
    }
    for (let i = 0; i < places; i += 1) {
      const node = touched[i]!;
      const group = functions[label[node]!]!;
      const to = groupCursor[group]!;
      if (to >= 0) {
        arena.nodes[to] = node;
        arena.amounts[to] = amountAt[node]!;
        groupCursor[group] = to + 1;
      }
      amountAt[node] = 0;
    }
  }
  // Which feature the samples of a merged caller belong to is not known.
  const { features: _, ...rest } = graph;
  return {
    ...rest,
    labels,
    depth: Uint32Array.from(outDepth),
    self: Float64Array.from(outSelf),
    label: Uint32Array.from(outLabel),
  };
}

/** All functions by self samples, and below each its callers. */
export function invertedGraph(index: FlameIndex): FlameGraph {
  const { self, label } = index.graph;
  const cursors = new Arena();
  for (let node = 1; node < index.count; node += 1) if (self[node]! > 0) cursors.push(node, self[node]!);
  return climb(index, { rootLabel: label[0]!, rootSelf: self[0]!, children: "cursors", cursors });
}

/** The outermost places of a function (given as its first label): inside them it only recurs. */
export function outermost(index: FlameIndex, target: number): number[] {
  const functions = functionOf(index.graph.labels);
  const found: number[] = [];
  for (let node = 0; node < index.count; ) {
    if (functions[index.graph.label[node]!] === target) {
      found.push(node);
      node = index.end[node]!;
    } else node += 1;
  }
  return found;
}

/** Who called a function, with all the samples below it; recursion counts once. */
export function callersGraph(index: FlameIndex, target: number): FlameGraph {
  const cursors = new Arena();
  for (const node of outermost(index, target))
    if (index.total[node]! > 0) cursors.push(node, index.total[node]!);
  return climb(index, { rootLabel: target, rootSelf: 0, children: "callers", cursors });
}
