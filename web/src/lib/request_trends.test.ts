import { describe, expect, it } from "vitest";
import type { RequestSpans, TaskRequests } from "../api/types";
import { chartText, perSecond, stepPath, trendsOf } from "./request_trends";

const SECOND = 1e9;
const spans = (change: Partial<RequestSpans> = {}): RequestSpans => ({
  count: [4, 0, 9],
  errors: [0, 0, 3],
  p50_ns: [1e6, null, 2e6],
  p95_ns: [3e6, null, 4e6],
  p99_ns: [3e6, null, 8e6],
  ...change,
});
const window = { from_ns: 10 * SECOND, to_ns: 17 * SECOND } as never;
const over_time = {
  from_ns: 10 * SECOND,
  width_ns: 2 * SECOND,
  all: spans(),
  edges: { e: spans({ count: [2, 0, 0] }) },
};
const ALL = { edge: "", narrower: false };

/** Of an edge that had no room. */
const operations = [{ edge: { id: "f" } }] as unknown as TaskRequests["operations"];

describe("requests over time", () => {
  it("are rates of spans, the last of which ends with the window", () => {
    const found = trendsOf({ over_time, window, operations }, ALL)!;
    expect(found.edges).toEqual([0, 2 / 7, 4 / 7, 1]);
    const rates = found.charts[0]!.lines[0]!.values;
    expect(rates.map((rate) => rate?.toFixed(3))).toEqual(["2.000", "0.000", "3.000"]);
    expect(found.charts[2]!.most).toBe(8e6);
    expect(found.seconds).toBe(7);
    expect(found.instead).toBe("");
  });

  it("say where they are not what the filters ask for", () => {
    const of = (filter: Parameters<typeof trendsOf>[1]) =>
      trendsOf({ over_time, window, operations }, filter)!;
    expect(of({ edge: "e", narrower: false })).toMatchObject({ ofEdge: true, instead: "" });
    expect(of({ edge: "e", narrower: true }).instead).toMatch(/all requests of this edge/);
    expect(of({ edge: "f", narrower: false }).instead).toMatch(/no room for this edge/);
    expect(of({ edge: "constructor", narrower: false }).instead).toMatch(/none were seen on this edge/);
    expect(of({ edge: "", narrower: true }).instead).toMatch(/all edges.*not kept by operation/);
  });

  it("are not there for older results, nor for nothing", () => {
    expect(trendsOf({ over_time: null, window, operations }, ALL)).toBe(null);
    expect(trendsOf({ over_time, window: null, operations }, ALL)).toBe(null);
    const none = { ...over_time, all: spans({ count: [0, 0, 0] }) };
    expect(trendsOf({ over_time: none, window, operations }, ALL)).toBe(null);
  });

  it("are drawn as steps, open where nothing is known", () => {
    expect(stepPath([1, 2, null, 1], [0, 0.25, 0.5, 0.75, 1], 2, [100, 13])).toBe(
      "M0.0 7.0H25.0L25.0 2.0H50.0M75.0 7.0H100.0",
    );
    expect(stepPath([0], [0, 1], 0, [100, 13])).toBe("M0.0 12.0H100.0");
  });

  it("are said in words", () => {
    const found = trendsOf({ over_time, window, operations }, ALL)!;
    expect(found.charts.map(chartText)[2]).toBe(
      "Latency over time: p50 at most 2.00 ms, last 2.00 ms; p95 at most 4.00 ms, last 4.00 ms; p99 at most 8.00 ms, last 8.00 ms",
    );
    expect([0, 0.04, 3.21, 123.4].map(perSecond)).toEqual(["0/s", "0.04/s", "3.2/s", "123/s"]);
  });
});
