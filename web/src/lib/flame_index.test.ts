import { describe, expect, it } from "vitest";
import {
  ancestry,
  findPath,
  firstEndingAfter,
  heaviestChild,
  indexFlameGraph,
  neighbour,
  nodeAt,
  pathKey,
  rowsBelow,
} from "./flame_index";
import { functionTable } from "./functions";
import { parseQuery, searchFlameGraph, stepMatch } from "./search";
import { graphOf, label, randomGraph } from "./testing";

const TREE = indexFlameGraph(
  graphOf([
    [0, 0, "all"],
    [1, 1, "main"],
    [2, 4, "parse"],
    [3, 2, "alloc"],
    [2, 0, "send"],
    [3, 3, "alloc"],
    [4, 5, "parse"],
    [1, 2, "idle"],
  ]),
);

describe("indexFlameGraph", () => {
  it("sums and places the nodes", () => {
    expect([...TREE.total]).toEqual([17, 15, 6, 2, 8, 8, 5, 2]);
    expect([...TREE.start]).toEqual([0, 0, 0, 0, 6, 6, 6, 15]);
    expect([...TREE.parent]).toEqual([-1, 0, 1, 2, 1, 4, 5, 0]);
    expect([...TREE.end]).toEqual([8, 7, 4, 4, 7, 7, 7, 8]);
  });

  it("keeps children + self = total and siblings side by side, for any tree", () => {
    for (let seed = 0; seed < 60; seed += 1) {
      const index = indexFlameGraph(randomGraph(seed, 300));
      const sums = index.graph.self.slice();
      const next = index.start.slice();
      for (let i = 1; i < index.count; i += 1) {
        const parent = index.parent[i]!;
        sums[parent]! += index.total[i]!;
        expect(index.start[i]).toBe(next[parent]);
        next[parent]! += index.total[i]!;
        expect(next[parent]).toBeLessThanOrEqual(index.start[parent]! + index.total[parent]!);
        expect(index.graph.depth[i]).toBe(index.graph.depth[parent]! + 1);
      }
      expect(sums).toEqual(index.total);
    }
  });

  it("finds the node at a place as a plain scan does", () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const index = indexFlameGraph(randomGraph(seed, 200));
      for (let depth = 0; depth < index.rows; depth += 1) {
        for (let x = 0.5; x < index.total[0]!; x += 7) {
          const row = [...index.rowNodes.slice(index.rowOffset[depth], index.rowOffset[depth + 1])];
          const plain = row.find(
            (node) => index.start[node]! <= x && x < index.start[node]! + index.total[node]!,
          );
          expect(nodeAt(index, depth, x)).toBe(plain ?? -1);
        }
      }
      expect(firstEndingAfter(index, 0, index.total[0]!)).toBe(1);
      expect(nodeAt(index, index.rows, 1)).toBe(-1);
    }
  });

  it("finds paths again in another fetch of the same profile", () => {
    const keys = Array.from({ length: TREE.count }, (_, i) => pathKey(TREE, i));
    expect(new Set(keys).size).toBe(TREE.count);
    const grown = indexFlameGraph(
      graphOf([
        [0, 0, "all"],
        [1, 9, "aaa"],
        [1, 1, "main"],
        [2, 0, "send"],
        [3, 3, "alloc"],
      ]),
    );
    expect(findPath(grown, keys[5]!)).toBe(4);
    expect(findPath(grown, keys[7]!)).toBe(0);
    expect(findPath(grown, "nonsense")).toBe(0);
  });

  it("walks", () => {
    expect(ancestry(TREE, 6)).toEqual([0, 1, 4, 5, 6]);
    expect(heaviestChild(TREE, 1)).toBe(4);
    expect(heaviestChild(TREE, 3)).toBe(-1);
    expect(neighbour(TREE, 3, 1)).toBe(5);
    expect(neighbour(TREE, 3, -1)).toBe(-1);
    expect(rowsBelow(TREE, 2)).toBe(4);
    expect(rowsBelow(TREE, 0)).toBe(5);
  });
});

describe("search", () => {
  const run = (text: string) => {
    const query = parseQuery(text);
    return query.kind === "test" ? searchFlameGraph(TREE, query.test) : null;
  };

  it("counts each sample once", () => {
    const found = run("ALLOC");
    expect(found?.union).toBe(10);
    expect(found?.self).toBe(5);
    expect([...(found?.list ?? [])]).toEqual([3, 5]);
    expect(run("a")?.union).toBe(17);
  });

  it("never exceeds the whole, and matches a plain count", () => {
    for (let seed = 0; seed < 40; seed += 1) {
      const index = indexFlameGraph(randomGraph(seed, 300));
      const found = searchFlameGraph(index, ({ name }) => /[37]$/.test(name));
      let plain = 0;
      for (let i = 0; i < index.count; i += 1) {
        if (ancestry(index, i).some((node) => found?.nodes[node] === 1)) plain += index.graph.self[i]!;
      }
      expect(found?.union).toBe(plain);
    }
  });

  it("understands regular expressions, modules and kinds", () => {
    expect(run("/^al/")?.list.length).toBe(3);
    expect(run("/^ALL$/i")?.union).toBe(17);
    expect(run("mod:APP")?.list.length).toBe(7);
    expect(run("kind:kernel")?.list.length).toBe(0);
    expect(parseQuery("/(/").kind).toBe("invalid");
    expect(parseQuery("kind:no").kind).toBe("invalid");
    expect(parseQuery("   ").kind).toBe("none");
    expect(parseQuery("x".repeat(2000)).kind).toBe("invalid");
    expect(parseQuery("/").kind).toBe("test");
  });

  it("gives up on a pattern that takes too long", () => {
    let time = 0;
    const slow = (): number => {
      time += 400;
      return time;
    };
    expect(searchFlameGraph(TREE, () => true, slow)?.union).toBe(17);
    time = 0;
    const endless = (): number => {
      time += 600;
      return time;
    };
    expect(searchFlameGraph(TREE, () => true, endless)).toBeNull();
  });

  it("steps through matches and wraps round", () => {
    const found = run("parse")!;
    expect(stepMatch(found, -1, 1)).toBe(2);
    expect(stepMatch(found, 2, 1)).toBe(6);
    expect(stepMatch(found, 6, 1)).toBe(2);
    expect(stepMatch(found, 2, -1)).toBe(6);
    expect(stepMatch(found, 6, -1)).toBe(2);
    expect(stepMatch(run("nowhere")!, 2, 1)).toBe(-1);
  });
});

describe("functionTable", () => {
  it("counts recursion once", () => {
    const rows = new Map(functionTable(TREE, 0).map((row) => [row.name, row]));
    expect(rows.get("alloc")).toMatchObject({ self: 5, total: 10 });
    expect(rows.get("parse")).toMatchObject({ self: 9, total: 11 });
    expect(rows.get("all")).toMatchObject({ self: 0, total: 17 });
    const recursive = indexFlameGraph(
      graphOf([
        [0, 0, "all"],
        [1, 1, "f"],
        [2, 1, "f"],
        [3, 1, "g"],
        [4, 1, "f"],
      ]),
    );
    expect(functionTable(recursive, 0).find(({ name }) => name === "f")).toMatchObject({ self: 3, total: 4 });
  });

  it("joins labels that differ only in the line", () => {
    const graph = graphOf([
      [0, 0, "all"],
      [1, 2, "f"],
      [1, 3, "g"],
    ]);
    const joined = indexFlameGraph({
      ...graph,
      labels: [graph.labels[0]!, label("f"), { ...label("f"), line: 9 }],
    });
    expect(functionTable(joined, 0).find(({ name }) => name === "f")).toMatchObject({ self: 5, total: 5 });
  });

  it("sums of self give the whole, for any tree", () => {
    for (let seed = 0; seed < 30; seed += 1) {
      const index = indexFlameGraph(randomGraph(seed, 300));
      const rows = functionTable(index, 0);
      expect(rows.reduce((sum, row) => sum + row.self, 0)).toBe(index.total[0]);
      for (const row of rows) expect(row.total).toBeGreaterThanOrEqual(row.self);
    }
  });
});
