import { describe, expect, it } from "vitest";
import { indexFlameGraph } from "./flame_index";
import { decodeFlameGraph, FlameFormatError, type FlameGraph, MIXED } from "./flamegraph";
import { encode, graphOf, randomGraph, seeded, varint } from "./testing";

const SMALL = graphOf([
  [0, 0, "all"],
  [1, 0, "envoy <&\"'>"],
  [2, 3, "main"],
  [3, 200, "work \u202e\u00fc\u{1f525}"],
  [2, 1, "other"],
]);
const MAGIC = [0x50, 0x46, 0x47, 0x31];

/** Only two outcomes are allowed: a graph that indexes cleanly, or the typed error. */
function decodesOrFails(bytes: Uint8Array): "graph" | "error" {
  let graph: FlameGraph;
  try {
    graph = decodeFlameGraph(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(FlameFormatError);
    return "error";
  }
  const index = indexFlameGraph(graph);
  expect(index.total[0]).toBe(graph.self.reduce((sum, value) => sum + value, 0));
  return "graph";
}

function refused(bytes: number[] | Uint8Array, message: RegExp): void {
  expect(() => decodeFlameGraph(Uint8Array.from(bytes))).toThrow(FlameFormatError);
  expect(() => decodeFlameGraph(Uint8Array.from(bytes))).toThrow(message);
}

/** The header up to and including the strings `""` and `"all"`, then `rest`. */
const withStrings = (...rest: number[]): number[] => [...MAGIC, 0, 0, 2, 0, 3, 97, 108, 108, ...rest];
const ROOT_LABEL = [1, 0, 0, 0, 0, 0];

describe("decodeFlameGraph", () => {
  it("reads back what was written", () => {
    expect(decodeFlameGraph(encode(SMALL))).toEqual(SMALL);
    const big = { ...SMALL, periodNs: Number.MAX_SAFE_INTEGER };
    expect(decodeFlameGraph(encode(big)).periodNs).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("reads an empty profile", () => {
    const graph = decodeFlameGraph(Uint8Array.from(withStrings(1, ...ROOT_LABEL, 1, 0, 0, 0)));
    expect(graph.labels[0]?.name).toBe("all");
    expect([...graph.self]).toEqual([0]);
  });

  it("reads which feature the samples of a node belong to", () => {
    const features = { titles: ["Tracing", "Routing"], own: Uint16Array.from(SMALL.depth, (_, i) => i % 2) };
    features.own[0] = MIXED;
    expect(decodeFlameGraph(encode({ ...SMALL, features })).features).toEqual(features);
  });

  it("names what is wrong", () => {
    refused([], /ends inside the magic/);
    refused([0x50, 0x46, 0x47, 0x32], /does not start with PFG1/);
    refused([...MAGIC, 4], /unknown flags 4/);
    refused([...MAGIC, 1, 0, 5, 1, 4, 9], /more is idle than there is/);
    refused([...MAGIC, 1, 0, 5], /ends inside idle time/);
    refused([...MAGIC, 0, ...new Array(10).fill(0x80), 0], /more than 10 bytes/);
    refused([...MAGIC, 0, ...new Array(9).fill(0xff), 1], /above 2\^53/);
    refused([...MAGIC, 0, 0, 100, 0], /string count of 100 does not fit/);
    refused([...MAGIC, 0, 0, 1, 5, 97], /ends inside a string/);
    refused([...MAGIC, 0, 0, 1, 1, 97, 0, 0], /string 0 is not empty/);
    refused([...MAGIC, 0, 0, 2, 0, 1, 0xff, 0, 0], /not UTF-8/);
    refused(withStrings(1, 9, 0, 0, 0, 0, 0, 0), /label name 9 is out of range/);
    refused(withStrings(1, 1, 0, 0, 0, 10, 0), /unknown kind 10/);
    refused(withStrings(1, 1, 0, 0, 0, 0, 14), /unknown name source 14/);
    refused(withStrings(1, ...ROOT_LABEL, 0), /has no root/);
    refused(withStrings(1, ...ROOT_LABEL, 1, 1, 0, 0), /depth 1 after depth -1/);
    refused(withStrings(1, ...ROOT_LABEL, 2, 0, 0, 0, 0, 0, 0), /depth 0 after depth 0/);
    refused(withStrings(1, ...ROOT_LABEL, 2, 0, 2, 0, 0, 0, 0), /depth 2 after depth 0/);
    refused(withStrings(1, ...ROOT_LABEL, 1, 0, 0, 1), /node label 1 is out of range/);
    refused(withStrings(1, ...ROOT_LABEL, 1, 0, 0, 0, 7), /1 bytes after the last column/);
    const attributed = withStrings(1, ...ROOT_LABEL, 1, 0, 0, 0);
    attributed[MAGIC.length] = 2;
    refused(attributed, /ends inside feature count/);
    refused([...attributed, 1, 9], /feature title 9 is out of range/);
    refused([...attributed, 1, 0, 2], /feature of a node 2 is out of range/);
    refused([...attributed, 1, 0, 1, 0], /1 bytes after the last column/);
  });

  it("refuses counts that would allocate more than the data can hold", () => {
    for (const huge of [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      refused([...MAGIC, 0, 0, ...varint(huge), 0, 0, 0], /does not fit/);
      refused(withStrings(...varint(huge), 0, 0), /label count/);
      refused(withStrings(1, ...ROOT_LABEL, ...varint(huge), 0), /node count/);
    }
  });

  it("refuses sums above 2^53", () => {
    const two = graphOf([
      [0, Number.MAX_SAFE_INTEGER, "all"],
      [1, 1, "main"],
    ]);
    refused(encode(two), /sum of all samples/);
  });

  it("refuses every truncation", () => {
    const whole = encode(SMALL);
    for (let length = 0; length < whole.length; length += 1) {
      expect(() => decodeFlameGraph(whole.subarray(0, length))).toThrow(FlameFormatError);
    }
  });

  it("survives random bytes", () => {
    const next = seeded(1);
    for (let round = 0; round < 4000; round += 1) {
      const bytes = Uint8Array.from({ length: Math.floor(next() * 200) }, () => Math.floor(next() * 256));
      if (round % 2 === 0) bytes.set(MAGIC.slice(0, bytes.length));
      expect(decodesOrFails(bytes)).toBe("error");
    }
  });

  it("survives mutated files", () => {
    const next = seeded(2);
    const outcomes = { graph: 0, error: 0 };
    for (let round = 0; round < 4000; round += 1) {
      const bytes = encode(randomGraph(round % 50, 40));
      for (let change = 0; change <= next() * 4; change += 1) {
        const at = Math.floor(next() * bytes.length);
        const kind = next();
        if (kind < 0.4) bytes[at] = Math.floor(next() * 256);
        else if (kind < 0.8) bytes[at] = bytes[at]! ^ (1 << Math.floor(next() * 8));
        else bytes.copyWithin(at, Math.floor(next() * bytes.length));
      }
      outcomes[decodesOrFails(bytes)] += 1;
    }
    expect(outcomes.graph).toBeGreaterThan(0);
    expect(outcomes.error).toBeGreaterThan(0);
  });

  it("reads a stack of 100,000 frames without recursion", () => {
    const nodes = 100_000;
    const deep: FlameGraph = {
      ...SMALL,
      depth: Uint32Array.from({ length: nodes }, (_, i) => i),
      self: Float64Array.from({ length: nodes }, (_, i) => (i === nodes - 1 ? 5 : 0)),
      label: new Uint32Array(nodes).fill(1),
    };
    const index = indexFlameGraph(decodeFlameGraph(encode(deep)));
    expect(index.rows).toBe(nodes);
    expect(index.total[0]).toBe(5);
  });
});
