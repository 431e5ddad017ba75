import { expect, test } from "vitest";

import { hasEdges } from "./task_kind";

test("tasks that watch connections have edges and no flame graph", () => {
  expect(["network", "requests"].every(hasEdges)).toBe(true);
  expect(["on_cpu", "off_cpu", "wall", "imported"].some(hasEdges)).toBe(false);
});
