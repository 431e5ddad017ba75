import { expect, test } from "vitest";
import { countedSum, failedText, rowsOf } from "./request_counts";
import { answer, counted } from "./requests_testing";

test("where all was captured operations say the same", () => {
  expect(rowsOf(answer({ counted: [counted("a", 3)] }), "")).toEqual([]);
});

test("one edge or all, with their sum", () => {
  const sampled = answer({ sampled_one_of: 4, counted: [counted("a", 3), counted("b", 5, false)] });
  expect(rowsOf(sampled, "b").map((row) => row.count)).toEqual([5]);
  const sum = { requests: 8, errors: 0, unknown: 0, exact: false };
  expect(countedSum(rowsOf(sampled, ""))).toEqual(sum);
  expect(countedSum(rowsOf(sampled, "a")).exact).toBe(true);
});

test("requests of unknown status are not shown as fine", () => {
  const of = (unknown: number) => failedText({ ...counted("a", 3000), errors: 2, unknown });
  expect([0, 1000, 3000].map(of)).toEqual(["2", "2, 1,000 unknown", "unknown"]);
});
