// The values that the agent's twin is tested with, too.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ALPHA, adjusted, type Pair, proportions, rates } from "./significance";

const FILE = new URL("../../../tests/fixtures/statistics/two_samples.json", import.meta.url);

interface Case {
  readonly test: "proportions" | "rates";
  readonly hits: Pair;
  readonly all: Pair;
  readonly z: number | null;
  readonly p: number | null;
}

describe("significance", () => {
  const { cases } = JSON.parse(new TextDecoder().decode(readFileSync(FILE))) as { cases: readonly Case[] };

  it("has enough known values", () => {
    expect(cases.length).toBeGreaterThanOrEqual(8);
  });

  it.each(cases)("$test of $hits in $all", ({ test, hits, all, z, p }) => {
    const found = test === "proportions" ? proportions(hits, all) : rates(hits, all);
    if (z === null || p === null) {
      expect(found).toBeNull();
      return;
    }
    expect(found?.z).toBeCloseTo(z, 9);
    expect(found?.p).toBeCloseTo(p, 12);
  });

  it("adjusts many tests as in the paper of Benjamini and Hochberg", () => {
    const values = [
      0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262, 0.5719, 0.6528,
      0.759, 1,
    ];
    const found = adjusted(values);
    expect(found.filter((value) => value < ALPHA).length).toBe(4);
    expect(found[0]).toBeCloseTo(0.0015, 12);
    expect(found[3]).toBeCloseTo((0.0095 * 15) / 4, 12);
    expect(adjusted([])).toEqual([]);
  });
});
