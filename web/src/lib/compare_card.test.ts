import { describe, expect, it } from "vitest";
import type { CheckupComparison } from "../api/types";
import { cardLines, wrapped } from "./compare_card";

const total = { a: 88.5, b: 61.2, change_percent: -30.8, low: -34, high: -27, significant: true };
const row = {
  feature: "tracing",
  title: "Tracing",
  a_percent: 39.9,
  b_percent: 0,
  a_us: 35.3,
  b_us: 0,
  change: -39.9,
  low: -41,
  high: -38,
  p: 0.00001,
  significant: true,
};
const comparison: CheckupComparison = {
  a: "checkup-a",
  b: "checkup-b",
  totals: { cpu_us_per_request: total, cpu_cores: null },
  rows: [{ ...row, feature: "routing", title: "Routing", significant: false }, row],
  programs: ["envoy"],
  other_programs: [],
  not_compared: null,
  latency: {
    process: "envoy",
    a: { requests: 100, mean_ns: 118e6, p50_ns: 118e6, p95_ns: 130e6, p99_ns: 140e6 },
    b: { requests: 100, mean_ns: 18e6, p50_ns: 18e6, p95_ns: 24e6, p99_ns: 30e6 },
  },
  findings: { gone: [{ id: "tracing", title: "Tracing" }], new: [], still: [] },
  verdict: "The CPU of one request fell by 30.8 %.",
};

describe("the card of a comparison", () => {
  it("has what was measured, the verdict, the numbers and what is significant", () => {
    const lines = cardLines(comparison, "shop/web-0", ["14:00:00", "15:00:00"]);
    expect(lines.map(({ kind }) => kind)).toEqual([
      "title",
      "muted",
      "text",
      "number",
      "number",
      "text",
      "text",
    ]);
    const texts = lines.map(({ text }) => text);
    expect(texts[0]).toBe("shop/web-0");
    expect(texts[1]).toBe("14:00:00 → 15:00:00");
    expect(texts[3]).toBe("Requests to envoy: 118 ms → 18.0 ms mean, p95 130 ms → 24.0 ms");
    expect(texts[4]).toMatch(/^CPU of one request: 88\.5 µs → 61\.2 µs, −30\.8 %/);
    expect(texts[5]).toBe("Tracing: 39.9 → 0.0 % of the CPU");
    expect(texts[6]).toBe("Gone: Tracing");
  });

  it("shows no text that is not plain, and no line that is too wide", () => {
    const hostile = `evil\u202egnp ${"word ".repeat(100)}`;
    const lines = cardLines({ ...comparison, verdict: hostile }, hostile, ["a", "b"]);
    expect(lines.every(({ text }) => !text.includes("\u202e"))).toBe(true);
    expect(wrapped(hostile, 84).every((line) => line.length <= 84)).toBe(true);
    expect(wrapped("x".repeat(200), 84)).toEqual(["x".repeat(84)]);
  });
});
