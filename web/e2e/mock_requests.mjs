// Made-up requests for the stand-in: a checkout behind a sidecar with TLS, databases, and a client that
// asks for things that it should not.

import { asLogged } from "./mock_access_logs.mjs";
import { edgeTable } from "./mock_edges.mjs";
import { namesOf } from "./mock_names.mjs";
import { spread, valuesOf } from "./mock_values.mjs";
import { random } from "./synthetic.mjs";

const BODY = {
  encoding: "utf-8",
  data: '{\n  "cart": [1, 2, 3],\n  "note": "<b>as it came</b>"\n}',
  cut: false,
};

const scaled = (values, factor) => values.map((value) => Math.max(0, Math.round(value * factor)));

/** The pod of the second sidecar, another one than the first's. */
const SECOND_POD = [4_026_532_340, [5150, 5161]];

function edgeOf({ id, client, server, original_destination }) {
  const [network_namespace, pids] = SECOND_POD;
  const placed = (end) => (pids.includes(end.pid) ? { ...end, network_namespace } : end);
  return { id, client: placed(client), server: placed(server), original_destination };
}

/** `seen`: which ends saw it. */
function operation(next, edge, protocol, method, route, more) {
  const { count, middle, errors = [0, 0, 0], statuses, seen = "client", unknown = 0, ...rest } = more;
  const latency = spread(next, Math.max(1, count - unknown), middle);
  const timings = (factor) => ({
    count,
    latency_ns: valuesOf(scaled(latency, factor)),
    first_byte_ns: valuesOf(scaled(latency, factor * 0.8)),
  });
  const client = seen === "server" ? null : timings(1);
  const server = seen === "client" ? null : timings(0.82);
  const [wrong, failed, broken] = errors;
  return {
    edge,
    protocol,
    tls: false,
    source: rest.tls ? "tls" : "sockets",
    method,
    route,
    other: false,
    count,
    seen: count,
    count_interval: null,
    errors: wrong + failed + broken,
    errors_by_class: { client: wrong, server: failed, broken },
    unknown,
    counted_from: seen,
    statuses,
    latency_ns: (client ?? server).latency_ns,
    latency_from: client === null ? "server" : "client",
    client,
    server,
    request_bytes: valuesOf(spread(next, count, 180)),
    response_bytes: valuesOf(spread(next, count, 2400)),
    messages: null,
    ...rest,
  };
}

function operations(edges, scale) {
  const next = random(31);
  const [asked, upstream, , ...others] = edges;
  const local = others.find(({ server }) => server.port === 8080 && server.comm === "checkout") ?? upstream;
  const database = edges.find(({ server }) => server.port === 3306);
  const cache = edges.find(({ server }) => server.port === 6379);
  const names = edges.find(({ server }) => server.port === 53);
  const outside = edges.find(({ server }) => server.port === 9090);
  const of = (edge, ...given) => operation(next, edgeOf(edge), ...given);
  const n = (share) => Math.max(3, Math.round(scale * share));
  const ok = (count, wrong = {}) => ({
    200: count - Object.values(wrong).reduce((a, b) => a + b, 0),
    ...wrong,
  });
  return [
    of(asked, "http1", "GET", "/cart/{n}", {
      count: n(40),
      middle: 3.1e6,
      seen: "both",
      statuses: ok(n(40), { 404: 6, 503: 2 }),
      errors: [6, 2, 1],
      unknown: 2,
    }),
    of(upstream, "http2", "POST", "/api/v1/checkout/{uuid}/confirm", {
      count: n(12),
      middle: 14e6,
      seen: "both",
      tls: true,
      statuses: ok(n(12), { 500: 4, 504: 1 }),
      errors: [0, 5, 0],
    }),
    of(upstream, "grpc", "POST", "/shop.Inventory/Watch", {
      count: n(2),
      middle: 2.4e9,
      tls: true,
      statuses: { "grpc 0": n(2) - 1, "grpc 14": 1 },
      errors: [0, 1, 0],
      messages: { streams: n(2), to_server: n(2), to_client: n(900) },
    }),
    of(local, "http1", "GET", "/cart/{n}", {
      count: n(40),
      middle: 1.9e6,
      seen: "both",
      statuses: ok(n(40), { 404: 6 }),
      errors: [6, 0, 0],
    }),
    of(database, "mysql", "SELECT", "select * from orders where customer = ? and state in (?)", {
      count: n(31),
      middle: 640e3,
      statuses: { ok: n(31) - 1, 1205: 1 },
      errors: [0, 1, 0],
    }),
    of(cache, "redis", "GET", "get ?", { count: n(88), middle: 120e3, statuses: { ok: n(88) } }),
    of(cache, "redis", "HGETALL", "hgetall ?", { count: n(9), middle: 210e3, statuses: { ok: n(9) } }),
    of(names, "dns", "A", "checkout.shop.svc.cluster.local", {
      count: n(3),
      middle: 900e3,
      statuses: { NOERROR: n(3) - 2, NXDOMAIN: 2 },
      errors: [2, 0, 0],
    }),
    of(outside, "http1", "GET", "/metrics", {
      count: 3,
      middle: 42e6,
      seen: "server",
      statuses: { 200: 3 },
    }),
    of(upstream, "http2", null, null, {
      count: 5,
      middle: 8e6,
      tls: true,
      seen: "server",
      statuses: {},
      unknown: 2,
    }),
    of(asked, "http1", null, null, { count: 17, middle: 5e6, statuses: ok(17), other: true }),
    operation(next, null, "http1", null, null, { count: 4, middle: 4e6, statuses: ok(4), other: true }),
  ];
}

/** What the kernel counted: all requests of HTTP without TLS, by edge. How calls of gRPC went it does not know. */
function countedOf(made) {
  const byEdge = new Map();
  const protocols = { http1: "http1", http2: "http2", grpc: "http2" };
  for (const operation of made) {
    const { edge, tls, count, latency_ns } = operation;
    const protocol = protocols[operation.protocol];
    if (edge === null || protocol === undefined || tls) continue;
    const isCall = operation.protocol === "grpc";
    const errors = isCall ? 0 : operation.errors;
    const unknown = isCall ? count : operation.unknown;
    const errors_by_class = isCall ? { client: 0, server: 0, broken: 0 } : operation.errors_by_class;
    const key = `${edge.id} ${protocol}`;
    const known = byEdge.get(key);
    if (known === undefined)
      byEdge.set(key, {
        edge,
        protocol,
        count,
        exact: byEdge.size !== 1,
        errors,
        errors_by_class,
        unknown,
        latency_ns,
        counted_from: "client",
      });
    else {
      known.count += count;
      known.errors += errors;
      known.unknown += unknown;
      const [one, other] = [known.errors_by_class, errors_by_class];
      known.errors_by_class = {
        client: one.client + other.client,
        server: one.server + other.server,
        broken: one.broken + other.broken,
      };
    }
  }
  return [...byEdge.values()].sort((a, b) => b.count - a.count);
}

/** Spans of the whole and of the edges, with a bad moment in the middle. Edges beyond the room have none. */
function overTime(made, window) {
  const covered = window.to_ns - window.from_ns;
  const width_ns = Math.max(1e9, 2 ** Math.ceil(Math.log2(covered / 64e9)) * 1e9);
  const number = Math.max(1, Math.round(covered / width_ns));
  const spansOf = (operations, seed) => {
    const next = random(seed);
    const total = operations.reduce((sum, { count }) => sum + count, 0);
    const wrong = operations.reduce((sum, { errors }) => sum + errors, 0);
    const each = Array.from({ length: number }, (_, i) => (i === number >> 1 ? 3 : 1) * (0.8 + next() * 0.4));
    const times = (ns) => each.map((weight) => Math.round(ns * weight));
    return {
      count: each.map((weight) => Math.round((total / number) * weight)),
      errors: each.map((weight) => (weight > 2 ? wrong : 0)),
      p50_ns: times(2.1e6),
      p95_ns: times(6.4e6),
      p99_ns: times(9.8e6),
    };
  };
  const ids = [...new Set(made.map(({ edge }) => edge?.id ?? null))].filter((id) => id !== null).slice(0, 4);
  return {
    from_ns: window.from_ns,
    width_ns,
    all: spansOf(made, 91),
    edges: Object.fromEntries(
      ids.map((id, i) => [
        id,
        spansOf(
          made.filter(({ edge }) => edge?.id === id),
          i,
        ),
      ]),
    ),
  };
}

const OUTCOMES = { 4: "client_error", 5: "server_error" };

function sampleOf(next, from, i, begin, all) {
  const { edge, protocol, tls, method, route } = from;
  const duration = Math.round((from.latency_ns.max ?? 1e6) * (1 - i * 0.11 * next()));
  const failing = Object.keys(from.statuses).filter((status) => /^[45]\d\d$/.test(status));
  const status = failing.length > 0 && i % 3 === 1 ? failing[i % failing.length] : "200";
  const outcome = OUTCOMES[status[0]] ?? "ok";
  const isHttp = protocol.startsWith("http");
  const first = Math.round(duration * (0.5 + 0.4 * next()));
  const hex = (digits) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join("");
  return {
    edge,
    protocol,
    tls,
    source: from.source,
    method,
    route,
    path:
      isHttp && route !== null && all ? `${route.replaceAll(/\{\w+\}/g, String(7000 + i))}?token=***` : null,
    authority: isHttp ? "checkout.shop:8080" : null,
    status: isHttp ? Number(status) : protocol === "grpc" ? 0 : "ok",
    outcome: isHttp ? outcome : "ok",
    begin_ns: begin + i * 37_000_000,
    duration_ns: duration,
    request_end_ns: i % 4 === 3 ? null : Math.round(first * 0.2 * next()),
    first_byte_ns: i % 5 === 4 ? null : first,
    request_bytes: i % 4 === 2 ? null : 140 + i,
    response_bytes: i % 4 === 2 ? null : 2200 + i * 31,
    messages: protocol === "grpc" ? [1, 900] : null,
    request_body: isHttp && all && method === "POST" ? BODY : null,
    response_body: isHttp && all ? { ...BODY, cut: true } : null,
    trace: {
      request_id: isHttp ? `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` : null,
      trace_id: isHttp && i % 2 === 0 ? hex(32) : null,
      span_id: isHttp && i % 2 === 0 ? hex(16) : null,
    },
    headers: isHttp
      ? [
          ["user-agent", "load-gen/2.1"],
          ["content-type", "application/json"],
          ["x-envoy-upstream-service-time", String(Math.round(duration / 1e6))],
        ]
      : [],
    stream: i,
    seen_by: from.latency_from,
    pid: edge?.client.pid ?? 4242,
    tid: i % 2 === 0 ? 4251 : null,
    client: `${edge?.client.address ?? "10.1.0.4"}:${40_000 + i}`,
    kept_as: outcome === "ok" ? "slow" : "failed",
    rule: null,
  };
}

/** One slow request on its way through two sidecars to the service. */
function wayOf(edges, begin) {
  const hop = (client, server) =>
    edgeOf(edges.find((edge) => edge.client.pid === client && edge.server.pid === server));
  const leg = (edge, after, [duration, sent, first], more) => ({
    ...sampleOf(random(5), operation(random(3), edge, "http1", "GET", "/cart/{n}", LEG), 0, begin, true),
    begin_ns: begin + after * 1e6,
    duration_ns: duration * 1e6,
    request_end_ns: sent * 1e6,
    first_byte_ns: first * 1e6,
    stream: 900,
    kept_as: "all",
    path: "/cart/7711?token=***",
    ...more,
  });
  const trace = { request_id: "5b1c77e0-0000-4000-a000-00000000beef", trace_id: null, span_id: null };
  return [
    leg(hop(4100, 4242), 0, [48.2, 0.2, 46.1], { client: "10.1.0.4:50900", tid: 4100 }),
    leg(hop(4242, 5150), 1.4, [43.9, 0.3, 42.6], { client: "10.1.0.4:50901", tid: 4251, trace }),
    leg(hop(5150, 5161), 3.1, [39.5, 0.2, 38.9], { client: "127.0.0.6:50902", tid: null, trace }),
  ];
}

const LEG = { count: 3, middle: 3e6, statuses: { 200: 3 } };

/** The pair of it in the first sidecar, which no id ties. */
const WAY_PAIR = {
  class: "fingerprint",
  in: { client: "10.1.0.4:50900", stream: 900 },
  out: { client: "10.1.0.4:50901", stream: 900 },
};

function sidecar(process, next, pairs) {
  const upstream = spread(next, pairs, 11e6);
  const times = (number) => {
    const part = (middle, count = number) => valuesOf(spread(next, count, middle));
    return {
      inside_ns: part(820e3),
      read_wait_ns: part(310e3, Math.round(number * 0.8)),
      to_upstream_ns: part(260e3),
      upstream_ns: valuesOf(upstream.slice(0, number)),
      answer_wait_ns: part(190e3, Math.round(number * 0.8)),
      to_client_ns: part(140e3),
    };
  };
  const shares = [
    ["request_id", 0.71],
    ["fingerprint", 0.17],
    ["order", 0.12],
  ];
  return {
    process: { ...process, port: null },
    requests_in: pairs + 31,
    requests_out: pairs + 4,
    mean_ns: 874_000,
    unmatched_in: 31,
    unmatched_out: 4,
    forgotten: 2,
    pairs: shares.map(([name, share]) => ({
      class: name,
      pairs: Math.round(pairs * share),
      share,
      times: times(Math.round(pairs * share)),
    })),
    times: times(Math.round(pairs * 0.88)),
    upstream_header: {
      pairs: Math.round(pairs * 0.9),
      header_ms: Math.round(pairs * 0.9 * 11),
      measured_ns: Math.round(pairs * 0.9 * 11.6e6),
      agreeing: Math.round(pairs * 0.87),
    },
    matched: [],
    matched_left_out: 0,
  };
}

/** One that can only be told apart by order, and one that asks several at once. */
function poorSidecar(process, next) {
  const found = sidecar(process, next, 40);
  return {
    ...found,
    mean_ns: null,
    times: null,
    pairs: [{ ...found.pairs[2], pairs: 40, share: 1 }],
    upstream_header: null,
    forgotten: 0,
  };
}

const NOTHING = {
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
};

/** TLS libraries of a task: one that is read, one that is not. */
function plaintextOf(seconds) {
  const probe = (name, address, kind, result) => ({
    function: name,
    result,
    address,
    class: kind,
    price_ns: kind === "stepped" ? 9800 : 725,
  });
  return {
    files: [
      {
        path: "/usr/local/bin/envoy",
        build_id: "3c1f9c0f2fd0d6f7a9a9f7c2e1b04d6b8f0a4a52",
        library: "BoringSSL",
        found_by: "error constants",
        probes: [
          probe("SSL_read", "0x2f3a1c0", "push", false),
          probe("SSL_read", "0x2f3a27e", "jump", true),
          probe("SSL_write", "0x2f3a3f0", "push", false),
        ],
        processes: 1,
        reasons: [],
      },
      {
        path: "/app/checkout<script>",
        build_id: null,
        library: null,
        found_by: null,
        probes: [],
        processes: 0,
        reasons: ["rustls is linked in, and read only by its symbols, which the file has not"],
      },
    ],
    unavailable: null,
    attached_percent: 31,
    attached_ns: Math.max(1, seconds) * 310_000_000,
    limited_to_percent: 5,
    hits: 412_000 + seconds * 1000,
    stepped_hits: 0,
    program_ns_per_hit: null,
    cost_ns: 512_000_000,
    pieces: 91_000,
    unbound_written_bytes: 0,
    unbound_read_bytes: 0,
    unreadable: 0,
  };
}

/** Where the time of requests to a sidecar goes. */
function latencyOf(process, behind) {
  const part = (place, of, mean_ns) => ({
    place,
    process: of,
    mean_ns,
    p50_ns: mean_ns,
    p95_ns: mean_ns * 2,
    share_percent: mean_ns / 14_200,
  });
  const own = { pid: process.pid, name: process.comm };
  const server = { pid: behind.pid, name: behind.comm };
  return [
    {
      process: own,
      requests: 12_000,
      mean_ns: 1_420_000,
      p50_ns: 1_310_000,
      p95_ns: 2_880_000,
      p99_ns: 4_030_000,
      parts: [
        part("inbound_queue", own, 40_000),
        part("request_path", own, 310_000),
        part("server", server, 960_000),
        part("response_queue", own, 30_000),
        part("response_path", own, 80_000),
      ],
      text: `Requests to ${own.name} (${own.pid}) take 1.42 ms on average (p95 2.88 ms): 960 us in ${server.name}, 460 us in ${own.name}.`,
    },
  ];
}

/** No Envoy has reported any. */
const NO_LOGS = { envoys: [], seen_twice: 0, without_entry: 0, left_out: 0, of_other_envoys: 0 };

/** `GET /tasks/ID/requests` after so many seconds. Without `trouble` nothing was lost. */
export function requestsOf(task, seconds) {
  const trouble = task.requests?.tls === true;
  const asked = task.requests?.source ?? ["sockets"];
  const window = {
    from_ns: task.started_at_ns,
    to_ns: task.ended_at_ns ?? Date.now() * 1e6,
  };
  const containers = namesOf(edgeTable(20).edges.flatMap(({ client, server }) => [client, server]));
  const base = { state: task.state, reason: task.reason, window, damaged: false, containers };
  if (task.requests_seen === 0)
    return {
      ...base,
      over_time: null,
      operations: [],
      counted: [],
      samples: [],
      samples_left_out: 0,
      tls: [],
      plaintext: null,
      latency: [],
      sidecars: [],
      access_logs: asked.includes("access_log") ? NO_LOGS : null,
      unbound_bytes: 0,
      lost: 0,
      sampled_one_of: 1,
      connections_by_protocol: {},
      incomplete: NOTHING,
    };
  const { edges } = edgeTable(20);
  const next = random(77);
  const made = operations(edges, 4 + seconds);
  const kept = made
    .slice(0, 10)
    .flatMap((each, at) =>
      Array.from({ length: at < 4 ? 12 : 4 }, (_, i) =>
        sampleOf(next, each, i, window.from_ns + at * 1e8, task.requests?.raw_paths === true),
      ),
    );
  const all = task.requests?.samples === "all";
  if (all) kept.push(...wayOf(edges, window.from_ns + 2e9));
  const [first, upstream] = edges;
  const answer = {
    ...base,
    over_time: overTime(made, window),
    operations: made.sort((a, b) => b.count - a.count),
    counted: countedOf(made),
    samples: kept.sort((a, b) => a.begin_ns + a.duration_ns - b.begin_ns - b.duration_ns),
    samples_left_out: trouble ? 12 : 0,
    tls: [
      {
        edge: edgeOf(upstream),
        server_name: "outbound_.8080_._.checkout.shop.svc.cluster.local",
        alpn_offered: ["istio-peer-exchange", "h2"],
        alpn_chosen: null,
        version: "1.3",
        connections: 12,
      },
      {
        edge: edgeOf(edges.find(({ server }) => server.port === 15_012) ?? upstream),
        server_name: "istiod.istio-system.svc",
        alpn_offered: ["h2"],
        alpn_chosen: "h2",
        version: "1.2",
        connections: 1,
      },
    ],
    plaintext: trouble ? plaintextOf(seconds) : null,
    latency: latencyOf(first.server, upstream.server),
    access_logs: null,
    sidecars: [
      { ...sidecar(first.server, next, 360 + seconds * 20), matched: all ? [WAY_PAIR] : [] },
      poorSidecar(upstream.server, next),
    ],
    unbound_bytes: trouble ? 48_200 : 0,
    lost: trouble ? 37 : 0,
    sampled_one_of: trouble ? 4 : 1,
    connections_by_protocol: { http1: 41, http2: 12, mysql: 4, redis: 8, unknown: trouble ? 3 : 0 },
    incomplete: trouble
      ? {
          ...NOTHING,
          gaps: 21,
          gap_connections: 3,
          undecoded_connections: 3,
          undecoded_bytes: 310_000,
          withdrawn_guesses: 2,
          unknown_direction: 1,
          other_operations: 17,
          other_edges: 4,
        }
      : NOTHING,
  };
  return asked.includes("access_log") ? asLogged(answer, task.requests, seconds) : answer;
}
