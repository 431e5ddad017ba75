import { describe, expect, test } from "vitest";
import type { Edge, EdgeSide, Histogram } from "../api/types";
import { containerNames } from "./containers_testing";
import {
  bars,
  betweenText,
  compareEdges,
  edgeRow,
  errnoText,
  matchesEdge,
  missingText,
  percentile,
} from "./edges";
import { edgeEnd, edgeOf, edgeSide, untimed } from "./edges_testing";
import { asCli, NO_SELECTOR, specOf, type TaskForm, targetText } from "./task_spec";

/** Bounds in microseconds, as the round-trip time has them. */
const BOUNDS = [0, 10, 1000, 1200, 5_000_000];
const histogram = (...counts: number[]): Histogram => ({ bounds: BOUNDS, counts });

function side(change: Partial<EdgeSide> = {}): EdgeSide {
  return edgeSide({
    write: untimed(2, 100),
    read: untimed(1, 30),
    retransmit: { count: 1 },
    reset: { count: 1, sent: 1, received: 0 },
    ...change,
  });
}

function edge(client: EdgeSide | null, server: EdgeSide | null, comm = "curl"): Edge {
  const ends = [edgeEnd({ comm, pid: 7 }), edgeEnd({ port: 443 })] as const;
  return edgeOf(...ends, { client, server }, { id: `id-${comm}` });
}

describe("percentiles", () => {
  test.each([
    [histogram(0, 0, 0, 1, 0, 0), 0.5, "1–1.2 ms"],
    [histogram(0, 99, 1, 0, 0, 0), 0.99, "0–10 µs"],
    [histogram(0, 99, 2, 0, 0, 0), 0.99, "0.01–1 ms"],
    [histogram(1, 0, 0, 0, 0, 0), 0.5, "< 1 µs"],
    [histogram(0, 0, 0, 0, 0, 3), 0.5, "> 5 s"],
  ])("%j at %d is %s", (counts, share, expected) => {
    const found = percentile(counts, share);
    expect(found === null ? null : betweenText(found, 1e3)).toBe(expected);
  });

  test("nothing has none", () => {
    expect(percentile(histogram(0, 0, 0, 0, 0, 0), 0.5)).toBeNull();
  });

  test("bars reach from the first to the last bucket in use", () => {
    expect(bars(histogram(0, 3, 0, 1, 0, 0), 1e3)).toEqual([
      { label: "0–10 µs", count: 3 },
      { label: "0.01–1 ms", count: 0 },
      { label: "1–1.2 ms", count: 1 },
    ]);
    expect(bars(histogram(0, 0, 0, 0, 0, 0), 1e3)).toEqual([]);
  });
});

describe("rows", () => {
  test("the server's view is turned round where the client was not watched", () => {
    const row = edgeRow(edge(null, side()));
    expect([row.sent, row.received, row.calls]).toEqual([30, 100, 3]);
  });

  test("trouble at both ends adds up, a reset has one sender", () => {
    const row = edgeRow(edge(side(), side({ reset: { count: 1, sent: 0, received: 1 } })));
    expect([row.retransmits, row.resets]).toEqual([2, 1]);
  });

  test("what neither end measured is not 0", () => {
    const row = edgeRow(edge(side({ write: null }), side()));
    expect([row.drops, row.errors, row.sent, row.wait]).toEqual([null, null, null, null]);
  });

  test("equal rows keep their order", () => {
    const rows = ["b", "a"].map((comm, i) => ({
      ...edgeRow(edge(side(), null, comm)),
      key: comm,
      connections: i,
    }));
    expect(rows.sort(compareEdges("-sent")).map((row) => row.key)).toEqual(["a", "b"]);
    expect(rows.sort(compareEdges("-connections")).map((row) => row.key)).toEqual(["a", "b"]);
    expect(rows.sort(compareEdges("connections")).map((row) => row.key)).toEqual(["b", "a"]);
  });

  test("the filter looks at both ends", () => {
    const found = edge(side(), null);
    for (const [filter, expected] of [
      ["CURL 443", true],
      ["10.0.0.1", true],
      ["nginx", false],
      ["", true],
    ] as const)
      expect(matchesEdge(found, filter, {})).toBe(expected);
    const client = { ...found.client, container: "c0" };
    const named = { c0: containerNames("shop", "web-0", "istio-proxy") };
    expect(matchesEdge({ ...found, client }, "web-0 istio c0", named)).toBe(true);
    expect(matchesEdge({ ...found, client }, "web-0", {})).toBe(false);
  });

  test("errors have names", () => {
    expect([errnoText("111"), errnoText("5")]).toEqual(["connection refused (111)", "errno 5"]);
  });
});

describe("a network task", () => {
  const FORM: TaskForm = {
    kind: "network",
    target: "netns",
    pids: [7],
    container: "",
    comm: "",
    cgroup: "/x",
    netns: " /run/netns/a b ",
    duration: "10",
    endless: false,
    frequency: "nonsense",
    wakers: true,
    timed: false,
    pod: "",
    selector: NO_SELECTOR,
    mode: "",
    minWait: "",
    maxWait: "",
    accessLogs: false,
    sockets: true,
    tls: false,
    duty: "100",
    bodies: false,
    rawPaths: false,
    samples: "slow",
  };

  test("has no rate and no wakers, and its command is net", () => {
    const result = specOf(FORM);
    expect(result).toEqual({
      ok: true,
      spec: {
        kind: "network",
        target: { network_namespace: "/run/netns/a b" },
        duration_s: 10,
        frequency_hz: 99,
        wakers: false,
      },
    });
    if (!result.ok) return;
    expect(asCli(result.spec)).toBe("profiler-agent net --netns '/run/netns/a b' --duration 10s");
    expect(targetText(result.spec.target)).toBe("network namespace a b");
    expect(targetText({ network_namespace: "/proc/7/ns/net" })).toBe("network namespace of pid 7");
  });

  test("may be timed", () => {
    const result = specOf({ ...FORM, timed: true });
    expect(result.ok && result.spec.timed).toBe(true);
    expect(result.ok && asCli(result.spec)).toMatch(/ --timed$/);
    const other = specOf({ ...FORM, kind: "off_cpu", target: "pids", pids: [7], timed: true });
    expect(other.ok && "timed" in other.spec).toBe(false);
  });

  test("a target without a flag has no command", () => {
    const result = specOf({ ...FORM, target: "cgroup" });
    expect(result.ok && asCli(result.spec)).toBeNull();
    const pids = specOf({ ...FORM, target: "pids" });
    expect(pids.ok && asCli(pids.spec)).toBe("profiler-agent net --pid 7 --duration 10s");
  });
});

test("what was not asked for is told with how to ask for it", () => {
  expect(missingText("needs the timed mode", "Call durations")).toBe(
    'Call durations: not recorded. Tick "Call durations" when starting a task.',
  );
  expect(missingText("no tracepoint", "Accept wait")).toBe("Accept wait: not available, no tracepoint");
});
