// Requests for tests: as little as an answer may have, to be changed where a test looks.

import type {
  EdgeEnd,
  LoggedRequests,
  LoggingEnvoy,
  RequestCount,
  RequestEdge,
  RequestOperation,
  RequestSample,
  RequestValues,
  TaskRequests,
} from "../api/types";

/** Values of a bucket each, in order: least, greatest, how many. */
export function values(...buckets: readonly (readonly [number, number, number])[]): RequestValues {
  const count = buckets.reduce((sum, [, , number]) => sum + number, 0);
  const at = (share: number): readonly [number, number] | null => {
    let seen = 0;
    const found = buckets.find(([, , number]) => {
      seen += number;
      return seen >= Math.max(1, Math.ceil(count * share));
    });
    return found === undefined ? null : [found[0], found[1]];
  };
  const bounds = { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) };
  return {
    count,
    sum: buckets.reduce((sum, [from, , number]) => sum + from * number, 0),
    mean: buckets[0]?.[0] ?? null,
    min: buckets[0]?.[0] ?? null,
    max: buckets.at(-1)?.[1] ?? null,
    p50: bounds.p50?.[1] ?? null,
    p90: bounds.p90?.[1] ?? null,
    p99: bounds.p99?.[1] ?? null,
    p999: bounds.p999?.[1] ?? null,
    bounds,
    buckets,
  };
}

export function end(comm: string | null, pid: number | null, port: number | null = null): EdgeEnd {
  return {
    pid,
    start_ticks: pid === null ? null : pid * 10,
    comm,
    program_kind: comm === "envoy" ? "proxy" : null,
    container: null,
    name: null,
    address: "10.0.0.1",
    network_namespace: null,
    port,
  };
}

export const EDGE: RequestEdge = {
  id: "00ff",
  client: end("shop", 7),
  server: end("envoy", 8, 15001),
  original_destination: null,
};

export function operation(change: Partial<RequestOperation> = {}): RequestOperation {
  return {
    edge: EDGE,
    protocol: "http1",
    tls: false,
    source: "sockets",
    method: "GET",
    route: "/cart/{n}",
    other: false,
    count: 10,
    seen: 10,
    count_interval: null,
    errors: 0,
    errors_by_class: { client: 0, server: 0, broken: 0 },
    unknown: 0,
    counted_from: "client",
    statuses: { 200: 10 },
    latency_ns: values([1_000_000, 1_065_535, 10]),
    latency_from: "client",
    client: null,
    server: null,
    request_bytes: values(),
    response_bytes: values(),
    request_sizes_unknown: 0,
    response_sizes_unknown: 0,
    messages: null,
    ...change,
  };
}

/** What the kernel counted on an edge with this id. */
export function counted(id: string, count: number, exact = true): RequestCount {
  return {
    edge: { ...EDGE, id },
    protocol: "http1",
    count,
    exact,
    errors: 0,
    errors_by_class: { client: 0, server: 0, broken: 0 },
    unknown: 0,
    latency_ns: values([1_000_000, 1_065_535, count]),
    counted_from: "client",
  };
}

export function sample(change: Partial<RequestSample> = {}): RequestSample {
  return {
    edge: EDGE,
    protocol: "http1",
    tls: false,
    source: "sockets",
    method: "GET",
    route: "/cart/{n}",
    path: null,
    authority: null,
    status: 200,
    outcome: "ok",
    begin_ns: 1e18,
    duration_ns: 1000,
    request_end_ns: null,
    first_byte_ns: null,
    request_bytes: null,
    response_bytes: null,
    messages: null,
    request_body: null,
    response_body: null,
    trace: { request_id: null, trace_id: null, span_id: null },
    headers: [],
    stream: 1,
    seen_by: "client",
    pid: 7,
    tid: null,
    client: "10.0.0.1:40000",
    kept_as: "slow",
    rule: null,
    ...change,
  };
}

export function answer(change: Partial<TaskRequests> = {}): TaskRequests {
  return {
    state: "finished",
    reason: null,
    window: { from_ns: 1e18, to_ns: 1e18 + 2e9 },
    operations: [],
    counted: [],
    samples: [],
    samples_left_out: 0,
    tls: [],
    plaintext: null,
    latency: [],
    over_time: null,
    sidecars: [],
    access_logs: null,
    unbound_bytes: 0,
    lost: 0,
    sampled_one_of: 1,
    connections_by_protocol: {},
    incomplete: {
      gaps: 0,
      gap_connections: 0,
      undecoded_connections: 0,
      undecoded_bytes: 0,
      withdrawn_guesses: 0,
      unknown_direction: 0,
      refused_connections: 0,
      refused_bytes: 0,
      other_operations: 0,
      other_edges: 0,
      under_way: 0,
    },
    damaged: false,
    containers: {},
    ...change,
  };
}

/** An Envoy that reports requests by its access log. */
export function loggingEnvoy(change: Partial<LoggingEnvoy> = {}): LoggingEnvoy {
  return {
    process: end("envoy", 8),
    claimed: false,
    node_id: "",
    requests: 1000,
    connections: 0,
    retried: 0,
    retries: 0,
    missing: 0,
    joined: null,
    phases: [],
    flags: [],
    details: [],
    tls: [],
    upstreams: [],
    of_other_upstreams: 0,
    ...change,
  };
}

/** What Envoys report, and nothing that was left out. */
export function logged(...envoys: readonly LoggingEnvoy[]): LoggedRequests {
  return { envoys, seen_twice: 0, without_entry: 0, left_out: 0, of_other_envoys: 0 };
}
