import { describe, expect, it } from "vitest";
import { bytes, duration } from "./format";
import { boundsText, meanText, percentileText, spreadPicture } from "./request_values";
import { values } from "./requests_testing";

describe("percentiles", () => {
  it("are told as what their bucket allows", () => {
    const found = values([11_500_000, 12_300_000, 9], [40_000_000, 40_000_000, 1]);
    expect(percentileText(found, "p50", duration)).toBe("≤ 12.3 ms");
    expect(percentileText(found, "p99", duration)).toBe("40.0 ms");
    expect(percentileText(values(), "p50", duration)).toBe("–");
    expect(boundsText(found.bounds.p50, duration)).toBe("11.5 ms to 12.3 ms");
    expect(boundsText(null, duration)).toBeNull();
  });
});

describe("means", () => {
  it("say of how many they are when others are not known", () => {
    const found = values([100, 100, 3]);
    expect(meanText({ ...found, mean: 100 }, 0, String)).toBe("100");
    expect(meanText({ ...found, mean: 100 }, 7, String)).toBe(`100 (${found.count} of ${found.count + 7})`);
    expect(meanText(values(), 10, String)).toBe("–");
  });
});

describe("the picture", () => {
  it("has bars in order, inside of the axis, whose areas are counts", () => {
    const picture = spreadPicture([values([0, 0, 1], [32, 33, 6], [1024, 1087, 6])], 10);
    const bars = picture?.rows[0]?.bars ?? [];
    expect(bars).toHaveLength(3);
    expect(bars[0]?.left).toBe(0);
    expect(bars.at(-1)?.right).toBe(1);
    for (const [i, bar] of bars.entries()) {
      expect(bar.right).toBeGreaterThan(bar.left);
      if (i > 0) expect(bar.left).toBeGreaterThanOrEqual(bars[i - 1]!.right);
    }
    const area = (i: number) => bars[i]!.height * (bars[i]!.right - bars[i]!.left);
    expect(area(1)).toBeCloseTo(area(2));
    expect(area(1) / area(0)).toBeCloseTo(6);
    expect(Math.max(...bars.map(({ height }) => height))).toBe(1);
  });

  it("has one axis for several sets, and marks where percentiles lie", () => {
    const picture = spreadPicture([values([100, 106, 5]), values([200, 207, 5])], 10);
    expect(picture?.rows.map(({ bars }) => bars[0]?.left === 0)).toEqual([true, false]);
    expect(picture?.rows[1]?.marks.map(({ which }) => which)).toEqual(["p50", "p90", "p99"]);
    expect(picture?.rows[1]?.marks[0]?.left).toBe(picture?.rows[1]?.bars[0]?.left);
  });

  it("keeps a row for a set without values, and is none when no set has any", () => {
    expect(spreadPicture([null, values([5, 5, 1])], 10)?.rows.map(({ bars }) => bars.length)).toEqual([0, 1]);
    expect(spreadPicture([null, values()], 10)).toBeNull();
  });

  it("has labels with room between them, round in their unit", () => {
    const wide = values([1, 1, 1], [1_000_000_000, 1_000_000_063, 1]);
    const ticks = spreadPicture([wide], 10)?.ticks ?? [];
    expect(ticks.length).toBeGreaterThan(2);
    for (const [i, { at }] of ticks.slice(1).entries())
      expect(at - ticks[i]!.at).toBeGreaterThanOrEqual(0.18);
    for (const { value, at } of ticks) {
      expect(Number.isInteger(Math.log10(value))).toBe(true);
      expect(at).toBeGreaterThan(0.05);
      expect(at).toBeLessThan(0.95);
    }
    const sizes = spreadPicture([values([100, 103, 1], [100_000, 102_399, 1])], 1024)?.ticks ?? [];
    expect(sizes.map(({ value }) => bytes(value))).toContain("1.0 KiB");
  });
});
