// Only for tests: writes PFG1 and makes random trees.

import { type FlameGraph, type Label, MIXED } from "./flamegraph";

/** Pseudo-random numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

export function varint(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  while (rest >= 128) {
    out.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  out.push(rest);
  return out;
}

export function encode(graph: FlameGraph): Uint8Array {
  const ids = new Map<string, number>([["", 0]]);
  for (const { name, module, file } of graph.labels) {
    for (const text of [name, module, file]) if (!ids.has(text)) ids.set(text, ids.size);
  }
  const { features } = graph;
  for (const title of features?.titles ?? []) if (!ids.has(title)) ids.set(title, ids.size);
  const out: number[] = [
    0x50,
    0x46,
    0x47,
    0x31,
    ...varint(features === undefined ? 0 : 2),
    ...varint(graph.periodNs),
    ...varint(ids.size),
  ];
  for (const text of ids.keys()) {
    const utf8 = new TextEncoder().encode(text);
    out.push(...varint(utf8.length), ...utf8);
  }
  out.push(...varint(graph.labels.length));
  for (const { name, module, file, line, kind, source } of graph.labels) {
    for (const text of [name, module, file]) out.push(...varint(ids.get(text) ?? 0));
    out.push(...varint(line), kind, source);
  }
  out.push(...varint(graph.depth.length));
  for (const column of [graph.depth, graph.self, graph.label])
    for (const value of column) out.push(...varint(value));
  if (features !== undefined) {
    out.push(...varint(features.titles.length));
    for (const title of features.titles) out.push(...varint(ids.get(title) ?? 0));
    for (const feature of features.own) out.push(...varint(feature === MIXED ? 0 : feature + 1));
  }
  return Uint8Array.from(out);
}

export function label(name: string, kind = 1, module = "/bin/app", source = 1): Label {
  return { name, module, file: "", line: 0, kind, source };
}

/** A graph from rows of `[depth, self, name]`; names are labels of user functions, the first is the root. */
export function graphOf(rows: readonly (readonly [number, number, string])[]): FlameGraph {
  const names = [...new Set(rows.map(([, , name]) => name))];
  return {
    periodNs: 10_000_000,
    idle: null,
    labels: names.map((name, i) => (i === 0 ? label(name, 0, "", 0) : label(name))),
    depth: Uint32Array.from(rows, ([depth]) => depth),
    self: Float64Array.from(rows, ([, self]) => self),
    label: Uint32Array.from(rows, ([, , name]) => names.indexOf(name)),
  };
}

export function randomGraph(seed: number, nodes: number): FlameGraph {
  const next = seeded(seed);
  const rows: [number, number, string][] = [[0, 0, "all"]];
  let depth = 0;
  while (rows.length < nodes) {
    depth = 1 + Math.floor(next() * (depth + 1));
    rows.push([depth, next() < 0.5 ? Math.floor(next() * 50) : 0, `fn${Math.floor(next() * 20)}`]);
  }
  return graphOf(rows);
}
