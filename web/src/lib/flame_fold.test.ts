import { describe, expect, it } from "vitest";
import { foldedNames, foldStart, isFolded } from "./flame_fold";
import { findPath, indexFlameGraph, labelOf, pathKey } from "./flame_index";
import { Kind } from "./flamegraph";
import { parseQuery, searchFlameGraph } from "./search";
import { graphOf, randomGraph } from "./testing";

type Row = readonly [number, number, string];

/** A process whose stacks all begin with the same four frames, and one of which they do not. */
const ROWS: readonly Row[] = [
  [0, 0, "all"],
  [1, 0, "envoy"],
  [2, 0, "clone3"],
  [3, 0, "start_thread"],
  [4, 0, "run"],
  [5, 3, "loop"],
  [6, 4, "read"],
  [6, 1, "write"],
  [1, 0, "app"],
  [2, 0, "main"],
  [3, 0, "serve"],
  [4, 2, "a"],
  [4, 1, "b"],
];

function indexOf(rows: readonly Row[]) {
  const graph = graphOf(rows);
  const labels = graph.labels.map((label) =>
    ["envoy", "app"].includes(label.name) ? { ...label, kind: Kind.Process } : label,
  );
  return indexFlameGraph({ ...graph, labels });
}

/** Processes that begin with frames which hand every sample on, some of them beside frames without samples, above any tree. */
function processesOf(seed: number) {
  const rows: Row[] = [[0, 0, "all"]];
  for (const [i, process] of ["envoy", "app"].entries()) {
    rows.push([1, 0, process]);
    const first = 3 + ((seed + i) % 4);
    for (let depth = 2; depth < 2 + first; depth += 1) {
      rows.push([depth, 0, `first${depth}`]);
      if ((seed + depth) % 3 === 0) rows.push([depth + 1, 0, "nothing"]);
    }
    const { depth, self, label, labels } = randomGraph(seed + i, 30);
    for (let node = 0; node < depth.length; node += 1)
      rows.push([depth[node]! + 2 + first, 1 + self[node]!, labels[label[node]!]!.name]);
  }
  return indexOf(rows);
}

function found(index: ReturnType<typeof indexOf>, text: string): number {
  const query = parseQuery(text);
  if (query.kind !== "test") throw new Error("no test");
  return searchFlameGraph(index, query.test)?.union ?? -1;
}

describe("foldStart", () => {
  const index = indexOf(ROWS);
  const folded = foldStart(index);
  const names = [...folded.graph.label.keys()].map((node) => labelOf(folded, node).name);

  it("makes one frame of those that hand every sample on", () => {
    expect(names).toEqual([
      "all",
      "envoy",
      "3 first frames",
      "loop",
      "read",
      "write",
      "app",
      "main",
      "serve",
      "a",
      "b",
    ]);
    expect([...folded.graph.depth]).toEqual([0, 1, 2, 3, 4, 4, 1, 2, 3, 4, 4]);
    expect(foldedNames(folded, 2)).toEqual(["clone3", "start_thread", "run"]);
    expect(isFolded(folded, 2)).toBe(true);
    expect(isFolded(folded, 3)).toBe(false);
  });

  it("changes no number", () => {
    expect([...folded.total]).toEqual([11, 8, 8, 8, 4, 1, 3, 3, 3, 2, 1]);
    expect(folded.graph.self.reduce((sum, own) => sum + own, 0)).toBe(11);
  });

  it("keeps the keys of paths, so that links lead to the same frame", () => {
    for (const [node, name] of [
      [3, "loop"],
      [10, "b"],
    ] as const) {
      const key = pathKey(folded, node);
      expect(labelOf(index, findPath(index, key)).name).toBe(name);
      expect(findPath(folded, key)).toBe(node);
    }
  });

  it("is found by the names that are folded", () => {
    for (const text of ["start_thread", "/^run$/", "kind:user", "mod:app", "main", "nothing"])
      expect(found(folded, text), text).toBe(found(index, text));
  });

  it("leads from links to folded frames to the one that stands for them", () => {
    for (const node of [2, 3, 4]) expect(findPath(folded, pathKey(index, node)), `${node}`).toBe(2);
  });

  it("folds no work: stacks that never part, and what is left after a focus", () => {
    const work = indexOf([
      [0, 0, "all"],
      [1, 0, "envoy"],
      [2, 0, "_start"],
      [3, 0, "main"],
      [4, 0, "compress"],
      [5, 0, "deflate"],
      [6, 9, "longest_match"],
    ]);
    expect(foldStart(work)).toBe(work);
    const focused = indexOf([
      [0, 0, "all"],
      [1, 0, "handle"],
      [2, 0, "parse"],
      [3, 0, "lex"],
      [4, 1, "next"],
      [5, 1, "a"],
      [5, 1, "b"],
    ]);
    expect(foldStart(focused)).toBe(focused);
  });

  it("leaves alone what has no such frames", () => {
    const short = indexOf(ROWS.slice(8).map(([depth, self, name]) => [depth, self, name] as const));
    expect(foldStart(indexOf([[0, 0, "all"], ...ROWS.slice(8)]))).not.toHaveProperty("folds");
    expect(foldStart(short)).toBe(short);
  });

  it("is what an index of the smaller tree would be, for any tree", () => {
    let least = Number.POSITIVE_INFINITY;
    for (let seed = 1; seed < 60; seed += 1) {
      const any = processesOf(seed);
      const { folds, foldedPaths, ...small } = foldStart(any);
      least = Math.min(least, folds?.size ?? 0);
      expect(foldedPaths?.size).toBe(any.count - small.count);
      const { pathHash, ...anew } = indexFlameGraph(small.graph);
      // Paths keep their keys, which is looked at above.
      expect({ ...small, pathHash }).toEqual({ ...anew, pathHash });
      expect(small.pathHash[0]).toHaveLength(small.count);
      expect(small.total[0]).toBe(any.total[0]);
      expect(small.graph.self.reduce((sum, own) => sum + own, 0)).toBe(any.total[0]);
    }
    expect(least).toBeGreaterThan(0);
  });
});
