import { expect, test } from "vitest";
import type { Memory } from "../api/types";
import { ceilingText, givenUp, memoryParts } from "./memory";

const memory: Memory = {
  used_bytes: 60_000_000,
  own_bytes: 20_000_000,
  copied_bytes: 10_000_000,
  kernel_bytes: 30_000_000,
  ceiling_bytes: 120_000_000,
  ceiling_source: "setting",
  cgroup: null,
  stage: "open",
  caches_dropped: 0,
  refusals: 0,
  stopped: 0,
};

test("the ceiling says how much of it is used, and where it comes from", () => {
  expect(ceilingText(memory)).toContain("50 % used");
  expect(ceilingText({ ...memory, ceiling_bytes: null, ceiling_source: "none" })).toBe("none");
  const cgroup = { path: "/pod/agent", limit_bytes: 150_000_000 };
  expect(ceilingText({ ...memory, ceiling_source: "cgroup", cgroup })).toContain(
    "80 % of the limit of the cgroup /pod/agent",
  );
});

test("what counts is named in parts", () => {
  expect(memoryParts(memory)).toMatch(/own, .* copied symbol tables, .* in the kernel/);
});

test("only what was given up is said", () => {
  expect(givenUp(memory)).toBe("");
  expect(givenUp({ ...memory, refusals: 3, stopped: 1 })).toBe("refused 3 times, stopped 1 times");
});
