// Made-up access logs of Envoys for the stand-in: two that a mesh has, one that is only claimed, and one whose texts
// are hostile.

import { HOSTILE } from "./hostile.mjs";
import { spread, valuesOf } from "./mock_values.mjs";
import { random } from "./synthetic.mjs";

const NODE_ID = "sidecar~10.1.0.4~checkout-7d9f8b6c5-x2x9z.shop~shop.svc.cluster.local";

function senderOf(now, change) {
  return {
    pid: null,
    id: null,
    program: null,
    pod: null,
    claimed: false,
    node_id: "",
    node_id_differs: false,
    version: "1.40.0",
    peer: "10.1.0.4:39001",
    log_names: ["profiler-access-logs"],
    streams: 4,
    received: 1_203_429,
    requests: 1_202_829,
    connections: 600,
    attempts: 0,
    open: 0,
    unreadable: 0,
    unread: 0,
    refused_messages: 0,
    bytes: 464_291_994,
    written: 1_203_429,
    dropped: 0,
    failed: 0,
    completed: 1_202_829,
    unknown: 0,
    unknown_reason: null,
    received_percent: 100,
    stage: "full",
    first_ns: now - 3600e9,
    newest_ns: now - 0.4e9,
    ...change,
  };
}

/** `GET /access-logs`; `state`: "on", "silent" where no Envoy has sent any yet, or "off". */
export function accessLogStatus(state) {
  const now = Date.now() * 1e6;
  const base = {
    is_on: state !== "off",
    listen: "0.0.0.0:7118",
    refused_connections: 0,
    failed_connections: state === "silent" ? 3 : 0,
    newest_failure:
      state === "silent"
        ? "10.0.0.7:40112: it does not speak TLS: its cluster needs what `access-logs snippet --tls` prints"
        : null,
    stage_seconds: { full: 3600, counted: 0, held: 0 },
    envoys: [],
  };
  if (state === "off") return { ...base, listen: null };
  if (state === "silent") return base;
  const of = (change) => senderOf(now, change);
  return {
    ...base,
    stage_seconds: { full: 3600, counted: 75, held: 4.2 },
    envoys: [
      of({
        pid: 4242,
        id: "4242-156954",
        program: "envoy",
        pod: "shop/checkout-7d9f8b6c5-x2x9z",
        node_id: NODE_ID,
        dropped: 522,
        unknown: 90,
        received_percent: 99.9492,
      }),
      of({
        pid: 5150,
        id: "5150-190550",
        program: "envoy",
        pod: "a-namespace-with-a-long-name/httpbin-with-a-long-name-6f7d8c9b54-qwert",
        node_id: "sidecar~10.1.0.9~another-pod.shop~shop.svc.cluster.local",
        node_id_differs: true,
        received: 552,
        requests: 40,
        unread: 512,
        stage: "counted",
        connections: 0,
        written: null,
        dropped: null,
        failed: 12,
        completed: null,
        unknown: null,
        unknown_reason: "no admin interface on ports 15000, 9901, 19000, 9001 and 8001",
        received_percent: null,
        newest_ns: now - 754e9,
      }),
      of({
        claimed: true,
        node_id: "gateway~172.16.9.30",
        peer: "172.16.9.30:50112",
        requests: 7,
        received: 7,
      }),
      of({
        claimed: true,
        node_id: `${HOSTILE[0]}${HOSTILE[1]}${HOSTILE[3]}`,
        version: HOSTILE[2],
        peer: "172.16.9.31:50112",
        requests: 1,
        received: 1,
        unreadable: 3,
        newest_ns: 0,
      }),
    ],
  };
}

const PHASES = [
  ["read", 90e3, "The request arrives from the client."],
  [
    "to_upstream",
    310e3,
    "The proxy has what it needs and prepares the request: filters, routing, and the wait for an upstream connection, also a new one with its TLS handshake.",
  ],
  ["upstream", 11e6, "The upstream has the request and has not begun to answer: network and service."],
  ["response", 420e3, "The response arrives from the upstream."],
  ["to_client", 140e3, "The proxy has the beginning of the response and prepares it: filters."],
  ["tail", 35e3, "The proxy has the whole response and still sends it."],
  ["cleanup", 4e3, "The response is sent and the stream still exists."],
];

const flag = (name, long_name, meaning, cause) => ({ name, long_name, meaning, cause });
const FLAGS = [
  flag(
    "UF",
    "UpstreamConnectionFailure",
    "The connection to the upstream could not be made, and Envoy answered 503.",
    "Connection refused, timed out or failed TLS, see the transport failure reason; `connect_timeout`, the mode of mTLS on both ends, network policies",
  ),
  flag(
    "URX",
    "UpstreamRetryLimitExceeded",
    "The last allowed retry or connection attempt failed too.",
    "The other flags and details say why each attempt failed; `retry_policy.num_retries`, `max_connect_attempts`",
  ),
  flag(
    "UO",
    "UpstreamOverflow",
    "A circuit breaker was open, and Envoy answered 503 without trying.",
    "More connections, pending requests or retries than allowed; `circuit_breakers.thresholds`, Istio's `connectionPool`",
  ),
  flag(
    "NR",
    "NoRouteFound",
    "No route matched the request, and Envoy answered 404, or no filter chain matched the connection.",
    "The host or path is in no route, or the port expects another protocol; `virtual_hosts`, `filter_chain_match`, Istio's VirtualService and Gateway hosts",
  ),
  flag(
    "DC",
    "DownstreamConnectionTermination",
    "The client closed its connection before the response was complete.",
    "The client's own timeout, or a user who left; compare the duration with the client's timeout",
  ),
];
/** Where requests with a flag went: one host fails, a cluster has none left, no route chose any. */
function flaggedUpstreams(flag, cluster, count) {
  if (flag === "NR") return [{ cluster: "", address: "", count }];
  const address = flag === "UO" ? "" : "10.1.0.23:8080";
  const few = Math.floor(count / 20);
  return [
    { cluster, address, count: count - few },
    ...(few > 0 ? [{ cluster, address: "10.1.0.22:8080", count: few }] : []),
  ];
}

const MORE_FLAGS = ["UAEX", "UMSDR", "RLSE", "DPE", "SI", "UT", "UC", "OM", "DF", "NC", "UPE", "IH", "RL"];

const host = (next, cluster, address, requests, errors, middle, stands_out = null) => ({
  cluster,
  address,
  requests,
  errors,
  ns: valuesOf(spread(next, Math.min(requests, 400), middle)),
  rtt_ns: valuesOf(requests > 100 ? spread(next, 12, 2e5) : []),
  retransmits: requests > 100 ? (stands_out === null ? 0 : 31) : null,
  stands_out,
});

const NO_PROCESS = {
  pid: null,
  start_ticks: null,
  comm: null,
  program_kind: null,
  container: null,
  name: null,
  address: "172.16.9.30",
  network_namespace: null,
  port: null,
};

/** A sidecar with a bit of everything. */
function usual(process, next, requests) {
  const n = (share) => Math.max(1, Math.round(requests * share));
  const cluster = "outbound|8080||httpbin.shop.svc.cluster.local";
  return {
    process: { ...process, port: null },
    claimed: false,
    node_id: NODE_ID,
    requests,
    connections: 4,
    retried: n(0.002),
    retries: n(0.003),
    missing: Math.round(requests * 0.0005),
    joined: {
      ends: 2 * requests,
      joined: 2 * requests - 3,
      confirmed: requests - 1,
      requests: requests - 2,
      contradicted: 0,
    },
    phases: PHASES.map(([name, middle, meaning]) => ({
      name,
      meaning,
      ns: valuesOf(spread(next, 400, middle)),
    })),
    flags: FLAGS.map((each, i) => ({
      ...each,
      count: n(0.02 / (i * i + 1)),
      upstreams: flaggedUpstreams(each.name, cluster, n(0.02 / (i * i + 1))),
    })),
    details: [
      { text: "via_upstream", count: n(0.97) },
      {
        text: "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
        count: n(0.02),
      },
      { text: "upstream_reset_before_response_started{overflow}", count: n(0.004) },
      { text: "route_not_found", count: n(0.002) },
      { text: "downstream_remote_disconnect", count: n(0.001) },
    ],
    tls: [
      { version: "TLSv1.3", count: n(0.9) },
      { version: "TLSv1.2", count: n(0.01) },
    ],
    upstreams: [
      host(next, cluster, "10.1.0.21:8080", n(0.4), 0, 9e6),
      host(next, cluster, "10.1.0.22:8080", n(0.38), n(0.0004), 9e6),
      host(
        next,
        cluster,
        "10.1.0.23:8080",
        n(0.17),
        n(0.019),
        41e6,
        "11.2 % of its requests fail (10.1 to 12.3 %), of those to the 2 other hosts 0.1 % (0.0 to 0.2 %). Half of its requests take at least 38 ms, of those to the 2 other hosts at most 9.2 ms.",
      ),
      host(next, "inbound|8080||", "10.1.0.4:8080", n(0.03), 0, 1.9e6),
      host(next, "PassthroughCluster", "93.184.216.34:443", 3, 0, 82e6),
    ],
    of_other_upstreams: 0,
  };
}

/** Where every list is long, every text too, and nothing is proven. */
function extreme(next) {
  const long = `outbound|8080|a-subset-with-a-long-name|${"a-service-with-a-long-name.".repeat(3)}svc.cluster.local`;
  return {
    ...usual(NO_PROCESS, next, 98_765_432_101),
    claimed: true,
    node_id: `gateway~172.16.9.30~${"a-gateway-with-a-long-name.".repeat(4)}~${HOSTILE[0]}${HOSTILE[1]}`,
    missing: null,
    joined: {
      ends: 98_765_432_101,
      joined: 98_765_432_100,
      confirmed: 0,
      requests: 0,
      contradicted: 98_765_432,
    },
    connections: 123_456_789,
    flags: [
      ...FLAGS.map((each, i) => ({
        ...each,
        count: 98_765_432 - i,
        upstreams: [long, `${HOSTILE[0]}${HOSTILE[1]}`, long].map((cluster, place) => ({
          cluster,
          address: place === 2 ? "" : "[fd00:1234:5678:9abc:def0:1234:5678:1000]:18080",
          count: 30_000_000 - place,
        })),
      })),
      ...MORE_FLAGS.map((name, i) => ({ ...FLAGS[i % 5], name, count: 1000 - i, upstreams: [] })),
      { name: "XY<b>\u202e", long_name: "XY", meaning: "", cause: "", count: 1, upstreams: [] },
    ],
    details: [
      { text: `${HOSTILE[0]}${HOSTILE[1]}`, count: 98_765_432 },
      ...Array.from({ length: 30 }, (_, i) => ({
        text: `${"upstream_reset_before_response_started_".repeat(3)}${i}`,
        count: 5000 - i,
      })),
    ],
    upstreams: [
      host(
        next,
        `${HOSTILE[0]}${HOSTILE[1]}`,
        `evil\u202e${HOSTILE[0]}`,
        98_765_432_101,
        98_765_432_100,
        9e11,
      ),
      ...Array.from({ length: 60 }, (_, i) =>
        host(
          next,
          long,
          `[fd00:1234:5678:9abc:def0:1234:5678:${(i + 4096).toString(16)}]:18080`,
          9000 - i,
          i,
          9e6,
        ),
      ),
    ],
    of_other_upstreams: 123_456,
  };
}

/** An Envoy that passes TCP on, and has nothing to say of requests. */
function tcpOnly(process) {
  return {
    process: { ...process, port: null },
    claimed: false,
    node_id: "",
    requests: 0,
    connections: 12,
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
  };
}

function loggedRequests(processes, seconds) {
  const next = random(119);
  const [first, second] = processes;
  const requests = 2_000 + seconds * 400;
  return {
    envoys: [usual(first, next, requests), extreme(next), tcpOnly(second)],
    seen_twice: 214,
    without_entry: 3,
    left_out: 0,
    of_other_envoys: 31,
  };
}

/** The same result, with what goes through the Envoys taken from their access logs. */
export function asLogged(answer, { source }, seconds) {
  const envoys = answer.sidecars.map(({ process }) => process);
  const isTheirs = (edge) =>
    edge !== null && envoys.some(({ pid }) => pid === edge.client.pid || pid === edge.server.pid);
  const sockets = source.includes("sockets");
  const marked = (rows) =>
    rows
      .map((row) => (isTheirs(row.edge) ? { ...row, source: "access_log" } : row))
      .filter((row) => sockets || row.source === "access_log");
  return {
    ...answer,
    operations: marked(answer.operations),
    samples: marked(answer.samples),
    counted: sockets ? answer.counted : [],
    tls: sockets ? answer.tls : [],
    sidecars: answer.sidecars
      .filter(({ times }) => times !== null)
      .map(({ pairs, times, ...rest }) => ({
        ...rest,
        times: { ...times, read_wait_ns: valuesOf([]), answer_wait_ns: valuesOf([]) },
        pairs: [{ ...pairs[0], class: "access_log", pairs: rest.requests_in - rest.unmatched_in, share: 1 }],
        upstream_header: null,
      })),
    access_logs: loggedRequests(envoys, seconds),
  };
}
