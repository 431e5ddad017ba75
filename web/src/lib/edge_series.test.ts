import { describe, expect, test } from "vitest";
import type { Edge, EdgeSide, ValueSeries } from "../api/types";
import {
  betweenWords,
  drawnBounds,
  groupSteps,
  heatOf,
  histogramOf,
  joinSteps,
  joinValues,
  peaks,
  percentiles,
  rates,
  recentFrom,
  rowsOf,
  type Steps,
  seconds,
  stepAt,
  stepHistogram,
  stepText,
  timeBefore,
} from "./edge_series";
import {
  badness,
  countersOf,
  countersSince,
  labelText,
  markText,
  rateText,
  troubleText,
  worst,
} from "./edge_signals";
import { edgeEnd, edgeOf, edgeSide, sideSeries, untimed } from "./edges_testing";

const BOUNDS = [0, 10, 20, 25, 5_000_000];
const STEPS: Steps = [
  [0, 1000],
  [1000, 3000],
  [4000, 5000],
];
const VALUES: ValueSeries = {
  count: [3, 4, 1],
  sum: [30, 80, 9_000_000],
  bounds: BOUNDS,
  buckets: [
    [
      [1, 2],
      [2, 1],
    ],
    [[2, 4]],
    [[5, 1]],
  ],
};

describe("a series", () => {
  test("adds up to one histogram, each step to its own", () => {
    expect(histogramOf(VALUES).counts).toEqual([0, 2, 5, 0, 0, 1]);
    expect(stepHistogram(VALUES, 1).counts).toEqual([0, 0, 4, 0, 0, 0]);
  });

  test("percentiles are buckets, never numbers between them", () => {
    const told = percentiles(histogramOf(VALUES));
    expect(told.map(({ share, between }) => [share, betweenWords(between, 1e6)])).toEqual([
      [0.5, "between 10 and 20 ms"],
      [0.95, "above 5000 s"],
      [0.99, "above 5000 s"],
    ]);
    expect(percentiles({ bounds: BOUNDS, counts: [0, 0, 0, 0, 0, 0] })).toEqual([]);
    expect(betweenWords({ above: null, upTo: 0 }, 1)).toBe("below 1 µs");
    expect(betweenWords({ above: 20_000_000, upTo: 25_000_000 }, 1)).toBe("between 20 and 25 ms");
  });

  test("of very many steps is drawn in fewer columns that lose no peak, no count and no pause", () => {
    const minutes = Array.from({ length: 3600 }, (_, i) => i + (i >= 1800 ? 60 : 0));
    const steps: Steps = minutes.map((at) => [at * 1000, (at + 1) * 1000]);
    const groups = joinSteps(steps, 600);
    expect(groups.length).toBeGreaterThan(500);
    expect(groups.length).toBeLessThanOrEqual(2 * 600);
    const columns = groupSteps(steps, groups);
    expect([columns[0]![0], columns.at(-1)![1]]).toEqual([0, 3660_000]);
    // The pause in the middle is in no column.
    expect(columns.some(([from, to]) => from < 1830_000 && to > 1830_000)).toBe(false);
    const values = steps.map((_, i) => (i === 2222 ? 99 : 1));
    expect(Math.max(...peaks(values, groups))).toBe(99);
    const series: ValueSeries = {
      count: steps.map(() => 3),
      sum: steps.map(() => 30),
      bounds: BOUNDS,
      buckets: steps.map((_, i) => [[i % 2 === 0 ? 1 : 2, 3]]),
    };
    const joined = joinValues(series, groups);
    expect(histogramOf(joined)).toEqual(histogramOf(series));
    expect(joined.count.reduce((all, one) => all + one)).toBe(3 * 3600);
    expect(joinSteps(STEPS, 600).map(({ first, end }) => [first, end])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
    expect(joinSteps([], 600)).toEqual([]);
  });

  test("has a time before a range, never before the beginning", () => {
    expect(timeBefore(5000, 7000)).toEqual({ from: 3000, to: 5000 });
    expect(timeBefore(1000, 9000)).toEqual({ from: 0, to: 1000 });
    expect(timeBefore(0, 9000)).toBeNull();
    expect(timeBefore(5000, 5000)).toBeNull();
  });

  test("rates are over the real length of each step", () => {
    expect(rates(STEPS, [3, 4, 0])).toEqual([3, 2, 0]);
    expect(seconds(STEPS)).toBe(4);
  });

  test.each([
    [0, 0],
    [999.9, 0],
    [1000, 1],
    [3500, null],
    [4999, 2],
    [5000, null],
    [-1, null],
  ])("the moment %d lies in step %s", (ms, step) => {
    expect(stepAt(STEPS, ms)).toBe(step);
  });

  test("a heat map has a cell for each bucket that is not empty, and darker ones for more", () => {
    const heat = heatOf(STEPS, VALUES)!;
    expect([heat.low, heat.high, heat.cells.length]).toEqual([1, 5, 4]);
    const level = (step: number, bucket: number): number =>
      heat.cells.find((cell) => cell.step === step && cell.bucket === bucket)!.level;
    expect(level(0, 1)).toBe(5);
    expect(level(0, 2)).toBeLessThan(level(0, 1));
    expect(heatOf(STEPS, { ...VALUES, buckets: [[], [], []] })).toBeNull();
  });

  test("every bucket has a width that can be drawn on a logarithmic axis", () => {
    const histogram = histogramOf(VALUES);
    for (let bucket = 0; bucket < histogram.counts.length; bucket += 1) {
      const [low, high] = drawnBounds(histogram, bucket, 1e3);
      expect(low).toBeGreaterThan(0);
      expect(high).toBeGreaterThan(low);
    }
    expect(drawnBounds(histogram, 2, 1e3)).toEqual([10_000, 20_000]);
  });
});

test("numbers of an edge that is always watched are of its last minute, not of the age of the collection", () => {
  const steps = (count: number): Steps =>
    Array.from({ length: count }, (_, i) => [i * 5_000, (i + 1) * 5_000]);
  expect(recentFrom([])).toBeNull();
  expect(recentFrom(steps(12))).toBeNull();
  expect(recentFrom(steps(14))).toBe(10_000);
  for (let count = 15; count < 200; count += 1) {
    const covered = count * 5_000 - recentFrom(steps(count))!;
    expect(covered).toBeGreaterThanOrEqual(60_000);
    expect(covered).toBeLessThan(70_000);
  }
});

test("what is not measured has a reason and is never 0", () => {
  const rows = rowsOf(
    sideSeries({ read: { count: [1], bytes: [9], time: null }, reset: { sent: [1], received: [2] } }),
    { write: "no hook", "read.time_ns": "not timed", accept: "too old" },
    "server",
  );
  expect([rows.write.count, rows.write.reason]).toEqual([null, "no hook"]);
  expect([rows.read.count, rows.read.timesReason]).toEqual([[1], "not timed"]);
  expect([rows.connect.title, rows.connect.count, rows.connect.reason]).toEqual([
    "Accept wait",
    null,
    "too old",
  ]);
  expect(rows.reset.count).toEqual([3]);
  expect(rows.drop.reason).toBe("no reason is given");
});

function edge(change: Partial<EdgeSide>): Edge {
  const client = edgeSide({
    write: untimed(2, 1000),
    read: untimed(1, 24),
    retransmit: { count: 0 },
    ...change,
  });
  return edgeOf(edgeEnd(), edgeEnd(), { client, server: null });
}

describe("numbers of a line", () => {
  const counters = countersOf([edge({ retransmit: { count: 3 } }), edge({})]);

  test("labels say what is not known", () => {
    expect(labelText("bytes", counters, 2)).toBe("1.0 KiB/s");
    expect(labelText("ops", counters, 2)).toBe("3/s");
    expect(labelText("retransmits", counters, 2)).toBe("retr 1.5/s");
    expect(labelText("drops", counters, 2)).toBe("drop –");
    expect(labelText("rtt", counters, 2)).toBe("min RTT –");
    expect(labelText("bytes", counters, 0)).toBe("bytes –");
    expect([rateText(0), rateText(0.001), rateText(12.4)]).toEqual(["0/s", "< 0.01/s", "12/s"]);
  });

  test("the network's round trip is the smallest one, not one that waited for the peer's answer", () => {
    const smoothed = {
      count: 9,
      sum: 126_000,
      min: 10_000,
      max: 16_000,
      histogram: { bounds: [10_000, 20_000], counts: [0, 9, 0] },
    };
    const far = countersOf([
      edge({ write_rtt_us: smoothed, min_rtt_us: 9 }),
      edge({ write_rtt_us: smoothed, min_rtt_us: 6 }),
    ]);
    expect(labelText("rtt", far, 2)).toBe("min RTT 6.00 µs");
    expect(badness("rtt", far)).toBe(6);
    expect(countersSince(far, counters).minRtt).toBe(6);
  });

  test("a window is the difference of two tables", () => {
    const before = countersOf([edge({ retransmit: { count: 1 } })]);
    const window = countersSince(counters, before);
    expect([window.bytes, window.retransmits, window.drops]).toEqual([1024, 2, null]);
  });

  test("duplicates that the kernel drops are no trouble, and few losses among many calls are none", () => {
    const drop = (by_reason: Record<string, number>) => ({
      count: Object.values(by_reason).reduce((sum, number) => sum + number, 0),
      by_reason,
    });
    const duplicates = countersOf([
      edge({ drop: drop({ tcp_old_sequence: 11, tcp_rfc7323_paws_ack: 1 }), retransmit: { count: 0 } }),
    ]);
    expect([duplicates.drops, duplicates.lost]).toEqual([12, 0]);
    expect(badness("trouble", duplicates)).toBe(0);
    expect(troubleText(duplicates)).toBe("");
    const lost = countersOf([edge({ drop: drop({ tcp_old_data: 3, no_socket: 2 }) })]);
    expect(badness("drops", lost)).toBe(2);
    expect(troubleText(lost)).toBe("2 lost packets");
    const busy = { ...lost, ops: 10_000, retransmits: 3 };
    expect(troubleText(busy)).toBe("");
    expect(badness("trouble", { ...busy, retransmits: 30 })).toBe(30);
  });

  test("the worst come first, and good ones are never among them", () => {
    const line = (key: string, retransmits: number) => ({
      key,
      trouble: countersOf([edge({ retransmit: { count: retransmits } })]),
    });
    const lines = [line("a", 1), line("b", 0), line("c", 7), line("d", 1)];
    expect(worst(lines, "retransmits")).toEqual(["c", "a", "d"]);
    expect(worst(lines, "drops")).toEqual([]);
    expect(markText("trouble", lines[2]!.trouble)).toBe("7 retransmits");
    expect(badness("rtt", counters)).toBe(0);
  });
});

test("a time has the clock where it is known when counting began", () => {
  expect(stepText([10_000, 20_000], null)).toBe("10–20 s");
  const noon = new Date(2020, 0, 2, 12, 0, 0).getTime() * 1e6;
  expect(stepText([10_000, 20_000], noon)).toMatch(/12:00:10 to .*12:00:20 \(10–20 s\)$/);
});
