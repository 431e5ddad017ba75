// Made-up edges for the stand-in: a small mesh with trouble, an outside peer, and a hostile name.

import { CHECKOUT, namesOf, SIDECAR } from "./mock_names.mjs";

const BOUNDS_US = [
  0, 10, 50, 100, 500, 1000, 1200, 1500, 1700, 2000, 2500, 3000, 5000, 7000, 10000, 13000, 16000, 20000,
  25000, 30000, 35000, 40000, 45000, 50000, 70000, 100000, 150000, 200000, 300000, 500000, 1000000, 2000000,
  3000000, 5000000,
];

function histogram(count, peak, unit) {
  const counts = Array.from({ length: BOUNDS_US.length + 1 }, (_, i) =>
    Math.max(
      0,
      Math.round((count / 3) * Math.exp(-((i - peak) ** 2) / 3) - (Math.abs(i - peak) > 4 ? 1 : 0)),
    ),
  );
  return { bounds: BOUNDS_US.map((bound) => bound * unit), counts };
}

function times(count, peak) {
  const found = histogram(count, peak, 1000);
  const all = found.counts.reduce((sum, value) => sum + value, 0);
  return { count: all, time_ns: all * BOUNDS_US[peak] * 900, histogram: found };
}

function side(scale, { sent, received, drops = {}, errors = {}, client = true, retransmits = 0 }) {
  const calls = Math.round(scale * 40);
  const rtt = histogram(calls, 4, 1);
  const sum = (counts) => Object.values(counts).reduce((all, value) => all + value, 0);
  return {
    connections: { count: Math.ceil(scale), open: Math.ceil(scale / 4) },
    write: { count: calls, bytes: Math.round(sent * scale), time_ns: null, histogram: null },
    read: { count: calls + 3, bytes: Math.round(received * scale), time_ns: null, histogram: null },
    connect: client
      ? { ...times(scale, 3), failed: errors[111] ?? 0 }
      : { count: 0, failed: 0, time_ns: 0, histogram: histogram(0, 3, 1000) },
    accept: null,
    close: times(scale * 0.8, 5),
    write_rtt_us: { count: calls, sum: calls * 300, min: 40, max: 900, histogram: rtt },
    min_rtt_us: 40,
    receive_wait: times(calls, client ? 3 : 7),
    retransmit: { count: retransmits },
    drop: { count: sum(drops), by_reason: drops },
    reset: { count: 0, sent: 0, received: 0 },
    error: { count: sum(errors), by_errno: errors },
    socket: { sent_bytes: sent, received_bytes: received, written_bytes: sent, read_bytes: received },
  };
}

/** Network namespaces of the stand-in's pods, and of the node, by the pids that are in them. */
const POD_NAMESPACE = 4_026_532_201;
const NAMESPACES = new Map([
  [5150, 4_026_532_344],
  [5161, 4_026_532_344],
  [5230, 4_026_532_419],
  [6001, 4_026_531_840],
]);
const end = (pid, comm, address, port, container = null) => ({
  pid,
  start_ticks: pid === null ? null : pid * 37,
  comm,
  program_kind: comm === "envoy" ? "proxy" : comm === "pilot-agent" ? "proxy_agent" : null,
  container,
  name: null,
  address,
  network_namespace: pid === null ? null : (NAMESPACES.get(pid) ?? POD_NAMESPACE),
  port,
});

/** Stable and of the form that the agent gives. */
function idOf(client, server, asked) {
  let hash = 0xcbf29ce484222325n;
  for (const letter of `${client.pid}${client.address}>${server.pid}${server.address}:${server.port}|${asked}`)
    hash = ((hash ^ BigInt(letter.codePointAt(0))) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}

function edge(client, server, sides, more = {}) {
  return {
    id: idOf(client, server, more.original_destination ?? ""),
    client,
    server,
    original_destination: null,
    protocol: "tcp",
    tls: null,
    metrics: { client: sides[0], server: sides[1] },
    ...more,
  };
}

/** Edges of a busy pod: callers, dependencies, control plane; more callers than the map has places. */
function meshEdges(scale, flow, back) {
  const envoy = (address, port) => end(4242, "envoy", address, port, SIDECAR);
  const callers = Array.from({ length: 14 }, (_, i) =>
    edge(end(null, null, `10.1.${i + 2}.${40 + i}`, null), envoy("10.1.0.4", 15006), [
      null,
      side(scale / (i + 1), back),
    ]),
  );
  const asked = [
    ["10.96.0.10", 53, 0.2],
    ["10.96.4.1", 15012, 0.3],
    ["10.96.4.9", 9411, 0.5],
    ["10.1.0.31", 3306, 2],
    ["10.1.0.32", 6379, 3],
  ].map(([address, port, share]) =>
    edge(envoy("10.1.0.4", null), end(null, null, address, port), [side(scale * share, flow), null]),
  );
  return [
    ...callers,
    ...asked,
    edge(envoy("127.0.0.6", null), end(4100, "checkout", "10.1.0.4", 8080, CHECKOUT), [
      side(scale, flow),
      side(scale, back),
    ]),
    edge(end(4243, "pilot-agent", "127.0.0.1", null, SIDECAR), envoy("127.0.0.1", 15000), [
      side(0.4, { sent: 200, received: 90_000 }),
      side(0.4, back),
    ]),
    edge(envoy("127.0.0.1", null), end(null, null, "127.0.0.1", 9000), [side(1, flow), null]),
  ];
}

/**
 * A pod with so many nodes around its sidecar and so many edges, always the same: callers, processes that
 * talk among themselves over Unix sockets, and dependencies.
 */
export function crowdedEdges(nodes, edges, scale) {
  const flow = { sent: 41_000, received: 310_000 };
  const back = { sent: 310_000, received: 41_000, client: false };
  const envoy = (port) => end(4242, "envoy", "10.1.0.4", port, SIDECAR);
  const third = Math.floor((nodes - 1) / 3);
  const local = (i) => end(90_000 + i, `worker-${i}`, "10.1.0.4", null, SIDECAR);
  const made = [];
  for (let i = 0; i < third; i += 1) {
    made.push(
      edge(end(null, null, `10.2.0.${i + 1}`, null), envoy(15006), [null, side(scale / (i + 1), back)]),
    );
    made.push(
      edge(envoy(null), end(null, null, `10.3.0.${i + 1}`, 3306 + i), [side(scale / (i + 2), flow), null]),
    );
  }
  for (let i = 0; made.length < edges && i < nodes - 1 - 2 * third; i += 1)
    made.push(edge(local(i), envoy(15001), [side(scale, flow), side(scale, back)]));
  const members = nodes - 1 - 2 * third;
  for (let i = 0; made.length < edges; i += 1) {
    const [from, to] = [i % members, (i * 3 + 1 + Math.floor(i / members)) % members];
    const ends = [
      { ...local(from), address: "unnamed" },
      { ...local(to), address: `/run/worker-${to}-${i}.sock` },
    ];
    made.push(edge(...ends, [side(scale / 4, flow), side(scale / 4, back)], { protocol: "unix" }));
  }
  return made;
}

/** The table after so many seconds. `crowd`: other edges, as many as a page is to be measured with. */
export function edgeTable(seconds, crowd = null) {
  const table = unnamedTable(seconds, crowd);
  return { ...table, containers: namesOf(table.edges.flatMap(({ client, server }) => [client, server])) };
}

function unnamedTable(seconds, crowd) {
  const scale = 20 + seconds;
  const flow = { sent: 41_000, received: 310_000 };
  const back = { sent: 310_000, received: 41_000, client: false };
  if (crowd !== null)
    return { ...unnamedTable(seconds, null), edges: crowdedEdges(crowd.nodes, crowd.edges, scale) };
  return {
    edges: [
      edge(
        end(4100, "checkout", "10.1.0.4", null, CHECKOUT),
        end(4242, "envoy", "127.0.0.1", 15001, SIDECAR),
        [side(scale, flow), side(scale, back)],
        { original_destination: "10.96.0.17:8080" },
      ),
      edge(end(4242, "envoy", "10.1.0.4", null, SIDECAR), end(5150, "envoy", "10.1.0.9", 15006), [
        side(scale, { ...flow, retransmits: 17, drops: { TCP_OFO_QUEUE: 4, NO_SOCKET: 1 } }),
        side(scale, back),
      ]),
      edge(end(5150, "envoy", "127.0.0.6", null), end(5161, "httpbin", "10.1.0.9", 8080), [
        side(scale, flow),
        side(scale, back),
      ]),
      ...meshEdges(scale, flow, back),
      edge(end(5161, "httpbin", "10.1.0.9", null), end(5230, "redis-server", "10.1.0.40", 6379), [
        side(scale * 2, flow),
        side(scale * 2, back),
      ]),
      edge(end(6001, "prometheus", "10.1.0.2", 51_022), end(null, null, "203.0.113.77", 9090), [
        side(1, { sent: 900, received: 120_000, errors: { 111: 3, 104: 1 } }),
        null,
      ]),
      edge(end(null, null, "2001:db8::71", null), end(4242, "envoy", "2001:db8::4", 443, SIDECAR), [
        null,
        side(7, { sent: 88_000, received: 7_000, client: false }),
      ]),
      edge(end(7777, '<img src=x>"&', "127.0.0.1", null), end(7778, "e\u202evil", "127.0.0.1", 6379), [
        side(2, { sent: 50, received: 10 }),
        null,
      ]),
    ],
    other: null,
    sources: { read: "sock_recv_length", write: "sock_send_length" },
    unavailable: {
      accept: "times of accept calls are not measured",
      "read.time_ns": "times of read calls are not measured",
      tls: "edges do not say whether a connection is encrypted",
      "write.time_ns": "times of write calls are not measured",
    },
    unresolved: { owner: 2, peer_on_this_node: 1 },
    lost: { events: 0, bytes: 0 },
    kernel_table: {
      capacity: 65_536,
      used: 212,
      refused: 0,
      evicted: 0,
      swept: 0,
      missed_runs: {},
      delayed: 3,
    },
  };
}

/** The same of the always-on collection. */
export function networkEdges(startedAt, crowd = null) {
  const seconds = (Date.now() - startedAt) / 1000;
  return {
    ...edgeTable(crowd === null ? Math.round(seconds) : seconds, crowd),
    state: "running",
    reason: null,
    since_ns: startedAt * 1e6,
    restarts: 0,
    age_ms: 120,
  };
}
