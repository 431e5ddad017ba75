// Changes of what is shown, one after the other, each undone by taking it out of the list. None of
// them changes a number: samples move to another frame, or leave and are counted as left out.
//
// In the address bar a change is a letter and a key (flame_keys.ts): `x=f-0123456789abcdef,p`.

import { outermost } from "./flame_climb";
import { ANYWHERE, Grower } from "./flame_grow";
import type { FlameIndex } from "./flame_index";
import { indexFlameGraph } from "./flame_index";
import { findFunction, findModule, functionKey, functionOf, isKey, moduleKey } from "./flame_keys";
import { type FlameGraph, Kind, type Label, NameSource } from "./flamegraph";
import { fileName } from "./format";
import { isEnvoyPlumbing, isRustPlumbing } from "./plumbing";

/** What is done with the function of a key, or with a module; the others need no key. */
export type TransformKind = "focus" | "merge" | "drop" | "recursion" | "module" | Preset | "processes";
/** Changes that are made for a kind of program. */
export type Preset = "envoy" | "runtime" | "kernel";

export interface Transform {
  readonly kind: TransformKind;
  /** Key of a function or module; empty where the kind needs none. */
  readonly key: string;
}

export const MAX_TRANSFORMS = 32;

const LETTERS: Readonly<Record<TransformKind, string>> = {
  focus: "f",
  merge: "m",
  drop: "d",
  recursion: "r",
  module: "c",
  processes: "p",
  envoy: "e",
  runtime: "t",
  kernel: "k",
};
const KEYLESS: readonly TransformKind[] = ["processes", "envoy", "runtime", "kernel"];
const KINDS = Object.keys(LETTERS) as TransformKind[];

/** Reads the list of the address bar; what is not understood is left out. */
export function parseTransforms(text: string): Transform[] {
  const found: Transform[] = [];
  for (const item of text.split(",").slice(0, MAX_TRANSFORMS)) {
    const kind = KINDS.find((name) => LETTERS[name] === item[0]);
    if (kind === undefined) continue;
    if (KEYLESS.includes(kind) ? item.length === 1 : item[1] === "-" && isKey(item.slice(2)))
      found.push({ kind, key: item.slice(2) });
  }
  return found;
}

export function formatTransforms(transforms: readonly Transform[]): string {
  return transforms
    .map(({ kind, key }) => (key === "" ? LETTERS[kind] : `${LETTERS[kind]}-${key}`))
    .join(",");
}

/** The list with the change at `position` moved by this many places; it stops at the ends. */
export function moveTransform(
  transforms: readonly Transform[],
  position: number,
  by: number,
): readonly Transform[] {
  const moved = transforms[position];
  const to = Math.max(0, Math.min(transforms.length - 1, position + by));
  if (moved === undefined || to === position) return transforms;
  const rest = transforms.filter((_, i) => i !== position);
  return [...rest.slice(0, to), moved, ...rest.slice(to)];
}

/** The change of this kind for a frame; null where it makes no sense. */
export function transformOf(kind: TransformKind, label: Label): Transform | null {
  if (label.kind === Kind.Root || label.kind === Kind.Other) return null;
  const code = label.kind !== Kind.Process && label.kind !== Kind.Thread;
  if (kind === "processes") return code ? null : { kind, key: "" };
  if (kind === "module") return code && label.module !== "" ? { kind, key: moduleKey(label.module) } : null;
  return kind === "recursion" && !code ? null : { kind, key: functionKey(label) };
}

/** A change with what it met in this profile. */
export interface Applied {
  readonly transform: Transform;
  /** What it is about, as untrusted text; null when this profile has no such function or module. */
  readonly name: string | null;
  /** Samples that it left out. */
  readonly dropped: number;
}

export interface Transformed {
  readonly index: FlameIndex;
  readonly applied: readonly Applied[];
  /** Samples that all of them together left out. */
  readonly dropped: number;
}

/** Runs the changes in their order. */
export function applyTransforms(index: FlameIndex, transforms: readonly Transform[]): Transformed {
  const applied: Applied[] = [];
  let shown = index;
  for (const transform of transforms) {
    const before = shown.total[0]!;
    const { graph, name } = applyOne(shown, transform);
    if (graph !== null) shown = indexFlameGraph(graph);
    // A name that an earlier change took away is still known from the whole profile.
    const known = name ?? nameOf(index.graph.labels, transform);
    applied.push({ transform, name: known, dropped: before - shown.total[0]! });
  }
  return { index: shown, applied, dropped: index.total[0]! - shown.total[0]! };
}

function nameOf(labels: readonly Label[], { kind, key }: Transform): string | null {
  if (KEYLESS.includes(kind)) return "";
  if (kind === "module") return findModule(labels, key);
  return labels[findFunction(labels, key)]?.name ?? null;
}

function applyOne(
  index: FlameIndex,
  transform: Transform,
): { graph: FlameGraph | null; name: string | null } {
  const { labels } = index.graph;
  if (transform.kind === "processes") return { graph: mergeProcesses(index), name: "" };
  if (transform.kind === "envoy" || transform.kind === "runtime")
    return {
      graph: mergeNamed(index, transform.kind === "envoy" ? isEnvoyPlumbing : isRustPlumbing),
      name: "",
    };
  if (transform.kind === "kernel") return { graph: kernelOnly(index), name: "" };
  if (transform.kind === "module") {
    const module = findModule(labels, transform.key);
    return { graph: module === null ? null : collapseModule(index, module), name: module };
  }
  const target = findFunction(labels, transform.key);
  // Without the function nothing is in focus, and everything is free of it.
  if (target < 0) return { graph: transform.kind === "focus" ? nothing(index.graph) : null, name: null };
  const change = { focus, merge, drop, recursion: collapseRecursion }[transform.kind];
  return { graph: change(index, target), name: labels[target]!.name };
}

function nothing(graph: FlameGraph): FlameGraph {
  const root = Uint32Array.of(0);
  const { features: _, ...rest } = graph;
  return { ...rest, depth: root, self: Float64Array.of(0), label: graph.label.slice(0, 1) };
}

const DROPPED = -1;

/** Makes, or finds, the child of a new node for an old one. */
type Child = (up: number, label: number) => number;

/**
 * Grows the changed tree: `place` says for each node, after its parent, which node of the new tree its
 * own samples belong to, or DROPPED. `up` is the place of its parent; `child` makes a copy of the node
 * there, `join` looks first whether there is such a child.
 */
function regrow(
  index: FlameIndex,
  labels: readonly Label[],
  rootLabel: number,
  place: (node: number, up: number, child: Child, join: Child) => number,
): FlameGraph {
  const { parent, graph, count } = index;
  const grower = new Grower(rootLabel, 0, count, graph.features?.own ?? null);
  const at = new Int32Array(count);
  let current = 0;
  const child: Child = (up, label) => grower.child(up, label, current, parent[current]!);
  const join: Child = (up, label) => grower.child(up, label, current, ANYWHERE);
  for (current = 0; current < count; current += 1) {
    const to = place(current, current === 0 ? DROPPED : at[parent[current]!]!, child, join);
    at[current] = to;
    if (to !== DROPPED) grower.add(to, graph.self[current]!, current);
  }
  return grower.finish(graph, labels);
}

/** Only stacks with the function, from its outermost place on. */
function focus(index: FlameIndex, target: number): FlameGraph {
  const { labels, label } = index.graph;
  const functions = functionOf(labels);
  return regrow(index, labels, label[0]!, (node, up, child, join) => {
    if (up !== DROPPED) return child(up, label[node]!);
    return functions[label[node]!] === target ? join(0, target) : DROPPED;
  });
}

/** Own samples of what is hidden go to its caller, and its callees stand on the caller. */
function hide(index: FlameIndex, isHidden: (label: number) => boolean): FlameGraph {
  const { labels, label } = index.graph;
  const hidden = Uint8Array.from(labels, (_, id) => (isHidden(id) ? 1 : 0));
  return regrow(index, labels, label[0]!, (node, up, child) => {
    if (node === 0) return 0;
    return hidden[label[node]!] === 1 ? up : child(up, label[node]!);
  });
}

function merge(index: FlameIndex, target: number): FlameGraph {
  const functions = functionOf(index.graph.labels);
  return hide(index, (label) => functions[label] === target);
}

/** All functions with such names. */
function mergeNamed(index: FlameIndex, isNamed: (name: string) => boolean): FlameGraph {
  const { labels } = index.graph;
  return hide(index, (label) => isUser(labels[label]!.kind) && isNamed(labels[label]!.name));
}

function isUser(kind: number): boolean {
  return kind === Kind.User || kind === Kind.InlinedUser || kind === Kind.Jit;
}

/** The kernel's part of the stacks, below the process; what has none is left out. */
function kernelOnly(index: FlameIndex): FlameGraph {
  const { labels, label, self } = index.graph;
  const kernel = new Uint8Array(index.count);
  for (let node = 1; node < index.count; node += 1) {
    const { kind } = labels[label[node]!]!;
    const above = kernel[index.parent[node]!] === 1;
    // Who woke a thread stands on its kernel frames, with user frames too.
    const isPart = above && (kind === Kind.Other || kind === Kind.Marker);
    if (isPart || kind === Kind.Kernel || kind === Kind.InlinedKernel) kernel[node] = 1;
  }
  const inKernel = {
    ...index,
    graph: { ...index.graph, self: self.map((own, node) => own * kernel[node]!) },
  };
  return regrow(inKernel, labels, label[0]!, (node, up, child) => {
    if (node === 0) return 0;
    const { kind } = labels[label[node]!]!;
    const stays = kernel[node] === 1 || kind === Kind.Process || kind === Kind.Thread;
    return stays ? child(up, label[node]!) : up;
  });
}

/** Without the stacks that have the function. */
function drop(index: FlameIndex, target: number): FlameGraph {
  const { labels, label } = index.graph;
  const functions = functionOf(labels);
  return regrow(index, labels, label[0]!, (node, up, child) => {
    if (functions[label[node]!] === target || (node > 0 && up === DROPPED)) return DROPPED;
    return node === 0 ? 0 : child(up, label[node]!);
  });
}

/** Calls of the function inside itself become its outermost call. */
function collapseRecursion(index: FlameIndex, target: number): FlameGraph {
  const { labels, label } = index.graph;
  const functions = functionOf(labels);
  let end = 0;
  let outer = 0;
  return regrow(index, labels, label[0]!, (node, up, child) => {
    const same = functions[label[node]!] === target;
    if (same && node < end) return outer;
    const to = node === 0 ? 0 : child(up, label[node]!);
    if (same) {
      end = index.end[node]!;
      outer = to;
    }
    return to;
  });
}

const BASE_KIND: Readonly<Record<number, number>> = {
  [Kind.InlinedUser]: Kind.User,
  [Kind.InlinedKernel]: Kind.Kernel,
};

/** Calls inside a module become one frame with the module's name. */
function collapseModule(index: FlameIndex, module: string): FlameGraph {
  const { labels, label } = index.graph;
  const codeOf = (id: number): boolean => labels[id]!.module === module && labels[id]!.kind !== Kind.Process;
  const first = labels.find((_, id) => codeOf(id));
  const collapsed: Label = {
    name: `[${fileName(module).replace(/^\[|\]$/g, "")}]`,
    module,
    file: "",
    line: 0,
    kind: BASE_KIND[first?.kind ?? Kind.User] ?? first?.kind ?? Kind.User,
    source: NameSource.Marker,
  };
  const inside = Uint8Array.from(labels, (_, id) => (codeOf(id) ? 1 : 0));
  return regrow(index, [...labels, collapsed], label[0]!, (node, up, child, join) => {
    if (node === 0) return 0;
    if (inside[label[node]!] === 0) return child(up, label[node]!);
    const above = index.parent[node]!;
    return above > 0 && inside[label[above]!] === 1 ? up : join(up, labels.length);
  });
}

/** Stacks of all processes and threads in one. */
function mergeProcesses(index: FlameIndex): FlameGraph {
  const { labels } = index.graph;
  return hide(index, (label) => [Kind.Process, Kind.Thread].some((kind) => kind === labels[label]!.kind));
}

/** What a function (its first label) called, merged from its outermost places; it is the new root. */
export function calleesGraph(index: FlameIndex, target: number): FlameGraph {
  const { labels, label } = index.graph;
  const starts = new Set(outermost(index, target));
  return regrow(index, labels, target, (node, up, child) => {
    if (up !== DROPPED) return child(up, label[node]!);
    return starts.has(node) ? 0 : DROPPED;
  });
}
