import { describe, expect, it } from "vitest";
import type { Task } from "../api/types";
import { clockTicks, earlier, HOUR_MS, isContinuous, nodeProfile, SPANS, sinceOf } from "./continuous";
import { clockTime } from "./format";
import { formatState, parseState, START } from "./query_state";

const task = (id: string, change: Partial<Task> = {}): Task =>
  ({ id, kind: "on_cpu", duration_s: null, target: { all: true }, state: "running", ...change }) as Task;

describe("a profile without end", () => {
  it("is one that records until it is stopped", () => {
    expect(isContinuous(task("1"))).toBe(true);
    expect(isContinuous(task("1", { duration_s: 60 }))).toBe(false);
    expect(isContinuous(task("1", { kind: "network" }))).toBe(false);
  });

  it("of the node is the newest that runs", () => {
    const tasks = [
      task("3"),
      task("11"),
      task("12", { state: "finished" }),
      task("13", { target: { pids: [1] } }),
      task("14", { duration_s: 5 }),
    ];
    expect(nodeProfile(tasks)?.id).toBe("11");
    expect(nodeProfile([])).toBeNull();
  });

  it("is looked at by its last minutes, and by the same time before", () => {
    expect(sinceOf(SPANS[0]!.ms, 2 * HOUR_MS)).toBe(2 * HOUR_MS - 900_000);
    expect(sinceOf(SPANS[2]!.ms, 2 * HOUR_MS)).toBeNull();
    expect(earlier({ from: HOUR_MS, to: 1.25 * HOUR_MS }, HOUR_MS)).toEqual({ from: 0, to: 0.25 * HOUR_MS });
    expect(earlier({ from: HOUR_MS - 1, to: 2 * HOUR_MS }, HOUR_MS)).toBeNull();
  });

  it("has an axis of whole clock times", () => {
    const from = new Date(2026, 10, 28, 14, 3, 10).getTime();
    const ticks = clockTicks(from, from + 900_000, 8);
    expect(ticks.map(({ text }) => text)).toEqual(
      [4, 6, 8, 10, 12, 14, 16, 18].map((m) => `14:${String(m).padStart(2, "0")}`),
    );
    expect(ticks[0]!.at).toBeCloseTo(50 / 900);
    expect(clockTicks(from, from + 24 * HOUR_MS, 8).every(({ text }) => text.endsWith(":00"))).toBe(true);
    expect(clockTicks(from, from, 8)).toEqual([]);
    expect(clockTime(new Date(from), true)).toBe("14:03:10");
  });

  it("is in the address with its containers", () => {
    const id = "3f9d2c71aa0b".repeat(5);
    const state = { ...START, view: "task" as const, id: "7", since: 5_000, containers: [id] };
    expect(parseState(formatState(state))).toEqual(state);
    expect(parseState("?view=task&id=7&containers=<b>,x&since=-1")).toMatchObject({
      containers: [],
      since: null,
    });
  });
});
