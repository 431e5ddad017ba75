import { expect, test } from "vitest";
import { elapsedSeconds, lossText, tableText } from "./task_state.js";

const loss = (kind: string, count: number) => ({ kind, count, meaning: "" });

test("only lost samples have a share of the samples", () => {
  const text = (losses: ReturnType<typeof loss>[]) => lossText({ losses, samples: 900 });
  expect(text([])).toBe("none");
  expect(text([loss("tick_missed", 88)])).toBe("88 × tick missed");
  expect(text([loss("count_table_full", 100)])).toBe("100 samples (10.0 %)");
  expect(text([loss("count_table_full", 100), loss("tick_missed", 1), loss("stack_missing", 2)])).toBe(
    "100 samples (10.0 %), 3 losses of 2 other kinds",
  );
});

test("what was left out is said only when there was something", () => {
  const tables = {
    pages_loaded: 12,
    pages_evicted: 0,
    blocks: 9,
    frames: 5000,
    captures: 7,
    repaired: 6,
    captures_dropped: 0,
    processes_left_out: 0,
  };
  const all =
    "12 pages of unwind tables loaded (9 KiB); 0 evicted; 7 samples walked by the agent, 6 to their end";
  expect(tableText(tables)).toBe(all);
  expect(tableText({ ...tables, captures_dropped: 2 })).toBe(`${all}; 2 did not fit`);
});

test("a task that still runs is not shown beyond its duration", () => {
  const task = { started_at_ns: 10e9, ended_at_ns: null, duration_s: 30 };
  expect(elapsedSeconds(task, 25_000)).toBe(15);
  expect(elapsedSeconds(task, 45_000)).toBe(30);
  expect(elapsedSeconds({ ...task, duration_s: null }, 45_000)).toBe(35);
  // What has ended took as long as it took.
  expect(elapsedSeconds({ ...task, ended_at_ns: 42e9 }, 99_000)).toBe(32);
});
