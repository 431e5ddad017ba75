import { describe, expect, it } from "vitest";
import type { ComparedRow, Finding, Matrix, MatrixCell } from "../api/types";
import { cellText, formatCell, isCell, parseCell } from "./cell";
import { changeBar, changeScale, directionOf, microsChange, points, sortedRows } from "./checkup_compare";
import { diagnosisPath } from "./checkup_paths";
import {
  barOf,
  cellTitle,
  estimateText,
  flameState,
  frameSearch,
  interval,
  noSavingText,
  perRequestText,
  reasonOf,
  savingText,
  scaleOf,
  share,
  throttledText,
  waitsWatched,
} from "./diagnosis";
import { cellWords, HEAT_LEVELS, heatLevel, matrixTable, stepCell, sumsTo100 } from "./matrix";
import { formatState, parseState, START } from "./query_state";
import { parseQuery } from "./search";
import { seeded } from "./testing";

const cell = (feature: string, mechanism: string, samples: number, all: number): MatrixCell => ({
  feature,
  mechanism,
  samples,
  ns: samples * 10,
  share_percent: (samples / all) * 100,
  low: 0,
  high: 100,
  rules: [
    { rule: "few", samples: 1 },
    { rule: "many", samples: samples - 1 },
  ],
});

const listed = (...ids: string[]) => ids.map((id) => ({ id, title: id, about: "", settings: false }));

describe("a cell in the address", () => {
  it("comes back from the text that it is written as", () => {
    for (const one of [
      { feature: "tracing", mechanism: null },
      { feature: "tracing", mechanism: "page_fault" },
      { feature: null, mechanism: "kernel_tcp" },
      { feature: "filter:lua", mechanism: null },
      { feature: "filter:lua", mechanism: "allocation" },
    ]) {
      expect(parseCell(formatCell(one))).toEqual(one);
      expect(isCell(formatCell(one))).toBe(true);
    }
  });

  it("is read as words, and is not just any text", () => {
    expect(cellText("access_log_write:syscall")).toBe("access log write × syscall");
    expect(cellText("filter:lua")).toBe("filter lua");
    expect(cellText(":copy")).toBe("copy");
    for (const text of ["", ":", "a b", "<b>", "x".repeat(200)]) expect(isCell(text)).toBe(false);
  });

  it("has the titles of its diagnosis, also without a feature or a mechanism", () => {
    const titles = {
      features: [{ id: "tracing", title: "Tracing", about: "", settings: true }],
      mechanisms: [{ id: "allocation", title: "Memory" }],
    };
    const check = (cell: string, expected: string) =>
      expect(cellTitle(parseCell(cell), titles)).toBe(expected);
    check("tracing:allocation", "Tracing × Memory");
    check("tracing", "Tracing");
    check(":allocation", "Memory");
    check("unknown:copy", "unknown × copy");
  });

  it("stays in the address with the process and both sides of a comparison", () => {
    const state = { ...START, view: "task" as const, id: "7", cell: "filter:lua:copy", pid: 42 };
    expect(parseState(formatState(state))).toEqual(state);
    const compared = { ...START, view: "compare-checkups" as const, a: "checkup-1", b: "checkup-2" };
    expect(parseState(formatState(compared))).toEqual(compared);
    expect(parseState("?view=compare-checkups&a=x").view).toBe("diagnose");
    expect(parseState("?view=checkup").view).toBe("diagnose");
    expect(parseState("?view=task&id=7&cell=<script>").cell).toBe("");
  });
});

describe("the matrix", () => {
  it("adds rows and columns to the same whole, whatever the cells", () => {
    const next = seeded(11);
    for (let round = 0; round < 200; round += 1) {
      const counts = Array.from({ length: 1 + Math.floor(next() * 30) }, () => Math.ceil(next() * 900));
      const all = counts.reduce((a, b) => a + b, 0);
      const cells = counts.map((samples, i) => cell(`f${i % 7}`, `m${Math.floor(i / 7)}`, samples, all));
      const [features, mechanisms] = [listed("f0", "f1", "unused"), listed("m0")];
      const matrix: Matrix = { features, mechanisms, rows: [], cells };
      const table = matrixTable(matrix);
      const sum = (list: readonly { sum: { share_percent: number } }[]) =>
        list.reduce((total, each) => total + each.sum.share_percent, 0);
      expect(sum(table.rows)).toBeCloseTo(100, 6);
      expect(sum(table.columns)).toBeCloseTo(100, 6);
      expect(sumsTo100(table.total)).toBe(true);
      expect(table.rows.flatMap((row) => row.cells).filter((each) => each !== null)).toHaveLength(
        cells.length,
      );
    }
  });

  it("has the largest feature first and what nothing is known of last", () => {
    const { rows, columns, empty } = matrixTable({
      features: listed("unattributed", "small", "no_symbols", "large", "none"),
      mechanisms: listed("copy", "lock"),
      rows: [],
      cells: [
        cell("unattributed", "copy", 60, 100),
        cell("small", "copy", 5, 100),
        cell("no_symbols", "copy", 20, 100),
        cell("large", "copy", 15, 100),
      ],
    });
    expect(rows.map(({ feature }) => feature.id)).toEqual(["large", "small", "unattributed", "no_symbols"]);
    expect(columns.map(({ id }) => id)).toEqual(["copy"]);
    expect(empty).toEqual({ features: ["none"], mechanisms: ["lock"] });
  });

  it("tells when the cells do not add up", () => {
    const { total } = matrixTable({
      features: [],
      mechanisms: [],
      rows: [],
      cells: [cell("a", "b", 40, 100)],
    });
    expect(sumsTo100(total)).toBe(false);
  });

  it("darkens with the share, and what is small is not like nothing", () => {
    expect(heatLevel(0, 50)).toBe(0);
    expect(heatLevel(0.001, 50)).toBe(1);
    expect(heatLevel(50, 50)).toBe(HEAT_LEVELS);
    expect(heatLevel(10, 50)).toBeLessThan(heatLevel(30, 50));
  });

  it("names the rules of a cell, the largest first", () => {
    expect(cellWords(cell("a", "b", 10, 100), "Tracing", "Copy")).toBe(
      "Tracing × Copy: 10.0 % (0.00 to 100.0 %), 10 samples; rules: many (9), few (1)",
    );
  });

  it("is walked by arrows and stops at its edges", () => {
    const step = (key: string, row: number, column: number, ctrl = false) =>
      stepCell({ row, column }, key, ctrl, 3, 4);
    expect(step("ArrowRight", 0, 3)).toEqual({ row: 0, column: 3 });
    expect(step("ArrowDown", 1, 2)).toEqual({ row: 2, column: 2 });
    expect(step("Home", 1, 2)).toEqual({ row: 1, column: 0 });
    expect(step("End", 0, 0, true)).toEqual({ row: 2, column: 3 });
    expect(step("x", 0, 0)).toBeNull();
  });
});

const finding = (change: Partial<Finding> = {}): Finding => ({
  id: "t",
  title: "Tracing",
  severity: "high",
  share_percent: 20,
  low: 18,
  high: 22,
  saving: { percent: 20, us_per_request: 31.4 },
  evidence: [],
  reason: "because",
  configured: null,
  settings: [],
  confidence: "exact",
  cells: [],
  ...change,
});

describe("numbers of a diagnosis", () => {
  it("never show as zero what is there", () => {
    expect([share(0), share(0.004), share(0.25), share(16.14)]).toEqual([
      "0 %",
      "< 0.01 %",
      "0.25 %",
      "16.1 %",
    ]);
    expect(interval(15.02, 17.18)).toBe("15.0 to 17.2 %");
    expect(interval(19.03, 19.03)).toBe("exact");
    expect(estimateText({ value: 148, low: 141.2, high: 155 })).toBe("148 µs (141 µs to 155 µs)");
    expect(throttledText({ periods: 300, throttled_periods: 12, throttled_ns: 1.2e9 })).toBe(
      "in 12 of 300 periods (4.0 %), 1.20 s",
    );
    expect(throttledText({ periods: 300, throttled_periods: 0, throttled_ns: 0 })).toBe(
      "in none of 300 periods",
    );
  });

  it("name about what is saved, or that it is not known", () => {
    expect(savingText(finding())).toBe("about 20.0 % of the CPU, 31.4 µs of each request");
    expect(savingText(finding({ saving: { percent: 20, us_per_request: null } }))).toBe(
      "about 20.0 % of the CPU",
    );
    expect(savingText(finding({ saving: null }))).toBeNull();
  });

  it("draw bars inside their scale", () => {
    const end = scaleOf([finding()]);
    expect(end).toBeCloseTo(23.1);
    const bar = barOf(finding(), end);
    expect(bar.from).toBeLessThan(bar.value);
    expect(bar.to).toBeLessThan(100);
    expect(barOf(finding({ low: -5, high: 400 }), end)).toMatchObject({ from: 0, to: 100 });
    expect(scaleOf([])).toBeCloseTo(1.05);
  });

  it("find the limit that says why something is unknown", () => {
    const limits = ["Event loops were not watched.", "Requests are not known: Envoy's admin port is closed."];
    expect(reasonOf(limits, ["request"])).toBe(limits[1]);
    expect(reasonOf(limits, ["requests", "event"])).toBe(limits[1]);
    expect(reasonOf(limits, ["throttl"])).toMatch(/does not say why/);
  });

  it("distinguish threads without waits from waits that were not watched", () => {
    const thread = { tid: 1, waits: [], longest_wait_ns: null };
    const workers = (threads: object[]) => ({ threads, imbalance: null, throttled: null }) as never;
    expect(waitsWatched(workers([thread, thread]))).toBe(false);
    expect(waitsWatched(workers([thread, { ...thread, longest_wait_ns: 4 }]))).toBe(true);
  });

  it("open the flame graph of the same process and time, if there is one", () => {
    const flame = { task: "7", pid: 42, from: 10, to: null };
    expect(flameState(flame, { cell: "tracing" })).toMatchObject({
      id: "7",
      cell: "tracing",
      pid: 42,
      from: 10,
    });
    expect(flameState({ ...flame, task: null }, { cell: "tracing" })).toBeNull();
    expect(flameState(flame, { cell: null })).toBeNull();
  });

  it("search frames by their text, also those that look like a pattern", () => {
    const finds = (frame: string): boolean => {
      const query = parseQuery(frameSearch(frame));
      return query.kind === "test" && query.test({ name: frame, module: "" } as never);
    };
    for (const frame of ["a::b<c>", "mod:x", "kind:y", "/usr/lib/(a)+[b]/", "operator/"]) {
      expect(finds(frame)).toBe(true);
    }
  });

  it("ask for one process and one part of the time", () => {
    expect(diagnosisPath({ of: "tasks", id: "7", pid: null })).toBe("/tasks/7/diagnosis");
    expect(diagnosisPath({ of: "checkups", id: "a b", pid: 42 }, "markdown")).toBe(
      "/checkups/a%20b/diagnosis?pid=42&format=markdown",
    );
    expect(diagnosisPath({ of: "checkups", id: "7", pid: null, scope: "all" })).toBe(
      "/checkups/7/diagnosis?scope=all",
    );
    expect(diagnosisPath({ of: "tasks", id: "7", pid: 42, from: 0, to: 900 })).toBe(
      "/tasks/7/diagnosis?pid=42&from=0&to=900",
    );
  });
});

const row = (feature: string, change: number, more: Partial<ComparedRow> = {}): ComparedRow => ({
  feature,
  title: feature,
  a_percent: 10,
  b_percent: 10 + change,
  a_us: null,
  b_us: null,
  change,
  low: change - 1,
  high: change + 1,
  p: 0.2,
  significant: false,
  ...more,
});

describe("a comparison of check-ups", () => {
  it("has what chance cannot explain first where requests are not known", () => {
    const rows = [
      row("noise", 9),
      row("small", -2, { significant: true }),
      row("large", 4, { significant: true }),
    ];
    expect(sortedRows(rows).map(({ feature }) => feature)).toEqual(["large", "small", "noise"]);
  });

  it("goes by the CPU of one request where it is known: shares of others grow when one goes", () => {
    const rows = [
      row("codec", 14, { significant: true, a_us: 27, b_us: 27.1 }),
      row("tracing", -10, { significant: true, a_us: 66, b_us: 1 }),
    ];
    expect(sortedRows(rows).map(({ feature }) => feature)).toEqual(["tracing", "codec"]);
    expect(microsChange(-65)).toBe("−65.0 µs");
  });

  it("gives a direction only to what is significant", () => {
    expect(directionOf({ significant: true }, -3)).toBe("less");
    expect(directionOf({ significant: true }, 3)).toBe("more");
    expect(directionOf({ significant: false }, 3)).toBe("same");
    expect([points(-0.4), points(12), points(0)]).toEqual(["−0.40", "+12.0", "±0.00"]);
  });

  it("draws a change around the middle", () => {
    const rows = [row("a", -10), row("b", 3)];
    const bar = changeBar(rows[0]!, changeScale(rows));
    expect(bar.from).toBeGreaterThanOrEqual(0);
    expect(bar.at).toBeLessThan(50);
    expect(changeBar(row("c", 0), 5).at).toBe(50);
  });
});

it("says why no saving is named, and writes rare things as one in so many", () => {
  expect(noSavingText({ cells: [] })).toBe("Affects latency, not CPU cost");
  expect(noSavingText({ cells: [{}] } as unknown as Finding)).toBe("CPU saving not known");
  expect(perRequestText(0.0000166)).toBe("1 per 60,000 requests");
  expect(perRequestText(0.25)).toBe("0.250");
  expect(perRequestText(0)).toBe("0");
});
