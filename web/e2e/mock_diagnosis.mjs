// Diagnoses as the agent makes them, from counts of samples: one with tracing on top, one of a program
// of which little is named, one of a plain proxy without findings. All numbers follow from the counts.

import { CONTENTION } from "./mock_contention.mjs";
import { FEATURES, MECHANISMS } from "./mock_features.mjs";

/** Samples by feature and mechanism. */
export const ZIPKIN = {
  tracing: { parse: 1240, allocation: 910, copy: 240, hash_format: 420, kernel_tcp: 180, other: 210 },
  http_codec: { parse: 940, allocation: 120, copy: 160, other: 90 },
  routing: { hash_format: 130, other: 210 },
  pools: { allocation: 60, lock: 22, other: 90 },
  access_log_format: { hash_format: 160, allocation: 28 },
  access_log_write: { syscall: 44, lock: 8 },
  stats_record: { hash_format: 90, other: 60 },
  "filter:lua": { other: 210, allocation: 40 },
  event_loop: { syscall: 420, scheduler: 160, other: 120 },
  kernel_receive: { kernel_tcp: 1100, netfilter: 260 },
  xds: { parse: 6 },
  unattributed: { other: 190, page_fault: 4 },
  no_symbols: { other: 96 },
};

export const PLAIN = {
  http_codec: { parse: 930, allocation: 118, copy: 170, other: 88 },
  routing: { hash_format: 128, other: 214 },
  pools: { allocation: 58, lock: 20, other: 94 },
  stats_record: { hash_format: 92, other: 58 },
  event_loop: { syscall: 430, scheduler: 150, other: 118 },
  kernel_receive: { kernel_tcp: 1080, netfilter: 255 },
  unattributed: { other: 180 },
  no_symbols: { other: 60 },
};

const POOR = {
  event_loop: { syscall: 380, scheduler: 90 },
  kernel_receive: { kernel_tcp: 640, netfilter: 210 },
  access_log_write: { syscall: 150 },
  unattributed: { other: 330 },
  no_symbols: { other: 2700 },
};

export const NS = 10_101_010;
const WORKERS = 4;
export const SECONDS = 60;

/** 95 % of Wilson's score, in percent. */
function wilson(hits, all) {
  const z = 1.96;
  const p = hits / all;
  const middle = (p + (z * z) / (2 * all)) / (1 + (z * z) / all);
  const spread = (z / (1 + (z * z) / all)) * Math.sqrt((p * (1 - p)) / all + (z * z) / (4 * all * all));
  return { low: Math.max(0, middle - spread) * 100, high: Math.min(1, middle + spread) * 100 };
}

export const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
export const samplesOf = (counts) => sum(Object.values(counts).flatMap((row) => Object.values(row)));

function matrixOf(counts) {
  const all = samplesOf(counts);
  const cells = Object.entries(counts).flatMap(([feature, row]) =>
    Object.entries(row).map(([mechanism, samples]) => ({
      feature,
      mechanism,
      samples,
      ns: samples * NS,
      share_percent: (samples / all) * 100,
      ...wilson(samples, all),
      rules: [
        { rule: `${feature.replace(":", "_")}_frames`, samples: samples - Math.floor(samples / 5) },
        ...(samples > 4 ? [{ rule: `${mechanism}_below`, samples: Math.floor(samples / 5) }] : []),
      ],
    })),
  );
  const features = FEATURES.filter(({ id }) => id in counts);
  const rows = features.map(({ id }) => {
    const samples = sum(Object.values(counts[id]));
    return { feature: id, samples, ...shareOf(counts, id) };
  });
  return { features, mechanisms: MECHANISMS, rows, cells };
}

export function shareOf(counts, feature) {
  const all = samplesOf(counts);
  const samples = sum(Object.values(counts[feature] ?? {}));
  return { share_percent: (samples / all) * 100, ...wilson(samples, all) };
}

const YAML = {
  tracing: {
    istio: `apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata:
  name: less-tracing
  namespace: shop
spec:
  tracing:
    - randomSamplingPercentage: 1
`,
    envoy: `tracing:
  random_sampling:
    value: 1
`,
  },
  access_log_format: {
    istio: `apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata:
  name: errors-only
spec:
  accessLogging:
    - filter:
        expression: response.code >= 400
`,
    envoy: `access_log:
  - name: envoy.access_loggers.file
    filter:
      status_code_filter:
        comparison: { op: GE, value: { default_value: 400, runtime_key: log_min } }
`,
  },
  lua: {
    envoy: `http_filters:
  - name: envoy.filters.http.header_mutation
`,
  },
};

function setting(system, key, yaml, side_effects, scope = "workload, namespace or mesh") {
  return {
    system,
    key,
    yaml,
    scope,
    side_effects,
    undo:
      system === "istio"
        ? "kubectl delete telemetry.telemetry.istio.io tracing-web -n shop"
        : "Put back what is configured now.",
  };
}

export function findingsOf(counts, perRequest) {
  const finding = (id, feature, severity, more) => {
    const share = shareOf(counts, feature);
    return {
      id,
      severity,
      ...share,
      saving: {
        percent: share.share_percent,
        us_per_request: perRequest === null ? null : (perRequest * share.share_percent) / 100,
      },
      cells: [{ feature, mechanism: null }],
      confidence: "inferred",
      configured: null,
      ...more,
    };
  };
  const frames = (...list) =>
    list.map(([frame, samples]) => ({
      frame,
      samples,
      share_percent: (samples / samplesOf(counts)) * 100,
    }));
  const all = [
    finding("tracing_share", "tracing", "high", {
      title: "Distributed tracing records every request",
      reason:
        "Spans are made for 100 % of the requests and reported to Zipkin. The cost is in making, tagging and serialising them, and grows with the share of requests that are sampled. The collector connection's own work is counted with it where its frames lie below the tracer.",
      evidence: frames(
        ["Envoy::Extensions::Tracers::Zipkin::Span (method)", 2210],
        ["Envoy::Extensions::Tracers::Zipkin::JsonV2Serializer (method)", 1030],
        ["google::protobuf::util::MessageToJsonString", 640],
        ["Envoy::Tracing::HttpTracerUtility::finalizeDownstreamSpan", 410],
      ),
      configured: "zipkin, random_sampling 100 %",
      settings: [
        setting(
          "istio",
          "Telemetry.spec.tracing[].randomSamplingPercentage",
          YAML.tracing.istio,
          "Fewer traces: rare requests may have none. Errors are not kept by themselves.",
        ),
        setting(
          "envoy",
          "HttpConnectionManager.tracing.random_sampling",
          YAML.tracing.envoy,
          "Fewer traces.",
        ),
      ],
    }),
    finding("lua_filter", "filter:lua", "low", {
      title: "A Lua filter runs for each request",
      reason: "The filter's script runs on the request and on the response path.",
      evidence: frames(
        ["Envoy::Extensions::HttpFilters::Lua::StreamHandleWrapper (method)", 170],
        ["lj_vm_call", 61],
      ),
      configured: "envoy.filters.http.lua",
      settings: [
        setting(
          "envoy",
          "http_filters[envoy.filters.http.lua]",
          YAML.lua.envoy,
          "The rewrite has to be said as a header mutation.",
          "listener",
        ),
      ],
    }),
    finding("access_log_format", "access_log_format", "low", {
      title: "Access-log lines are formatted for every request",
      reason: "Each line is made on the worker, before it is written by another thread.",
      evidence: frames(["Envoy::Formatter::FormatterImpl (method)", 150]),
      configured: "file /dev/stdout, text format",
      settings: [
        setting(
          "istio",
          "Telemetry.spec.accessLogging[].filter.expression",
          YAML.access_log_format.istio,
          "Requests without errors leave no line.",
        ),
        setting("envoy", "access_log[].filter", YAML.access_log_format.envoy, ""),
      ],
    }),
    finding("upstream_http1", "http_codec", "info", {
      title: "Upstream connections speak HTTP/1.1",
      reason: "HTTP/2 to upstreams shares connections; how much that saves here cannot be told from samples.",
      saving: null,
      evidence: frames(["Envoy::Http::Http1::ClientConnectionImpl (method)", 380]),
      settings: [
        setting(
          "istio",
          "DestinationRule.spec.trafficPolicy.connectionPool.http.h2UpgradePolicy",
          "spec:\n  trafficPolicy:\n    connectionPool:\n      http:\n        h2UpgradePolicy: UPGRADE\n",
          "The application must speak HTTP/2.",
        ),
      ],
      cells: [
        { feature: "http_codec", mechanism: "parse" },
        { feature: "pools", mechanism: null },
        { feature: null, mechanism: "syscall" },
      ],
    }),
  ];
  return all.filter(({ cells }) => cells.some(({ feature }) => feature in counts));
}

function workersOf(counts, { waits }) {
  const all = samplesOf(counts);
  const cpu = (all * NS) / SECONDS / 1e7;
  const worker = (i, share) => ({
    pid: 4242,
    tid: 4250 + i,
    name: `wrk:worker_${i}`,
    role: "worker",
    cpu_percent: cpu * share,
    share_percent: share * 100,
    run_queue_percent: waits ? 4.1 - i : null,
    contention: waits ? CONTENTION : null,
    waits: waits
      ? [
          { reason: "futex", count: 310 - i * 30, ns: 800e6, share_percent: 1.33 },
          { reason: "run queue", count: 9000, ns: (4.1 - i) * 6e8, share_percent: 4.1 - i },
          { reason: "page fault", count: 3, ns: 900e3, share_percent: 0.0015 },
          { reason: "pipe write", count: 14, ns: 3e6, share_percent: 0.005 },
        ]
      : [],
    longest_wait_ns: waits ? 22e6 - i * 3e6 : null,
  });
  const other = (tid, name, role, share) => ({
    ...worker(0, share),
    tid,
    name,
    role,
    run_queue_percent: waits ? 0.1 : null,
    waits: [],
    longest_wait_ns: waits ? 1.2e6 : null,
  });
  const shares = [0.36, 0.24, 0.21, 0.15];
  return {
    threads: [
      ...Array.from({ length: WORKERS }, (_, i) => worker(i, shares[i])),
      other(4242, "envoy", "main", 0.025),
      other(4261, "AccessLogFlush", "helper", 0.015),
    ],
    imbalance: {
      busiest_percent: cpu * shares[0],
      mean_percent: (cpu * sum(shares)) / WORKERS,
      ratio: (shares[0] * WORKERS) / sum(shares),
      low: 1.41,
      high: 1.58,
      significant: true,
    },
    throttled: waits ? { periods: 600, throttled_periods: 24, throttled_ns: 1.9e9 } : null,
    contention: waits ? CONTENTION : null,
  };
}

const STALLS = {
  threshold_ms: 20,
  threads: Array.from({ length: WORKERS }, (_, i) => ({
    tid: 4250 + i,
    name: `wrk:worker_${i}`,
    loops: 81_000 - i * 900,
    loop_ns: { p50: 160e3, p99: 2.6e6, max: i === 0 ? 84e6 : 11e6 },
    stalls: i === 0 ? 7 : 0,
    stalled_ns: i === 0 ? 223e6 : 0,
  })),
  stalls: [
    {
      tid: 4250,
      name: "wrk:worker_0",
      start_ns: 0,
      duration_ns: 84e6,
      samples: 8,
      stack: [
        "lj_vm_call",
        "Envoy::Extensions::HttpFilters::Lua::StreamHandleWrapper (method)",
        "Envoy::Http::FilterManager (method)",
        "Envoy::Event::DispatcherImpl (method)",
        "event_base_loop",
      ],
    },
    { tid: 4250, name: "wrk:worker_0", start_ns: 7e9, duration_ns: 34e6, samples: 0, stack: [] },
    // More than the page lists at once.
    ...Array.from({ length: 5 }, (_, i) => ({
      tid: 4250,
      name: "wrk:worker_0",
      start_ns: 9e9 + i * 1e9,
      duration_ns: 21e6,
      samples: 0,
      stack: [],
    })),
  ],
};

const CONFIGURATION = {
  source: "Envoy's admin interface at 127.0.0.1:15000",
  version: "1.40.0",
  concurrency: WORKERS,
  items: [
    { key: "tracing", value: "zipkin, random_sampling 100 %" },
    { key: "access log", value: "file /dev/stdout, text" },
    { key: "HTTP filters", value: "istio_authn, lua, fault, cors, router" },
    { key: "upstream protocol", value: "41 clusters HTTP/1.1, 3 HTTP/2" },
    { key: "stats flush interval", value: "5 s" },
  ],
};

const SAMPLES_ONLY = [
  "CPU time by the kernel's own accounting and CPU time for each request: the counters were not read. A check-up reads them at its start and its end.",
  "What threads waited for, and which part causes context switches: waits were not recorded.",
  "Connections, retransmissions and resets: connections were not watched.",
  "Stalls of event loops: they were not watched.",
  "What is configured now: no process was asked, or none could be.",
];

/** `part`: "checkup" has everything, "task" has samples alone. */
const NOT_SAMPLED = [
  "latency",
  "waits",
  "connections",
  "event_loops",
  "cpu_time",
  "requests",
  "configuration",
];

const ENVOY = { pid: 4242, name: "envoy" };
const APP = { pid: 4250, name: "reviews" };
const MS = 1e6;

const part = (place, process, mean_ns, p95_ns, of) => ({
  place,
  process,
  mean_ns,
  p50_ns: p95_ns === null ? null : mean_ns,
  p95_ns,
  share_percent: (mean_ns / of) * 100,
});

const activity = (kind, mean_ns, of, stack = [], what = null, what_ns = null) => ({
  kind,
  what,
  what_ns,
  mean_ns,
  share_percent: (mean_ns / of) * 100,
  stack,
});

/** An app that sleeps behind a sidecar that does little. */
const LATENCY = {
  process: ENVOY,
  requests: 486_000,
  mean_ns: 18 * MS,
  p50_ns: 17.2 * MS,
  p95_ns: 24.6 * MS,
  p99_ns: 41 * MS,
  parts: [
    part("inbound_queue", ENVOY, 0.2 * MS, 0.6 * MS, 18 * MS),
    part("request_path", ENVOY, 1.6 * MS, 2.4 * MS, 18 * MS),
    part("network", null, 0.5 * MS, null, 18 * MS),
    part("server", APP, 15 * MS, 20.1 * MS, 18 * MS),
    part("response_queue", ENVOY, 0.1 * MS, 0.3 * MS, 18 * MS),
    part("response_path", ENVOY, 0.6 * MS, 0.9 * MS, 18 * MS),
  ],
  inside: [
    {
      process: ENVOY,
      mean_ns: 2.5 * MS,
      threads: 4,
      activities: [
        activity("running", 1.9 * MS, 2.5 * MS, ["Span::toJson", "Tracer::flush"], "Tracing", 0.8 * MS),
        activity("waiting_for_cpu", 0.4 * MS, 2.5 * MS),
        activity("suspended", 0.2 * MS, 2.5 * MS),
      ],
    },
    {
      process: APP,
      mean_ns: 15 * MS,
      threads: 12,
      activities: [
        activity("asleep", 12 * MS, 15 * MS, ["clock_nanosleep", "nanosleep", "rate_limit", "handle_review"]),
        activity("running", 2 * MS, 15 * MS, ["render", "handle_review"]),
        activity("own_requests", 1 * MS, 15 * MS, [], "redis-server"),
      ],
    },
  ],
  text: "Requests to envoy (4242) take 18.0 ms on average (p95 24.6 ms): 15.0 ms in reviews (asleep in a timer 12.0 ms), 2.50 ms in envoy (computing 1.90 ms, 800 us of it Tracing).",
};

function document(counts, { part, nowNs, verdict, latency = [], good = [], limits = [], coverage = {} }) {
  const all = samplesOf(counts);
  const full = part === "checkup";
  const requests = full ? 486_000 : null;
  const cpu_ns = all * NS * 1.004;
  const perRequest = requests === null ? null : cpu_ns / 1e3 / requests;
  const unknown = sum(Object.values(counts.no_symbols ?? { none: 0 }));
  const unattributed = sum(Object.values(counts.unattributed ?? { none: 0 }));
  return {
    version: 1,
    verdict: full && latency.length > 0 ? `${latency[0].text} ${verdict}` : verdict,
    latency: full ? latency : [],
    rules: { version: 3, user_file: full ? null : "/etc/profiler-agent/diagnosis.toml" },
    processes: [
      {
        pid: 4242,
        start_ticks: 4242 * 37,
        comm: "envoy",
        exe: "/usr/local/bin/envoy",
        container: "3f9d2c71aa0b",
        rule_set: "envoy",
        samples: all - 40,
        share_percent: ((all - 40) / all) * 100,
      },
      {
        pid: 4243,
        start_ticks: 4243 * 37,
        comm: "pilot-agent",
        exe: "/usr/local/bin/pilot-agent",
        container: "3f9d2c71aa0b",
        rule_set: "generic",
        samples: 40,
        share_percent: (40 / all) * 100,
      },
    ],
    other_processes: [],
    window: { from_ns: nowNs - SECONDS * 1e9, to_ns: nowNs, duration_s: SECONDS },
    coverage: {
      samples: all,
      complete_percent: 99.2,
      named_percent: ((all - unknown) / all) * 100,
      named_frames_percent: ((all - unknown) / all) * 90,
      attributed_percent: ((all - unknown - unattributed) / all) * 100,
      no_symbols_percent: (unknown / all) * 100,
      sufficient: (all - unknown) / all >= 0.6,
      unnamed_modules: [],
      supply: null,
      ...coverage,
    },
    totals: {
      cpu_cores: full ? cpu_ns / 1e9 / SECONDS : null,
      cpu_ns: full ? cpu_ns : null,
      sampled_ns: all * NS,
      requests: full
        ? { count: requests, per_second: requests / SECONDS, source: "Envoy's own counters" }
        : null,
      cpu_us_per_request:
        perRequest === null ? null : { value: perRequest, low: perRequest * 0.97, high: perRequest * 1.03 },
    },
    matrix: matrixOf(counts),
    workers: workersOf(counts, { waits: full }),
    event_loop: full
      ? {
          ...STALLS,
          stalls: STALLS.stalls.map((stall) => ({ ...stall, start_ns: nowNs - 50e9 + stall.start_ns })),
        }
      : null,
    network: full
      ? {
          connections_opened: 61,
          connections_per_request: 61 / requests,
          retransmit_percent: 0.012,
          resets: 2,
          receive_wait_ns: { p50: 210e3, p99: 4.1e6 },
        }
      : null,
    findings: findingsOf(counts, perRequest),
    good,
    configuration: full ? CONFIGURATION : null,
    not_measured: full ? (latency.length > 0 ? [] : ["latency"]) : NOT_SAMPLED,
    limits: [...limits, ...(full ? [] : SAMPLES_ONLY)],
  };
}

const GOOD = [
  { id: "tls", title: "TLS costs nothing to speak of.", text: "0.0 % of the CPU: there is nothing to gain." },
  {
    id: "retransmits",
    title: "Connections are kept.",
    text: "61 new ones for 486,000 requests, 0.012 % of the segments retransmitted.",
  },
];
const COLLECTOR =
  "Work on the connection to the collector that has no frame of the tracer in its stack is counted as codec and pools.";

const percent = (counts, feature) => shareOf(counts, feature).share_percent.toFixed(1);

export function zipkin(nowNs, part) {
  return document(ZIPKIN, {
    part,
    latency: [LATENCY],
    nowNs,
    verdict: `Distributed tracing takes ${percent(ZIPKIN, "tracing")} % of this Envoy's CPU: it is by far the largest cost that a setting changes.`,
    good: GOOD,
    limits: [COLLECTOR],
  });
}

export function plain(nowNs) {
  const found = document(PLAIN, {
    part: "checkup",
    nowNs,
    verdict:
      "Nothing stands out: the CPU goes into HTTP, connections and the kernel, which no setting avoids.",
    good: GOOD,
  });
  const workers = { ...found.workers, imbalance: { ...found.workers.imbalance, significant: false } };
  return { ...found, workers, findings: [], event_loop: { ...found.event_loop, stalls: [] } };
}

export function poor(nowNs) {
  const named = samplesOf(POOR) - sum(Object.values(POOR.no_symbols));
  return document(POOR, {
    part: "task",
    nowNs,
    verdict: `Only ${((named / samplesOf(POOR)) * 100).toFixed(0)} % of the samples are named: the verdict covers the kernel, system calls and threads, and says nothing about Envoy's features.`,
    coverage: {
      unnamed_modules: [
        { module: "/usr/local/bin/envoy", build_id: "9e558093aa01", share_percent: 60.1 },
        { module: "[anonymous]", build_id: null, share_percent: 1.4 },
      ],
      supply:
        "symbols for /usr/local/bin/envoy (build-id 9e558093aa01): its unstripped file or its debug file",
    },
  });
}

/** A diagnosis as `format=markdown` gives it, without what no test looks for. */
export function reportOf({ processes, verdict, findings, limits }, source) {
  const diagnosed = processes.map(({ comm, pid }) => `\`${comm}\` (pid ${pid}), `).join("");
  const entries = findings.map(
    ({ id, title, severity, share_percent }, i) =>
      `${i + 1}. **\\[${severity}\\] ${title}**: ${share_percent.toFixed(1)} % \\[${id}\\]\n`,
  );
  return [
    `# Diagnosis of ${diagnosed}${source}\n`,
    `**${verdict}**\n`,
    "## Findings\n",
    ...entries,
    "## Limits\n",
    `${limits.map((limit) => `- ${limit}`).join("\n")}\n`,
  ].join("\n");
}
