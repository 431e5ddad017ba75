import { describe, expect, it } from "vitest";
import {
  cellAt,
  cellsOfRange,
  heatLevel,
  heatMap,
  heatScale,
  LEVELS,
  levelStarts,
  nearestCell,
  ROWS,
  rangeOfCells,
  rowBucketMs,
  stepped,
  timeText,
  timeTicks,
} from "./heat";

describe("scale", () => {
  it("has columns of a second until there are too many", () => {
    expect(heatScale(10_000)).toEqual({ columnMs: 1000, bucketMs: 20 });
    expect(heatScale(600_000).columnMs).toBe(1000);
    expect(heatScale(600_001)).toEqual({ columnMs: 2000, bucketMs: 40 });
    expect(heatScale(3_600_000)).toEqual({ columnMs: 10_000, bucketMs: 200 });
  });

  it("takes any length with bounded columns and whole buckets of the agent", () => {
    for (const length of [0, 1, 1e6, 1e8, 1e10, 1e12]) {
      const { columnMs, bucketMs } = heatScale(length);
      expect(length / columnMs).toBeLessThanOrEqual(600);
      expect(bucketMs * ROWS).toBe(columnMs);
      expect(bucketMs % 20).toBe(0);
    }
  });

  it("gives rows of threads few enough buckets", () => {
    expect(rowBucketMs(1000, 600)).toBe(20);
    expect(rowBucketMs(60_000, 600)).toBe(100);
    expect(rowBucketMs(61_000, 600) % 20).toBe(0);
    expect(61_000 / rowBucketMs(61_000, 600)).toBeLessThanOrEqual(600);
  });
});

describe("map", () => {
  const scale = heatScale(3000);
  const counts = Array.from({ length: 120 }, (_, i) => i);
  const map = heatMap(scale, 1040, counts);

  it("puts every bucket at its second and its fraction of it", () => {
    expect(map.originMs).toBe(1000);
    expect(map.columns).toBe(3);
    expect(map.cells[0]).toBe(-1);
    expect(map.cells[2]).toBe(0);
    expect(map.cells[121]).toBe(119);
    expect(map.cells[122]).toBe(-1);
    expect(map.top).toBe(119);
    const known = [...map.cells].filter((value) => value >= 0);
    expect(known).toEqual(counts);
  });

  it("of nothing is empty", () => {
    expect(heatMap(scale, 0, []).columns).toBe(0);
    expect(cellAt(0, 0.5, 0.5)).toBeNull();
  });

  it("finds cells by place and time by cells, there and back", () => {
    expect(cellAt(3, 0.34, 0.02)).toBe(ROWS + 1);
    expect(cellAt(3, 1, 0)).toBeNull();
    expect(nearestCell(3, 2, -1)).toBe(2 * ROWS);
    const range = rangeOfCells(map, 60, 55);
    expect(range).toEqual({ from: 2100, to: 2220 });
    expect(cellsOfRange(map, range)).toEqual([55, 60]);
    expect(cellsOfRange(map, { from: 0, to: 900 })).toBeNull();
    expect(cellsOfRange(map, { from: 0, to: 99_999 })).toEqual([0, 149]);
  });

  it("moves by cells and columns and stays inside", () => {
    expect(stepped(map, 60, 1, 0)).toBe(61);
    expect(stepped(map, 60, 0, 1)).toBe(110);
    expect(stepped(map, 140, 0, 1)).toBe(140);
    expect(stepped(map, 0, -1, 0)).toBe(0);
  });
});

describe("colour", () => {
  it("never shows something as nothing", () => {
    expect(heatLevel(0, 100)).toBe(0);
    expect(heatLevel(1e-6, 100)).toBe(1);
    expect(heatLevel(100, 100)).toBe(LEVELS);
    expect(heatLevel(101, 100)).toBe(LEVELS);
    expect(heatLevel(-1, 100)).toBe(0);
  });

  it("has a legend whose steps are those of the map", () => {
    levelStarts(49).forEach((start, level) => {
      expect(heatLevel(start + 0.001, 49)).toBe(level + 1);
    });
  });
});

it("writes times with the digits that a cell needs", () => {
  expect(timeText(20)).toBe("0.02 s");
  expect(timeText(62_500)).toBe("1:02.50 min");
});

describe("ticks", () => {
  it("are few, round and inside", () => {
    expect(timeTicks(0, 60_000, 8).map(({ text }) => text)).toEqual([
      "0 s",
      "10 s",
      "20 s",
      "30 s",
      "40 s",
      "50 s",
    ]);
    // The one at 30 s would be cut at the right edge.
    expect(timeTicks(0, 30_500, 8).map(({ text }) => text)).toEqual([
      "0 s",
      "5 s",
      "10 s",
      "15 s",
      "20 s",
      "25 s",
    ]);
    expect(timeTicks(1_040, 1_300, 8)[0]).toEqual({ at: 10 / 260, text: "1.05 s" });
    expect(timeTicks(50_000, 110_000, 4).map(({ text }) => text)).toEqual([
      "1:00 min",
      "1:20 min",
      "1:40 min",
    ]);
    for (const length of [1, 19, 1e3, 1e6, 1e9, 1e12]) {
      const ticks = timeTicks(0, length, 8);
      expect(ticks.length).toBeLessThanOrEqual(9);
      for (const { at } of ticks) expect(at >= 0 && at <= 0.97).toBe(true);
    }
    expect(timeTicks(5, 5, 8)).toEqual([]);
  });
});
