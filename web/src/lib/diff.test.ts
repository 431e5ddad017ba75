// The files that the agent's writer is tested with, too, and what is made of them.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeDiff } from "./diff";
import { changes, colours, indexDiff, tendency, verdictOf } from "./diff_index";
import { FlameFormatError, Kind } from "./flamegraph";
import { seeded } from "./testing";

const FOLDER = new URL("../../../tests/fixtures/diff/", import.meta.url);
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".pfd1"))
  .map((name) => name.slice(0, -".pfd1".length));
const bytesOf = (name: string): Uint8Array => readFileSync(new URL(`${name}.pfd1`, FOLDER));

interface Expected {
  readonly unit_ns: readonly number[];
  readonly covered_ns: readonly number[];
  readonly idle: readonly number[] | null;
  readonly nodes: readonly {
    depth: number;
    name: string;
    module: string;
    kind: number;
    self: readonly number[];
    total: readonly number[];
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
    const index = indexDiff(diff, "share", true);
    expect(diff.unitNs).toEqual(expected.unit_ns);
    expect(diff.coveredNs).toEqual(expected.covered_ns);
    const idle = diff.idle?.flatMap((side) => [side.count, side.ns, side.totalCount, side.totalNs]) ?? null;
    expect(idle).toEqual(expected.idle);
    expect(diff.depth.length).toBe(expected.nodes.length);
    expected.nodes.forEach((node, i) => {
      const label = diff.labels[diff.label[i]!]!;
      const found = {
        depth: diff.depth[i],
        name: label.name,
        module: label.module,
        kind: label.kind,
        self: [diff.selfA[i], diff.selfB[i]],
        total: [index.totalA[i], index.totalB[i]],
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
  const index = indexDiff(decodeDiff(bytesOf("changed")), "share", true);
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
    const rows = changes(index, 0);
    expect(rows.find((row) => row.name === "spin")?.badge).toBe("new");
    expect(rows.find((row) => row.name === "hot")?.badge).toBe("removed");
    expect(rows[0]!.name).toBe("hot");
    expect(rows.some((row) => row.kind === Kind.Root)).toBe(false);
  });

  it("keeps the sums of both sides in the table", () => {
    const rows = changes(index, 0);
    const sum = (side: 0 | 1): number => rows.reduce((all, row) => all + row.self[side], 0);
    expect([sum(0), sum(1)]).toEqual([index.totalA[0], index.totalB[0]]);
    for (const row of rows)
      for (const side of [0, 1] as const) expect(row.total[side]).toBeGreaterThanOrEqual(row.self[side]);
  });

  it("greys what chance can explain and says why nothing is known", () => {
    expect(verdictOf(index, 0).verdict).toBe("too_few");
    expect(Number.isNaN(colours(index)[0])).toBe(true);
    expect(verdictOf(index, nodeOf("spin")).verdict).toBe("significant");
    const waits = indexDiff(index.diff, "share", false);
    expect(waits.unknown).toBe("not_samples");
    expect(changes(waits, 0).every((row) => row.verdict === "unknown" && row.p === null)).toBe(true);
  });

  it("compares rates by the covered time", () => {
    const rate = indexDiff(index.diff, "rate", true);
    expect(rate.scale).toEqual(index.diff.coveredNs.map((ns) => ns / 1e9));
    expect(rate.unknown).toBeNull();
    const broken = indexDiff({ ...index.diff, unitNs: [0, 1] }, "rate", true);
    expect(broken.unknown).toBe("no_period");
  });

  it("of an empty side is all new", () => {
    const fresh = indexDiff(decodeDiff(bytesOf("new")), "share", true);
    expect(fresh.scale[0]).toBe(0);
    expect(tendency(fresh, 1)).toBe(1);
    expect(changes(fresh, 0).every((row) => row.badge === "new")).toBe(true);
  });
});
