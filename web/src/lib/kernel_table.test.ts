import { describe, expect, test } from "vitest";
import type { KernelTable } from "../api/types";
import { tableRemarks } from "./kernel_table";

const CALM: KernelTable = {
  capacity: 65536,
  used: 12,
  refused: 0,
  evicted: 0,
  swept: 0,
  missed_runs: {},
  delayed: 0,
};

describe("what the kernel's table went through", () => {
  test("is nothing in a calm result", () => {
    expect(tableRemarks(CALM)).toEqual([]);
    expect(tableRemarks({ ...CALM, missed_runs: { network_send: 0 } })).toEqual([]);
  });

  test("is bad where counts are missing, and only there", () => {
    const all = tableRemarks({
      ...CALM,
      refused: 3,
      missed_runs: { network_send: 7 },
      delayed: 1,
      evicted: 2,
      swept: 5,
    });
    expect(all.map(({ bad }) => bad)).toEqual([true, true, false, false, false]);
    expect(all[0]?.text).toContain("3 connections found no room");
    expect(all[1]?.text).toContain("7 runs of network_send");
    expect(all[2]?.text).toContain("the end of 1 connection waited");
  });
});
