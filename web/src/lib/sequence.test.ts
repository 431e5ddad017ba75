import { describe, expect, it } from "vitest";
import type { Sequence } from "../api/types";
import { besides, boxAt, lane, sequenceBucketMs } from "./sequence";
import { seeded } from "./testing";

function sequenceOf(
  rows: readonly (readonly [bucket: number, stack: readonly number[], amount: number])[],
): Sequence {
  const total = rows.reduce((sum, [, , amount]) => sum + amount, 0);
  return {
    bucket_ms: 20,
    from_ms: 0,
    buckets: Math.max(0, ...rows.map(([bucket]) => bucket)) + 1,
    value: "count",
    labels: [],
    stacks: rows.map(([, stack]) => stack),
    threads: [
      {
        pid: 1,
        tid: 1,
        process: "a",
        name: "a",
        total,
        bucket: rows.map(([bucket]) => bucket),
        stack: rows.map((_, i) => i),
        amount: rows.map(([, , amount]) => amount),
      },
    ],
    other_threads: 0,
    other_amount: 0,
    stacks_per_bucket: 32,
  };
}

const laneOf = (rows: Parameters<typeof sequenceOf>[0]) => {
  const sequence = sequenceOf(rows);
  return lane(sequence, sequence.threads[0]!);
};

describe("lane", () => {
  it("joins equal frames of neighbouring buckets and leaves gaps empty", () => {
    const made = laneOf([
      [0, [1, 2], 1],
      [1, [1, 2], 3],
      [3, [1, 2], 1],
      [5, [7], 1],
    ]);
    expect(made.common).toBe(0);
    expect(made.rows[0]).toEqual([
      { from: 0, to: 2, depth: 0, label: 1, amount: 4 },
      { from: 3, to: 4, depth: 0, label: 1, amount: 1 },
      { from: 5, to: 6, depth: 0, label: 7, amount: 1 },
    ]);
    expect(boxAt(made, 1, 1.9)?.label).toBe(2);
    expect(boxAt(made, 1, 2.5)).toBeNull();
    expect(besides(made, made.rows[0]![0]!, 1)).toBe(made.rows[0]![1]);
    expect(besides(made, made.rows[0]![0]!, -1)).toBeNull();
    expect([...made.amounts]).toEqual([1, 3, 0, 1, 0, 1]);
  });

  it("leaves out what all stacks begin with, but never a whole stack", () => {
    const made = laneOf([
      [0, [1, 2, 3], 1],
      [1, [1, 2, 4], 1],
    ]);
    expect(made.common).toBe(2);
    expect(made.rows.length).toBe(1);
    expect(laneOf([[0, [1, 2], 1]]).common).toBe(1);
    expect(
      laneOf([
        [0, [1, 2, 3], 1],
        [1, [1], 1],
      ]).common,
    ).toBe(0);
  });

  it("shares a bucket by amounts, in the order of frames and not of arrival", () => {
    const made = laneOf([
      [0, [1, 3], 3],
      [0, [1, 2], 1],
      [4, [5], 1],
    ]);
    expect(made.rows[1]).toEqual([
      { from: 0, to: 0.25, depth: 1, label: 2, amount: 1 },
      { from: 0.25, to: 1, depth: 1, label: 3, amount: 3 },
    ]);
    expect(made.rows[0]!.length).toBe(2);
  });

  it("does not join a frame below a caller that differs", () => {
    const made = laneOf([
      [0, [1, 9], 1],
      [1, [2, 9], 1],
    ]);
    expect(made.rows[1]!.length).toBe(2);
  });

  it("loses nothing and overlaps nothing, whatever the stacks are", () => {
    const next = seeded(11);
    const rows: [number, number[], number][] = [];
    for (let bucket = 0; bucket < 200; bucket += 1) {
      const seen = new Set<string>();
      while (next() < 0.6) {
        const stack = Array.from({ length: 1 + Math.floor(next() * 4) }, () => Math.floor(next() * 3));
        if (seen.has(stack.join())) continue;
        seen.add(stack.join());
        rows.push([bucket, stack, 1 + Math.floor(next() * 5)]);
      }
    }
    const made = laneOf(rows);
    const sum = rows.reduce((all, [, , amount]) => all + amount, 0);
    expect(made.rows[0]!.reduce((all, box) => all + box.amount, 0)).toBe(sum);
    made.rows.forEach((row, depth) => {
      row.forEach((box, i) => {
        expect(box.to).toBeGreaterThan(box.from);
        if (i > 0) expect(box.from).toBeGreaterThanOrEqual(row[i - 1]!.to);
        if (depth > 0) expect(boxAt(made, depth - 1, (box.from + box.to) / 2)).not.toBeNull();
      });
    });
  });
});

describe("bucket", () => {
  it("is long enough for a sample and for the screen", () => {
    expect(sequenceBucketMs(10_000, 99, 1000)).toBe(20);
    expect(sequenceBucketMs(10_000, 19, 1000)).toBe(60);
    expect(sequenceBucketMs(100_000, 99, 1000)).toBe(100);
    expect(sequenceBucketMs(1000, 0, 1000)).toBe(20);
  });
});
