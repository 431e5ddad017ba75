import { describe, expect, it } from "vitest";
import type { RequestPlaintext, RequestSidecar, Target, Task } from "../api/types";
import { containerNames } from "./containers_testing";
import {
  compareOperations,
  compareSamples,
  countedSeconds,
  countText,
  edgeOf,
  errorsText,
  failing,
  matchesOperation,
  matchesSample,
  operationKey,
  operationName,
  operationRows,
  operationSeconds,
  protocolsOf,
  SHOWN_SAMPLES,
  sampleRows,
  samplesOf,
  sidecarsOf,
  slowest,
  statusText,
  tasksWithRequests,
  timingParts,
  totalText,
} from "./requests";
import { answer, EDGE, end, operation, sample, values } from "./requests_testing";

const ALL = { q: "", protocol: "", failingOnly: false, edge: "", named: {} };

describe("operations", () => {
  it("say how an estimated count came about", () => {
    expect(countText(operation())).toBeNull();
    const some = { count: 160, seen: 40 };
    expect(countText(operation({ ...some, count_interval: { low: 40, high: 375 } }))).toBe(
      "estimated from 40 that were seen: with 95 % confidence 40 to 375",
    );
    expect(countText(operation({ ...some, count_interval: { low: 40, high: null } }))).toContain(
      "40 or more, upper limit unknown",
    );
  });

  it("are summed over connections, which is said where a request passes through a sidecar", () => {
    const operations = [operation({ count: 1000 }), operation({ count: 1000, route: "/b" })];
    expect(totalText({ operations, sidecars: [] })).toBe("2,000 requests");
    const sidecars = [{} as RequestSidecar];
    expect(totalText({ operations, sidecars })).toBe(
      "2,000 requests on all hops (one through a sidecar counts on each)",
    );
  });

  it("have a key that stays and tells apart what is told apart", () => {
    const one = operationKey(operation());
    expect(one).toMatch(/^[0-9a-f]{16}$/);
    expect(operationKey(operation({ count: 99, errors: 3 }))).toBe(one);
    const others = [
      operation({ edge: { ...EDGE, id: "00fe" } }),
      operation({ edge: null }),
      operation({ protocol: "http2" }),
      operation({ tls: true }),
      operation({ method: null }),
      operation({ route: null }),
      operation({ route: "" }),
      operation({ other: true }),
      // What is unseen is not what is called so.
      operation({ method: "-" }),
    ].map(operationKey);
    expect(new Set([one, ...others]).size).toBe(others.length + 1);
  });

  it("are found by their source, and sorted by it", () => {
    const reported = operation({ source: "access_log" });
    expect(matchesOperation(reported, { ...ALL, q: "access log" })).toBe(true);
    expect(matchesOperation(operation(), { ...ALL, q: "access log" })).toBe(false);
    expect(matchesSample(sample({ source: "access_log" }), { ...ALL, q: "access log" })).toBe(true);
    const rows = operationRows(answer({ operations: [operation(), reported] }));
    expect(rows.toSorted(compareOperations("source"))[0]?.operation).toBe(reported);
  });

  it("inside TLS have the rate of the time in which it was read", () => {
    const window = { from_ns: 0, to_ns: 10e9 };
    const plaintext = { attached_percent: 25, attached_ns: 2.5e9 } as RequestPlaintext;
    const answer = { window, plaintext };
    expect(operationSeconds(answer, { tls: true })).toBe(2.5);
    expect(operationSeconds(answer, { tls: false })).toBe(10);
    expect(operationSeconds({ window, plaintext: null }, { tls: true })).toBe(10);
  });

  it("have a rate only where the time is known", () => {
    const counted = answer({ operations: [operation()] });
    expect(operationRows(counted)[0]?.rate).toBe(5);
    expect(countedSeconds({ window: null })).toBeNull();
    expect(operationRows({ ...counted, window: null })[0]?.rate).toBeNull();
    expect(operationRows({ ...counted, window: { from_ns: 5, to_ns: 5 } })[0]?.rate).toBeNull();
  });

  it("are named by what was seen", () => {
    expect(operationName(operation())).toBe("GET /cart/{n}");
    expect(operationName(operation({ method: null }))).toBe("/cart/{n}");
    expect(operationName(operation({ method: null, route: null }))).toBe("not seen");
    expect(operationName(operation({ other: true, method: null, route: null }))).toBe("other operations");
  });

  it("match when every word does", () => {
    const found = operation({ statuses: { 200: 9, 503: 1 }, errors: 1 });
    const by = (q: string) => matchesOperation(found, { ...ALL, q });
    expect(["", "cart", "SHOP 15001", "503", "http/1", "plain", "pid"].map(by)).toEqual([
      true,
      true,
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(matchesOperation(found, { ...ALL, protocol: "redis" })).toBe(false);
    expect(matchesOperation(found, { ...ALL, failingOnly: true })).toBe(true);
    expect(matchesOperation(operation(), { ...ALL, failingOnly: true })).toBe(false);
    expect([EDGE.id, "00fe"].map((edge) => matchesOperation(found, { ...ALL, edge }))).toEqual([true, false]);
    expect(matchesSample(sample({ edge: null }), { ...ALL, edge: EDGE.id })).toBe(false);
    const named = { c0: containerNames("shop", "web-0", "web") };
    const edge = { ...EDGE, client: { ...EDGE.client, container: "c0" } };
    expect(matchesOperation(operation({ edge }), { ...ALL, q: "shop/web-0/web", named })).toBe(true);
    expect(matchesSample(sample({ edge }), { ...ALL, q: "web-0", named })).toBe(true);
    expect(matchesSample(sample({ edge }), { ...ALL, q: "web-0" })).toBe(false);
  });

  it("sort by what is known, the unknown last from the top", () => {
    const rows = operationRows(
      answer({
        operations: [
          operation({ route: "/none", latency_ns: values() }),
          operation({ route: "/fast", latency_ns: values([10, 10, 1]) }),
          operation({ route: "/slow", latency_ns: values([90, 95, 1]) }),
        ],
      }),
    );
    const sorted = (sort: string) => rows.toSorted(compareOperations(sort)).map((row) => row.operation.route);
    expect(sorted("-p_last")).toEqual(["/slow", "/fast", "/none"]);
    expect(sorted("route")).toEqual(["/fast", "/none", "/slow"]);
    expect(sorted("-nothing-such")).toHaveLength(3);
  });

  it("say their errors by class", () => {
    expect(errorsText({ errors_by_class: { client: 3, server: 0, broken: 1 } })).toBe("3 × 4xx, 1 aborted");
    expect(errorsText(operation())).toBe("");
  });

  it("give the protocols by their requests", () => {
    const all = [
      operation({ protocol: "dns", count: 2 }),
      operation({ count: 1 }),
      operation({ protocol: "http1", count: 4 }),
    ];
    expect(protocolsOf(all)).toEqual(["http1", "dns"]);
  });
});

describe("samples", () => {
  it("keep their key while others come, also when two are alike", () => {
    const [a, b, c] = [sample(), sample(), sample({ begin_ns: 1e18 + 1e6 })];
    const before = sampleRows([a, b]).map(({ key }) => key);
    const after = sampleRows([a, b, c]).map(({ key }) => key);
    expect(after.slice(0, 2)).toEqual(before);
    expect(new Set(after).size).toBe(3);
  });

  it("belong to their operation, and the rest of an edge to its other", () => {
    const own = operation();
    const other = operation({ method: null, route: null, other: true });
    const rows = sampleRows([
      sample(),
      sample({ route: "/rare/{n}", stream: 2 }),
      sample({ route: "/rare/{n}", stream: 3, tls: true }),
      sample({ edge: null, route: "/rare/{n}", stream: 4 }),
    ]);
    const streams = (of: typeof own) =>
      samplesOf(of, rows, [own, other]).map(({ sample: found }) => found.stream);
    expect(streams(own)).toEqual([1]);
    expect(streams(other)).toEqual([2]);
  });

  it("are the slowest first, and the failing ones of them", () => {
    const rows = sampleRows(
      Array.from({ length: 20 }, (_, i) =>
        sample({ stream: i, duration_ns: i, outcome: i % 2 === 0 ? "ok" : "server_error" }),
      ),
    );
    expect(slowest(rows).map(({ sample: found }) => found.stream)).toEqual([19, 18, 17, 16, 15, 14, 13, 12]);
    expect(failing(rows)).toHaveLength(SHOWN_SAMPLES);
    expect(failing(rows).every(({ sample: found }) => found.stream % 2 === 1)).toBe(true);
    expect(rows.toSorted(compareSamples("duration"))[0]?.sample.stream).toBe(0);
  });

  it("are found by id, header and path; an unseen end is not a failure", () => {
    const found = sample({
      trace: { request_id: "6f-aa", trace_id: null, span_id: null },
      headers: [["user-agent", "curl/8"]],
      path: "/cart/17",
      outcome: "unknown",
    });
    for (const q of ["6f-AA", "curl", "/cart/17", "10.0.0.1:40000"])
      expect(matchesSample(found, { ...ALL, q })).toBe(true);
    expect(matchesSample(found, { ...ALL, q: "wget" })).toBe(false);
    expect(matchesSample(found, { ...ALL, failingOnly: true })).toBe(false);
    expect(statusText(sample({ status: null, outcome: "broken" }))).toBe("aborted");
    expect(statusText(sample({ protocol: "grpc", status: 14 }))).toBe("grpc 14");
  });

  it("have their time in parts from the beginning to the end, whatever was seen", () => {
    const kinds = (request_end_ns: number | null, first_byte_ns: number | null) => {
      const parts = timingParts({ duration_ns: 100, request_end_ns, first_byte_ns });
      expect(parts[0]?.from_ns).toBe(0);
      expect(parts.at(-1)?.to_ns).toBe(100);
      for (const [i, part] of parts.slice(1).entries()) expect(part.from_ns).toBe(parts[i]?.to_ns);
      return parts.map(({ kind, to_ns }) => `${kind} ${to_ns}`);
    };
    expect(kinds(20, 70)).toEqual(["sending 20", "waiting 70", "answer 100"]);
    expect(kinds(20, null)).toEqual(["sending 20", "unknown 100"]);
    expect(kinds(null, 70)).toEqual(["unknown 70", "answer 100"]);
    expect(kinds(null, null)).toEqual(["unknown 100"]);
    expect(kinds(80, 30)).toEqual(["sending 30", "answer 80", "answer 100"]);
    expect(kinds(0, 0)).toEqual(["answer 100"]);
    // Times beyond the end do not leave the bar.
    expect(kinds(20, 900)).toEqual(["sending 20", "waiting 100"]);
    expect(timingParts({ duration_ns: 0, request_end_ns: 0, first_byte_ns: 0 })).toEqual([]);
  });
});

it("sidecars are those that an edge touches, by pid and start", () => {
  const sidecar = (process: ReturnType<typeof end>) => ({ process }) as RequestSidecar;
  const all = [
    sidecar(end("envoy", 8)),
    sidecar({ ...end("envoy", 8), start_ticks: 1 }),
    sidecar(end("x", null)),
  ];
  expect(sidecarsOf(EDGE, all)).toEqual([all[0]]);
  expect(sidecarsOf(null, all)).toEqual([]);
  expect(sidecarsOf({ ...EDGE, server: end(null, null) }, all)).toEqual([]);
});

it("tasks that may have requests of an edge are of its target or of its processes", () => {
  const task = (id: number, target: Target, kind = "requests") =>
    ({ id: String(id), kind, target, created_at_ns: id }) as Task;
  const all = [
    task(1, { pids: [7] }),
    task(2, { pids: [9] }),
    task(3, { network_namespace: "/a" }),
    task(4, { network_namespace: "/b" }),
    task(5, { all: true }),
    task(6, { pids: [8] }, "network"),
    task(7, { container: "c0" }),
  ];
  const ids = (target: Target | null, edge = EDGE) =>
    tasksWithRequests(edge, target, all, {}).map(({ id }) => id);
  expect(ids(null)).toEqual(["5", "1"]);
  expect(ids({ network_namespace: "/b" })).toEqual(["5", "4", "1"]);
  expect(ids(null, { ...EDGE, server: { ...end(null, null), container: "c0" } })).toEqual(["7", "5", "1"]);
  const named = { c0: containerNames("shop", "web-0", "web") };
  const pods = [task(8, { pod: { name: "web-0" } }), task(9, { pod: { name: "db-0" } })];
  const inPod = { ...EDGE, client: { ...EDGE.client, container: "c0" } };
  expect(tasksWithRequests(inPod, null, pods, named).map(({ id }) => id)).toEqual(["8"]);
});

it("an edge is found in operations and in samples", () => {
  expect(edgeOf(answer({ operations: [operation()] }), EDGE.id)).toBe(EDGE);
  expect(edgeOf(answer({ samples: [sample({ edge: null }), sample()] }), EDGE.id)).toBe(EDGE);
  expect(edgeOf(answer(), EDGE.id)).toBeNull();
});
