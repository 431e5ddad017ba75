import { describe, expect, test } from "vitest";
import type { EdgeSeries } from "../api/types";
import { trendsOf } from "./edge_trend";

const STEPS = Array.from({ length: 120 }, (_, i) => [i * 1000, (i + 1) * 1000] as const);
const each = (number: number): number[] => STEPS.map(() => number);

const SERIES = {
  edge: "1",
  steps_ms: STEPS,
  client: {
    write: { count: each(2), bytes: each(100), time: null },
    read: { count: each(3), bytes: STEPS.map((_, i) => (i === 77 ? 9000 : 0)), time: null },
    write_rtt_us: { count: each(2), sum: each(600), bounds: [], buckets: [] },
    retransmit: each(0),
    drop: null,
    error: { count: each(1), by_name: {} },
  },
  server: null,
} as unknown as EdgeSeries;

const of = (key: string) => trendsOf(SERIES, 30).find((trend) => trend.key === key)?.values;

describe("an edge in a few columns", () => {
  test("keeps rates and means, whatever the number of steps", () => {
    expect(of("calls")?.length).toBeLessThanOrEqual(60);
    expect(new Set(of("calls"))).toEqual(new Set([5]));
    expect(new Set(of("rtt"))).toEqual(new Set([300]));
    expect(Math.max(...of("bytes")!)).toBeGreaterThan(100);
    expect(of("retransmits")?.every((value) => value === 0)).toBe(true);
  });

  test("says what was not measured, and nothing of an edge without time", () => {
    expect(of("drops")).toBeNull();
    expect(trendsOf({ ...SERIES, steps_ms: [] }, 30)).toEqual([]);
    expect(trendsOf({ ...SERIES, client: null }, 30)).toEqual([]);
  });
});
