import { expect, it } from "vitest";
import type { EdgeTable } from "../api/types";
import { edgeQuality } from "./edge_quality";
import { edgeEnd, edgeOf, edgeSide } from "./edges_testing";
import { partsChip } from "./quality";

const CALM = { capacity: 100, used: 1, refused: 0, evicted: 0, swept: 0, missed_runs: {}, delayed: 0 };

/** One edge of 1,000 connections. */
function table(change: Partial<EdgeTable> = {}): EdgeTable {
  const side = edgeSide({ connections: { count: 1000, open: 0 } });
  return {
    containers: {},
    edges: [edgeOf(edgeEnd(), edgeEnd(), { client: side, server: side })],
    kernel_table: CALM,
    lost: { events: 0, bytes: 0 },
    other: null,
    sources: {},
    unavailable: {},
    unresolved: {},
    window: null,
    ...change,
  };
}

const said = (change: Partial<EdgeTable> = {}): string[] =>
  edgeQuality(table(change)).map(({ title, text, poor }) => `${title}: ${text}${poor ? " !" : ""}`);

it("says that a whole table lacks nothing", () => {
  expect(said()).toEqual(["Lost traffic: none", "Unresolved: nothing", "Not available: nothing"]);
  expect(partsChip(edgeQuality(table())).text).toBe("Quality: good");
  expect(partsChip(edgeQuality(table()), "Connections").text).toBe("Connections: good");
});

it("marks lost reads and writes, and counts that the kernel's table missed", () => {
  const lost = { lost: { events: 1, bytes: 2048 } };
  expect(said(lost)[0]).toBe("Lost traffic: 1 read or write, 2.0 KiB !");
  expect(partsChip(edgeQuality(table(lost))).text).toBe("▲ Lost traffic: 1 read or write, 2.0 KiB");
  const refused = { kernel_table: { ...CALM, refused: 2 } };
  expect(said(refused)[0]).toBe("Lost traffic: counts are missing !");
  expect(edgeQuality(table(refused))[0]!.detail).toContain("2 connections found no room");
});

it("marks ends that are not known when they are many, and uncounted calls always", () => {
  expect(said({ unresolved: { owner: 10 } })[1]).toBe("Unresolved: 10 without a known process");
  expect(said({ unresolved: { used_by_several_processes: 900, owner: 11 } })[1]).toBe(
    "Unresolved: 11 without a known process, 1 more !",
  );
  expect(said({ unresolved: { owner: 3, calls_left_out: 1 } })[1]).toBe(
    "Unresolved: 1 calls left out, 1 more !",
  );
});

it("marks a missing count, and not what only another mode measures", () => {
  const untimed = { accept: "needs the timed mode", tls: "not said", "unix.drop": "never" };
  expect(said({ unavailable: untimed })[2]).toBe("Not available: 3 metrics");
  expect(said({ unavailable: { ...untimed, drop: "no kfree_skb" } })[2]).toBe("Not available: drop !");
  const parts = edgeQuality(
    table({ unavailable: untimed, sources: { write: "system calls", drop: "kfree_skb" } }),
  );
  expect(parts[2]!.detail).toContain("accept: needs the timed mode");
  expect(parts[2]!.detail).toMatch(/does not announce lengths: write$/);
});

it("tells what happened in the kernel's table, and edges that were added up, as no loss", () => {
  const other = { edges: 7, metrics: { client: null, server: null } };
  expect(said({ kernel_table: { ...CALM, evicted: 4 }, other }).slice(3)).toEqual([
    "Kernel's table: nothing lost",
    "Silent edges: 7 added up",
  ]);
});
