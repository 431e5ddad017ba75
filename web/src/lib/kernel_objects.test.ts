import { describe, expect, it } from "vitest";
import type { KernelMap, KernelObjects, KernelProgram } from "../api/types";
import { fillOf, fullest, mapRows, programRows, wholeName } from "./kernel_objects";

const program = (id: number, name: string, runs: number | null, ns: number | null): KernelProgram => ({
  id,
  name,
  run_count: runs,
  run_time_ns: ns,
  missed_runs: 1,
  verified_instructions: 100,
  memory_bytes: 4096,
});

const map = (id: number, name: string, entries: number | null, max: number): KernelMap => ({
  id,
  name,
  kind: "hash",
  max_entries: max,
  entries,
  reason: entries === null ? "an array" : null,
  memory_bytes: id,
});

const objects = (programs: KernelProgram[], on: boolean): KernelObjects => ({
  programs,
  maps: [],
  statistics: { on, by: on ? "request" : null },
});

describe("programs in the kernel", () => {
  it("have a rate and a time of one run between two readings", () => {
    const before = objects([program(1, "on_cpu", 100, 1000), program(2, "on_cpu", 50, 500)], true);
    const now = objects(
      [program(1, "on_cpu", 300, 5000), program(2, "on_cpu", 50, 500), program(3, "drop", 7, 70)],
      true,
    );
    const rows = programRows(now, before, 2000);
    expect(rows[0]).toMatchObject({
      name: "on_cpu",
      copies: 2,
      runs: 350,
      runsPerSecond: 100,
      nsPerRun: 20,
      missed: 2,
    });
    expect(rows[0]?.share).toBeCloseTo(4000 / 2e9);
    // Loaded since: there is no rate yet, but a mean.
    expect(rows[1]).toMatchObject({ name: "drop", runsPerSecond: null, nsPerRun: 10 });
  });

  it("have no rate of zero while nothing is counted", () => {
    const off = objects([program(1, "on_cpu", null, null)], false);
    expect(programRows(off, off, 2000)[0]).toMatchObject({
      runs: null,
      runsPerSecond: null,
      nsPerRun: null,
      share: null,
    });
  });
});

describe("maps", () => {
  it("are shown fullest first, and unknown is not empty", () => {
    const maps = [
      map(1, "ARRAY", null, 10),
      map(2, "STACKS", 5, 10),
      map(3, "COUNTS", 9, 10),
      map(4, "EMPTY", 0, 10),
    ];
    expect(mapRows(maps).map(({ name }) => name)).toEqual(["COUNTS", "STACKS", "EMPTY", "ARRAY"]);
    expect(fillOf(maps[0]!)).toBeNull();
    expect(fullest(maps)).toEqual({ name: "COUNTS", fill: 0.9 });
    expect(fullest([maps[0]!])).toBeNull();
    expect(fullest([])).toBeNull();
  });
});

it("names that the kernel cut are whole where only one can be meant", () => {
  const known = [
    "network_receive_done",
    "network_receive",
    "network_connect_begin",
    "network_connect_end",
    "ticks",
  ];
  expect(wholeName("ticks", known)).toBe("ticks");
  expect(wholeName("network_receive", known)).toBe("network_receive");
  expect(wholeName("network_receive", known.slice(0, 1))).toBe("network_receive_done");
  expect(wholeName("network_connect", known)).toBe("network_connect…");
  expect(wholeName("network_accept_", known)).toBe("network_accept_");
});
