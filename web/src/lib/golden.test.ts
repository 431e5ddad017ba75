// The files that the agent's writer is tested with, too. Each NAME.pfg1 has a NAME.json:
// {"period_ns": n, "nodes": [{"depth", "self", "name", and any of "total", "module", "file",
// "line", "kind", "source"}]} in pre-order.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { indexFlameGraph, labelOf } from "./flame_index";
import { decodeFlameGraph } from "./flamegraph";

const FOLDER = new URL("../../../tests/fixtures/flamegraph/", import.meta.url);

interface Expected {
  readonly period_ns: number;
  /** Count and time of idle waits, then of everything. */
  readonly idle?: readonly number[];
  readonly nodes: readonly Readonly<Record<string, string | number>>[];
}

function names(): string[] {
  try {
    return readdirSync(FOLDER)
      .filter((name) => name.endsWith(".pfg1"))
      .map((name) => name.slice(0, -".pfg1".length));
  } catch {
    return [];
  }
}

describe("golden files", () => {
  const found = names();

  it("exist", () => {
    expect(found.length).toBeGreaterThan(0);
  });

  it.each(found)("%s", (name) => {
    const text = new TextDecoder().decode(readFileSync(new URL(`${name}.json`, FOLDER)));
    const expected = JSON.parse(text) as Expected;
    const index = indexFlameGraph(decodeFlameGraph(readFileSync(new URL(`${name}.pfg1`, FOLDER))));
    expect(index.graph.periodNs).toBe(expected.period_ns);
    const { idle } = index.graph;
    const numbers = idle === null ? undefined : [idle.count, idle.ns, idle.totalCount, idle.totalNs];
    expect(numbers).toEqual(expected.idle);
    expect(index.count).toBe(expected.nodes.length);
    expected.nodes.forEach((node, i) => {
      const actual: Record<string, string | number> = {
        ...labelOf(index, i),
        depth: index.graph.depth[i]!,
        self: index.graph.self[i]!,
        total: index.total[i]!,
      };
      expect(Object.keys(node)).toEqual(expect.arrayContaining(["depth", "self", "name"]));
      for (const [key, value] of Object.entries(node)) expect(actual[key], `node ${i} ${key}`).toBe(value);
    });
  });
});
