import { expect, test } from "vitest";
import { lossText } from "./task_state.js";

const loss = (kind: string, count: number) => ({ kind, count, meaning: "" });

test("only lost samples have a share of the samples", () => {
  const text = (losses: ReturnType<typeof loss>[]) => lossText({ losses, samples: 900 });
  expect(text([])).toBe("none");
  expect(text([loss("tick_missed", 88)])).toBe("88 × tick missed");
  expect(text([loss("count_table_full", 100)])).toBe("100 samples (10.0 %)");
  expect(text([loss("count_table_full", 100), loss("tick_missed", 1), loss("stack_missing", 2)])).toBe(
    "100 samples (10.0 %), 3 of 2 other kinds",
  );
});
