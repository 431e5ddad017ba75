// Search in a flame graph. A pattern is matched once for each label, then spread to the nodes.

import { type FlameIndex, nodeFeatures } from "./flame_index";
import { Kind, type Label, NameSource } from "./flamegraph";

/** What the search box says, understood. */
export type Query =
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "test"; readonly test: (label: Label) => boolean }
  /** Frames whose samples all belong to the features with such a title. */
  | { readonly kind: "feature"; readonly wants: (title: string) => boolean };

export interface Matches {
  /** 1 for each node that matches. */
  readonly nodes: Uint8Array;
  /** Matching nodes in pre-order. */
  readonly list: Uint32Array;
  /** Samples below at least one match: no sample is counted twice. */
  readonly union: number;
  /** Samples whose leaf matches. */
  readonly self: number;
}

/** Longer names are cut before a regular expression sees them. */
const MAX_TESTED_LENGTH = 4096;
const MAX_PATTERN_LENGTH = 1000;
const TIME_LIMIT_MS = 500;

const KIND_NAMES: Readonly<Record<string, readonly number[]>> = {
  user: [Kind.User, Kind.InlinedUser, Kind.Jit],
  kernel: [Kind.Kernel, Kind.InlinedKernel],
  inlined: [Kind.InlinedUser, Kind.InlinedKernel],
  marker: [Kind.Marker],
  jit: [Kind.Jit],
  process: [Kind.Process],
  thread: [Kind.Thread],
  merged: [Kind.Other],
};

const CODE: readonly number[] = [Kind.User, Kind.InlinedUser, Kind.Kernel, Kind.InlinedKernel, Kind.Jit];

/** Kinds that hang on where the name came from. */
const SOURCE_NAMES: Readonly<Record<string, number>> = {
  inferred: NameSource.Inferred,
  unnamed: NameSource.None,
};

/** Substring without case, `/regex/` or `/regex/i`, `mod:text`, `feature:text`, `kind:kernel|user|inlined|jit|marker|process|inferred|...`. */
export function parseQuery(text: string): Query {
  const pattern = text.trim();
  if (pattern === "") return { kind: "none" };
  if (pattern.length > MAX_PATTERN_LENGTH) return { kind: "invalid", reason: "the pattern is too long" };
  const regex = /^\/(.+)\/(i?)$/.exec(pattern);
  if (regex !== null) {
    try {
      const compiled = new RegExp(regex[1] ?? "", regex[2] ?? "");
      return { kind: "test", test: (label) => compiled.test(label.name.slice(0, MAX_TESTED_LENGTH)) };
    } catch {
      return { kind: "invalid", reason: "not a valid regular expression" };
    }
  }
  if (pattern.startsWith("kind:")) {
    const word = pattern.slice(5).trim().toLowerCase();
    const source = SOURCE_NAMES[word];
    if (source !== undefined)
      return { kind: "test", test: (label) => label.source === source && CODE.includes(label.kind) };
    const kinds = KIND_NAMES[word];
    if (kinds === undefined) {
      const words = [...Object.keys(KIND_NAMES), ...Object.keys(SOURCE_NAMES)];
      return { kind: "invalid", reason: `kind is one of ${words.join(", ")}` };
    }
    return { kind: "test", test: (label) => kinds.includes(label.kind) };
  }
  if (pattern.startsWith("mod:")) {
    const part = pattern.slice(4).trim().toLowerCase();
    if (part === "") return { kind: "none" };
    return { kind: "test", test: (label) => label.module.toLowerCase().includes(part) };
  }
  if (pattern.startsWith("feature:")) {
    const title = pattern.slice(8).trim().toLowerCase();
    if (title === "") return { kind: "none" };
    const whole = /^"(.*)"$/.exec(title)?.[1];
    const wants = (name: string): boolean =>
      whole === undefined ? name.toLowerCase().includes(title) : name.toLowerCase() === whole;
    return { kind: "feature", wants };
  }
  const part = pattern.toLowerCase();
  return { kind: "test", test: (label) => label.name.toLowerCase().includes(part) };
}

/** Runs a query; `null` when it took too long (a pattern that backtracks without end). */
export function searchFlameGraph(
  index: FlameIndex,
  test: (label: Label) => boolean,
  now: () => number = () => performance.now(),
): Matches | null {
  const { labels, label } = index.graph;
  const limit = now() + TIME_LIMIT_MS;
  const hit = new Uint8Array(labels.length);
  for (let i = 0; i < labels.length; i += 1) {
    // A label that stands for folded frames comes after theirs, and matches when one of them does.
    const folded = index.folds?.get(i);
    if (folded === undefined ? test(labels[i]!) : folded.some((label) => hit[label] === 1)) hit[i] = 1;
    if ((i & 63) === 0 && now() > limit) return null;
  }
  return collect(index, (node) => hit[label[node]!] === 1);
}

/** Frames whose samples all belong to such features, and all samples of these; null where the graph has none. */
export function searchFeatures(index: FlameIndex, wants: (title: string) => boolean): Matches | null {
  const { features, self } = index.graph;
  const of = nodeFeatures(index);
  if (features === undefined || of === null) return null;
  const wanted = features.titles.map(wants);
  const found = collect(index, (node) => wanted[of[node]!] ?? false);
  // Frames of several features have samples of their own too.
  let union = 0;
  for (let node = 0; node < index.count; node += 1)
    if (wanted[features.own[node]!] === true) union += self[node]!;
  return { ...found, union };
}

function collect(index: FlameIndex, isHit: (node: number) => boolean): Matches {
  const { self } = index.graph;
  const nodes = new Uint8Array(index.count);
  const list: number[] = [];
  let union = 0;
  let selfSum = 0;
  let coveredUntil = 0;
  for (let i = 0; i < index.count; i += 1) {
    if (!isHit(i)) continue;
    nodes[i] = 1;
    list.push(i);
    selfSum += self[i]!;
    if (i >= coveredUntil) {
      union += index.total[i]!;
      coveredUntil = index.end[i]!;
    }
  }
  return { nodes, list: Uint32Array.from(list), union, self: selfSum };
}

/** The match after (+1) or before (-1) `node`, wrapping round; -1 when there is none. */
export function stepMatch(matches: Matches, node: number, direction: 1 | -1): number {
  const { list } = matches;
  if (list.length === 0) return -1;
  let after = 0;
  while (after < list.length && list[after]! <= node) after += 1;
  if (direction === 1) return list[after % list.length]!;
  let before = after - 1;
  if (before >= 0 && list[before] === node) before -= 1;
  return list[(before + list.length) % list.length]!;
}
