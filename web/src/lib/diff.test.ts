// The files that the agent's writer is tested with, too, and what is made of them.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ChangedFunctions } from "../api/types";
import { decodeDiff } from "./diff";
import { changeRows, colours, indexDiff, isBelow, tendency, verdictOf } from "./diff_index";
import { FlameFormatError, Kind } from "./flamegraph";
import { seeded } from "./testing";

const FOLDER = new URL("../../../tests/fixtures/diff/", import.meta.url);
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".pfd2"))
  .map((name) => name.slice(0, -".pfd2".length));
const bytesOf = (name: string): Uint8Array => readFileSync(new URL(`${name}.pfd2`, FOLDER));

interface Expected {
  readonly unit_ns: readonly number[];
  readonly covered_ns: readonly number[];
  readonly idle: readonly number[] | null;
  readonly unknown: readonly number[];
  readonly nodes: readonly {
    depth: number;
    name: string;
    module: string;
    kind: number;
    self: readonly number[];
    total: readonly number[];
    chance: readonly (number | null)[];
  }[];
}

describe("golden comparisons", () => {
  it("exist", () => {
    expect(names.length).toBeGreaterThan(2);
  });

  it.each(names)("%s", (name) => {
    const expected = JSON.parse(
      new TextDecoder().decode(readFileSync(new URL(`${name}.json`, FOLDER))),
    ) as Expected;
    const diff = decodeDiff(bytesOf(name));
    const index = indexDiff(diff, "share");
    expect(diff.unitNs).toEqual(expected.unit_ns);
    expect(diff.coveredNs).toEqual(expected.covered_ns);
    const idle = diff.idle?.flatMap((side) => [side.count, side.ns, side.totalCount, side.totalNs]) ?? null;
    expect(idle).toEqual(expected.idle);
    expect(diff.depth.length).toBe(expected.nodes.length);
    const chances = [diff.chances.share, diff.chances.rate];
    const unknown = [null, "not_samples", "no_period"];
    expect(chances.map((chance) => unknown.indexOf(chance.unknown))).toEqual(expected.unknown);
    expected.nodes.forEach((node, i) => {
      const label = diff.labels[diff.label[i]!]!;
      const found = {
        depth: diff.depth[i],
        name: label.name,
        module: label.module,
        kind: label.kind,
        self: [diff.selfA[i], diff.selfB[i]],
        total: [index.totalA[i], index.totalB[i]],
        chance: chances.map(({ codes }) => codes[i] ?? null),
      };
      expect(found).toEqual(node);
    });
  });

  it("every cut or changed file is refused or read, never a crash", () => {
    const next = seeded(5);
    for (const name of names) {
      const good = bytesOf(name);
      for (let round = 0; round < 300; round += 1) {
        const bad = Uint8Array.from(good.subarray(0, Math.ceil(next() * good.length)));
        for (let hit = 0; hit < 3; hit += 1) bad[Math.floor(next() * bad.length)] = Math.floor(next() * 256);
        try {
          decodeDiff(bad);
        } catch (error) {
          expect(error).toBeInstanceOf(FlameFormatError);
        }
      }
    }
  });
});

describe("a comparison", () => {
  const index = indexDiff(decodeDiff(bytesOf("changed")), "share");
  const nodeOf = (name: string): number =>
    index.diff.labels.findIndex((label) => label.name === name) < 0
      ? -1
      : [...index.diff.label].findIndex((label) => index.diff.labels[label]!.name === name);

  it("draws children and self exactly as wide as the parent", () => {
    const { flame } = index;
    for (let i = 0; i < flame.count; i += 1) {
      let sum = flame.graph.self[i]!;
      for (let child = i + 1; child < flame.end[i]!; child = flame.end[child]!) sum += flame.total[child]!;
      expect(sum).toBe(flame.total[i]);
    }
  });

  it("knows what is new and what is gone", () => {
    expect(tendency(index, 0)).toBe(0);
    expect(tendency(index, nodeOf("spin"))).toBe(1);
    expect(tendency(index, nodeOf("hot"))).toBe(-1);
  });

  it("greys what chance can explain and says why nothing is known", () => {
    expect(verdictOf(index, 0)).toEqual({ verdict: "too_few", p: null });
    expect(Number.isNaN(colours(index)[0])).toBe(true);
    expect(verdictOf(index, nodeOf("spin"))).toEqual({ verdict: "significant", p: 0 });
    const chances = {
      ...index.diff.chances,
      share: { unknown: "not_samples", codes: new Uint32Array() },
    } as const;
    const waits = indexDiff({ ...index.diff, chances }, "share");
    expect(verdictOf(waits, 0)).toEqual({ verdict: "unknown", p: null });
    expect(colours(waits)[nodeOf("spin")]).toBe(1);
  });

  it("reads a p-value and whether it is significant from one number", () => {
    const of = (code: number) => {
      const share = { unknown: null, codes: index.diff.label.map(() => code) };
      return verdictOf(indexDiff({ ...index.diff, chances: { ...index.diff.chances, share } }, "share"), 1);
    };
    expect(of(1 + 2 * 72 + 1)).toEqual({ verdict: "significant", p: 0.00072 });
    expect(of(1 + 2 * 31_000)).toEqual({ verdict: "not_significant", p: 0.31 });
    expect(of(1 + 2 * 100_000)).toEqual({ verdict: "not_significant", p: 1 });
  });

  it("compares rates by the covered time", () => {
    const rate = indexDiff(index.diff, "rate");
    expect(rate.scale).toEqual(index.diff.coveredNs.map((ns) => ns / 1e9));
    const work = nodeOf("work");
    expect([verdictOf(index, work).p, verdictOf(rate, work).p]).toEqual([0.00007, 0]);
  });

  it("of an empty side is all new", () => {
    const fresh = indexDiff(decodeDiff(bytesOf("new")), "share");
    expect(fresh.scale[0]).toBe(0);
    expect(tendency(fresh, 1)).toBe(1);
  });

  it("takes a table for that of a node only while both have the same numbers", () => {
    const node = nodeOf("hot");
    const total: [number, number] = [index.totalA[node]!, index.totalB[node]!];
    expect(isBelow({ root: { name: "hot", total } }, index, node)).toBe(true);
    expect(isBelow({ root: { name: "cold", total } }, index, node)).toBe(false);
    expect(isBelow({ root: { name: "hot", total: [total[0], total[1] + 1] } }, index, node)).toBe(false);
  });

  it("has kinds of functions as graphs number them", () => {
    const row = { name: "f", kind: "inlined_kernel" };
    const rows = changeRows({ functions: [row, { ...row, kind: "later" }] } as unknown as ChangedFunctions);
    expect(rows.map(({ kind }) => kind)).toEqual([Kind.InlinedKernel, Kind.Other]);
  });
});
