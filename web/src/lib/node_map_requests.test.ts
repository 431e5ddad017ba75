import { expect, test } from "vitest";
import type { RequestOperation, TaskRequests } from "../api/types";
import { countedRequests, errorText, flowRequests, p95Text } from "./node_map_requests";

const S = 1e9;

function operation(edge: string, method: string, change: Partial<RequestOperation>): RequestOperation {
  return {
    edge: { id: edge },
    protocol: "http1",
    tls: false,
    method,
    route: "/",
    other: false,
    count: 0,
    errors: 0,
    latency_ns: { buckets: [] },
    ...change,
  } as unknown as RequestOperation;
}

const answer = (seconds: number, operations: RequestOperation[]) =>
  countedRequests({
    window: { from_ns: 0, to_ns: seconds * S },
    plaintext: null,
    operations,
  } as unknown as TaskRequests);

const buckets = (...all: [number, number, number][]) => ({ buckets: all }) as never;

test("operations of all edges of a flow are added up", () => {
  const of = flowRequests(
    answer(10, [
      operation("a", "GET", { count: 100, errors: 2, latency_ns: buckets([1, 2, 90], [8, 9, 10]) }),
      operation("b", "GET", { count: 50, protocol: "grpc", tls: true, latency_ns: buckets([1, 2, 50]) }),
      operation("c", "GET", { count: 7 }),
    ]),
    null,
  );
  expect(of([{ id: "a" }, { id: "b" }])).toEqual({
    perSecond: 15,
    count: 150,
    errors: 2,
    p95: 9,
    protocols: ["HTTP/1", "gRPC"],
    tls: true,
  });
  expect(of([{ id: "c" }])).toMatchObject({ perSecond: 0.7, p95: null });
  expect(of([{ id: "nothing is known of it" }])).toBeNull();
});

test("with an earlier answer only what came since is counted", () => {
  const before = answer(10, [
    operation("a", "GET", { count: 100, errors: 9, latency_ns: buckets([1, 2, 10], [80, 90, 90]) }),
  ]);
  const now = answer(30, [
    operation("a", "GET", { count: 140, errors: 9, latency_ns: buckets([1, 2, 50], [80, 90, 90]) }),
    operation("a", "POST", { count: 20, errors: 1, latency_ns: buckets([4, 5, 20]) }),
  ]);
  expect(flowRequests(now, before)([{ id: "a" }])).toMatchObject({
    perSecond: 60 / 20,
    count: 60,
    errors: 1,
    p95: 5,
  });
});

test("a rate of unknown time is unknown", () => {
  const unknown = { ...answer(0, [operation("a", "GET", { count: 3 })]), window: null };
  expect(flowRequests(unknown, null)([{ id: "a" }])?.perSecond).toBeNull();
});

test("shares of errors are told from none, and a time that is not known is said", () => {
  expect(errorText({ count: 10_000, errors: 1 })).toBe("< 0.1 % errors");
  expect(errorText({ count: 200, errors: 3 })).toBe("1.5 % errors");
  expect(errorText({ count: 200, errors: 100 })).toBe("50 % errors");
  expect(errorText({ count: 0, errors: 0 })).toBe("no errors");
  expect(p95Text({ p95: null })).toBe("p95 not known");
});
