import { expect, test } from "vitest";
import type { Loss } from "../api/types";
import { lossChip } from "./losses";

const loss = (kind: string, count: number): Loss => ({ kind, count, meaning: `what ${kind} means` });

test("kinds are not added up, and old losses do not alarm", () => {
  const losses = [loss("tick_missed", 84), loss("switch_missed", 6)];
  const chip = lossChip(losses, losses);
  expect([chip.text, chip.isLosing]).toEqual(["84 tick missed + 1 kind", false]);
  expect(chip.detail.split("\n")).toEqual([
    "84 tick missed since the start: what tick_missed means",
    "6 switch missed since the start: what switch_missed means",
  ]);
  // The first reading says nothing of now.
  expect(lossChip(losses, null).isLosing).toBe(false);
});

test("what is being lost now stands in front, with how much", () => {
  const before = [loss("tick_missed", 84), loss("switch_missed", 6)];
  const chip = lossChip([loss("tick_missed", 84), loss("switch_missed", 9)], before);
  expect([chip.text, chip.isLosing]).toEqual(["losing: 3 switch missed", true]);
  expect(lossChip([loss("tick_missed", 5)], []).text).toBe("losing: 5 tick missed");
});

test("nothing is nothing", () => {
  expect(lossChip([], []).text).toBe("nothing lost");
});

test("what no result lacks does not alarm", () => {
  const losses = [loss("stack_table_full", 9), loss("ring_buffer_full", 5)];
  expect(lossChip(losses, []).isLosing).toBe(false);
  expect(lossChip([...losses, loss("count_table_full", 2)], []).text).toBe("losing: 2 count table full");
});
