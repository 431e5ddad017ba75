import { describe, expect, it } from "vitest";
import type { RequestSample, RequestSidecar, Task } from "../api/types";
import { aloneBecause, isLeg, legIndex, waterfallOf } from "./request_legs";
import { sampleRows } from "./requests";
import { end, sample } from "./requests_testing";

const BEGIN = 1e18;
const MS = 1e6;

const edge = (client: [string, number], server: [string, number], pods: readonly [number, number]) => ({
  id: `${client[1]}-${server[1]}`,
  client: { ...end(...client), network_namespace: pods[0] },
  server: { ...end(...server, 80), network_namespace: pods[1] },
  original_destination: null,
});

/** shop → its sidecar → the sidecar of app → app. */
const [A, B, C] = [
  edge(["shop", 7], ["envoy", 8], [1, 1]),
  edge(["envoy", 8], ["envoy", 9], [1, 2]),
  edge(["envoy", 9], ["app", 10], [2, 2]),
] as const;

function leg(
  of: typeof A,
  after: number,
  length: number,
  change: Partial<RequestSample> = {},
): RequestSample {
  return sample({
    edge: of,
    begin_ns: BEGIN + after * MS,
    duration_ns: length * MS,
    request_end_ns: 0.5 * MS,
    first_byte_ns: (length - 1) * MS,
    client: `10.0.0.1:${of.client.pid}`,
    pid: of.client.pid ?? 0,
    ...change,
  });
}

const id = (request_id: string | null, trace_id: string | null = null) => ({
  trace: { request_id, trace_id, span_id: null },
});

function passes(pid: number, from: string, to: string, kind: RequestSidecar["pairs"][number]["class"]) {
  return {
    process: end("envoy", pid),
    matched: [{ class: kind, in: { client: from, stream: 1 }, out: { client: to, stream: 1 } }],
    matched_left_out: 0,
  } as unknown as RequestSidecar;
}

function shown(
  samples: readonly RequestSample[],
  own: number,
  sidecars: readonly RequestSidecar[] = [],
  all = true,
) {
  const rows = sampleRows(samples);
  const way = waterfallOf(legIndex(rows, sidecars, all), rows[own]!);
  return {
    ...way,
    text: way.rows.map((row) => {
      const range = isLeg(row)
        ? [row.from_ns, row.from_ns + row.row.sample.duration_ns]
        : [row.from_ns, row.to_ns];
      const what = isLeg(row) ? `${row.row.sample.edge?.id} ${row.tied}` : row.title;
      return `${"  ".repeat(row.depth)}${what} ${range.map((ns) => ns / MS).join("-")}`;
    }),
  };
}

describe("waterfall of a request", () => {
  const ids = [leg(A, 0, 20, id("x")), leg(B, 2, 16, id("x")), leg(C, 4, 10, id("x"))];

  it("has all legs from wherever it is looked at, with what lies between them", () => {
    for (const own of [0, 1, 2])
      expect(shown(ids, own).text).toEqual([
        "7-8 null 0-20",
        "  There: inside the pod and the client's sidecar envoy 0-2",
        "  8-9 request_id 2-18",
        "    There: network and the server's sidecar envoy 2-4",
        "    9-10 request_id 4-14",
        "      Waiting: inside the pod and app 4.5-13",
        "    Back: network and the server's sidecar envoy 13-17",
        "  Back: inside the pod and the client's sidecar envoy 17-19",
      ]);
    expect(shown(ids, 0).whole_ns).toBe(20 * MS);
  });

  it("ties by a sidecar's pair, and not by one that order decided", () => {
    const plain = [leg(A, 0, 20), leg(B, 2, 16)];
    const [from, to] = ["10.0.0.1:7", "10.0.0.1:8"];
    expect(shown(plain, 1, [passes(8, from, to, "fingerprint")]).legs.map(({ tied }) => tied)).toEqual([
      null,
      "fingerprint",
    ]);
    expect(shown(plain, 1, [passes(8, from, to, "order")]).legs).toHaveLength(1);
    // The pair of another process.
    expect(shown(plain, 1, [passes(9, from, to, "fingerprint")]).legs).toHaveLength(1);
  });

  it("does not guess: an id has to lead out of the process that the request went into, while it was open", () => {
    expect(shown([leg(A, 0, 20, id("x")), leg(C, 4, 10, id("x"))], 0).legs).toHaveLength(1);
    expect(shown([leg(A, 0, 20, id("x")), leg(B, 21, 5, id("x"))], 0).legs).toHaveLength(1);
    const twice = [leg(A, 0, 20, id("x")), leg(A, 1, 20, id("x")), leg(B, 2, 16, id("x"))];
    expect(shown(twice, 2).legs).toHaveLength(1);
  });

  it("takes every try of one request", () => {
    const tries = [leg(A, 0, 20, id("x")), leg(B, 2, 5, id("x")), leg(B, 8, 5, id("x"))];
    expect(shown(tries, 0).legs.map(({ depth, from_ns }) => [depth, from_ns / MS])).toEqual([
      [0, 0],
      [1, 2],
      [1, 8],
    ]);
  });

  it("counts no time twice where several went out for one", () => {
    const two = [leg(A, 0, 20, id("x")), leg(B, 2, 5, id("x")), leg(B, 8, 4, id("x"))];
    expect(shown(two, 0).text).toEqual([
      "7-8 null 0-20",
      "  There: inside the pod and the client's sidecar envoy 0-2",
      "  8-9 request_id 2-7",
      "    Waiting: network and envoy 2.5-6",
      "  Between: inside the pod and the client's sidecar envoy 7-8",
      "  8-9 request_id 8-12",
      "    Waiting: network and envoy 8.5-11",
      "  Back: inside the pod and the client's sidecar envoy 11-19",
    ]);
  });

  it("trusts a trace only where no request is missing", () => {
    const traced = [leg(A, 0, 20, id(null, "t")), leg(B, 2, 16, id(null, "t"))];
    expect(shown(traced, 0).legs).toHaveLength(2);
    expect(shown(traced, 0, [], false).legs).toHaveLength(1);
  });

  it("ends although an id is everywhere", () => {
    const many = Array.from({ length: 5000 }, (_, i) => leg(A, i, 20, id("same")));
    expect(shown(many, 0).legs).toHaveLength(1);
  });

  it("says only what a server's socket saw as inside of the process", () => {
    const inside = [leg(A, 0, 20, { ...id("x"), seen_by: "server" }), leg(B, 2, 16, id("x"))];
    expect(shown(inside, 0).text[1]).toBe("  There: in the client's sidecar envoy 0-2");
  });
});

describe("a leg that is alone", () => {
  const task = (samples: "slow" | "all") => ({ requests: { samples } }) as unknown as Task;

  it("asks for all samples where they would help", () => {
    const found = aloneBecause(leg(A, 0, 1), { sidecars: [passes(8, "a", "b", "order")] }, task("slow"));
    expect(found.keepAll).toBe(true);
    expect(found.reasons.join()).toMatch(/keeps only the slowest.*no x-request-id/);
  });

  it("asks for the sidecar where nothing passes requests on", () => {
    const found = aloneBecause(leg(A, 0, 1), { sidecars: [] }, task("slow"));
    expect(found.keepAll).toBe(false);
    expect(found.reasons.join()).toMatch(/Watch the sidecar/);
  });

  it("says that a pair is known whose sample is not there", () => {
    const sidecars = [passes(8, "10.0.0.1:7", "b", "request_id")];
    expect(aloneBecause(leg(A, 0, 1), { sidecars }, task("all")).reasons).toEqual([
      "envoy passed it on, but the sample of that had no room in the task.",
    ]);
  });

  it("says that order is not evidence", () => {
    const sidecars = [passes(8, "10.0.0.1:7", "b", "order")];
    expect(aloneBecause(leg(A, 0, 1), { sidecars }, task("all")).reasons.join()).toMatch(/fit equally well/);
  });
});
