import { expect, test } from "vitest";
import { countedSum, rowsOf } from "./request_counts";
import { answer, counted } from "./requests_testing";

test("where all was captured operations say the same", () => {
  expect(rowsOf(answer({ counted: [counted("a", 3)] }), "")).toEqual([]);
});

test("one edge or all, with their sum", () => {
  const sampled = answer({ sampled_one_of: 4, counted: [counted("a", 3), counted("b", 5, false)] });
  expect(rowsOf(sampled, "b").map((row) => row.count)).toEqual([5]);
  expect(countedSum(rowsOf(sampled, ""))).toEqual({ requests: 8, errors: 0, exact: false });
  expect(countedSum(rowsOf(sampled, "a")).exact).toBe(true);
});
