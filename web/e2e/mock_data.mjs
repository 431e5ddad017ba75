// Canned answers of the agent, as objects.

import { CONTENTION } from "./mock_contention.mjs";
import { CHECKOUT, COMPOSE, containerOf, HTTPBIN, SIDECAR, UNNAMED } from "./mock_names.mjs";
import { random } from "./synthetic.mjs";

const next = random(11);

function process(pid, comm, exe, extra = {}) {
  return {
    id: `${pid}-${pid * 37}`,
    pid,
    parent_pid: 1,
    comm,
    program: comm,
    exe,
    arguments: exe === null ? [] : [exe, "***", "***"],
    uid: 0,
    user: "root",
    cgroup: `/system.slice/${comm}.service`,
    container: null,
    network_namespace: 4026531840,
    threads: 1 + Math.floor(next() * 30),
    rss_bytes: Math.floor(next() ** 3 * 9e8) + 2_000_000,
    cpu_percent: next() < 0.25 ? next() ** 4 * 60 : 0,
    kernel_thread: false,
    ...extra,
  };
}

export function makeProcesses() {
  const pod = (id) => ({
    container: containerOf(id),
    network_namespace: id === HTTPBIN ? 4_026_532_344 : 4_026_532_201,
    user: "envoy",
    uid: 1337,
    cgroup: `/kubepods/burstable/pod1/${id}`,
  });
  const list = [
    process(1, "systemd", "/usr/lib/systemd/systemd"),
    process(4242, "envoy", "/usr/local/bin/envoy", { ...pod(SIDECAR), cpu_percent: 83.7, threads: 14 }),
    process(4243, "pilot-agent", "/usr/local/bin/pilot-agent", { ...pod(SIDECAR), cpu_percent: 1.2 }),
    process(5151, "httpbin", "/usr/bin/python3.12", {
      ...pod(HTTPBIN),
      user: null,
      uid: 10001,
      cpu_percent: 41.3,
    }),
    process(4100, "checkout", "/app/checkout", { ...pod(CHECKOUT), cpu_percent: 12.5, threads: 9 }),
    process(5230, "redis-server", "/usr/bin/redis-server", {
      container: containerOf(COMPOSE),
      network_namespace: 4_026_532_419,
      cpu_percent: 3.1,
    }),
    process(5231, "worker", "/usr/bin/worker", {
      container: containerOf(UNNAMED),
      network_namespace: 4_026_532_520,
      cpu_percent: 2.2,
    }),
    process(5199, "load-gen", "/opt/bench/load-gen", { cpu_percent: 64.9, user: "bench", uid: 1001 }),
    process(6001, '<img src=x>"&', "/tmp/evil\u202egnp.exe", { user: "mallory", uid: 1002 }),
  ];
  const names = [
    "nginx",
    "postgres",
    "redis-server",
    "node",
    "java",
    "sshd",
    "cron",
    "dockerd",
    "containerd",
    "kubelet",
    "prometheus",
    "rsyslogd",
    "bash",
    "sleep",
    "dbus-daemon",
    "otel-collector",
  ];
  for (let i = 0; i < 260; i += 1) {
    const name = names[i % names.length];
    list.push(
      process(7000 + i * 13, name, `/usr/bin/${name}`, i % 9 === 0 ? pod(i % 2 ? SIDECAR : HTTPBIN) : {}),
    );
  }
  for (let i = 0; i < 60; i += 1) {
    list.push(
      process(20 + i, `kworker/${i % 4}:${i}`, null, {
        kernel_thread: true,
        rss_bytes: 0,
        threads: 1,
        cpu_percent: 0,
        cgroup: "/",
      }),
    );
  }
  return list;
}

export const META = {
  version: "0.1.0",
  git_revision: "cf1a708d9e2b",
  node: "worker-03.example",
  kernel: "6.18.0",
  arch: "x86_64",
  cpus: 8,
  btf: true,
  limits: { max_duration_s: 3600, max_frequency_hz: 4999, max_running_tasks: 8 },
  probes: [
    { name: "on_cpu", state: "attached", reason: null, minimum_kernel: "5.15" },
    { name: "off_cpu", state: "available", reason: null, minimum_kernel: "5.15" },
    { name: "wall", state: "available", reason: null, minimum_kernel: "5.15" },
    { name: "process_events", state: "attached", reason: null, minimum_kernel: "5.15" },
    { name: "network_always", state: "attached", reason: null, minimum_kernel: "5.15" },
    { name: "network_send", state: "attached", reason: null, minimum_kernel: "6.3" },
    {
      name: "hardware_cycles",
      state: "unavailable",
      reason: "perf_event_open: no hardware counter on this machine; cpu-clock is used",
      minimum_kernel: "5.15",
    },
    { name: "kernel_symbols", state: "denied", reason: "kernel.kptr_restrict is 2", minimum_kernel: "5.15" },
    { name: "cgroup_filter", state: "available", reason: null, minimum_kernel: "5.15" },
  ],
  auth: "token",
  cpu_budget_percent: 2,
  network: "always",
};

export function selfNow(startedAt, runningTasks) {
  const up = (Date.now() - startedAt) / 1000;
  return {
    cpu_percent: 0.31 + 0.1 * Math.sin(up / 5),
    cpu_seconds: 4.2 + up * 0.004,
    rss_bytes: 38_400_000,
    peak_rss_bytes: 44_100_000,
    memory: {
      used_bytes: 61_300_000,
      own_bytes: 19_200_000,
      copied_bytes: 11_600_000,
      kernel_bytes: 30_500_000,
      ceiling_bytes: 429_496_720,
      ceiling_source: "cgroup",
      cgroup: { path: "/kubepods/pod1/agent", limit_bytes: 536_870_912 },
      stage: "open",
      caches_dropped: 0,
      refusals: 0,
      stopped: 0,
    },
    open_files: 41,
    uptime_s: 8123 + up,
    running_tasks: runningTasks,
    store_bytes: 18_300_000,
    losses: [
      {
        kind: "ring_buffer_full",
        count: 12,
        meaning: "stacks that did not fit the ring buffer and were sent with a later sample",
      },
    ],
    bpf: {
      programs: [
        { name: "on_cpu_sample", run_count: 184223, run_time_ns: 412_233_000, verified_instructions: 18231 },
        { name: "sched_process_exec", run_count: 231, run_time_ns: 401_000, verified_instructions: 412 },
        { name: "sched_process_exit", run_count: 229, run_time_ns: null, verified_instructions: 388 },
      ],
    },
  };
}

const LOSS = {
  kind: "user_stack_unreadable",
  count: 37,
  meaning: "samples counted without user frames because the user stack could not be read",
};

/** Stacks of a result with so many samples; one in a hundred is incomplete. */
function stacksOf(samples) {
  const broken = Math.floor(samples / 100);
  return {
    samples,
    complete: samples - broken,
    unverified: 0,
    incomplete:
      broken === 0 ? [] : [{ reason: "no_unwind_info", meaning: "no unwind information", count: broken }],
    tables: {
      pages_loaded: 122,
      pages_evicted: 0,
      blocks: 244,
      frames: samples * 17,
      captures: 130,
      repaired: 130,
      captures_dropped: 0,
      processes_left_out: 0,
    },
    summary: samples === 0 ? "" : "99.0 % complete stacks; 1.0 % no unwind information",
  };
}

/** The names that the stand-in's processes had when a task began. */
const TARGET_NAMES = { 1: "systemd", 4242: "envoy", 5151: "httpbin" };
const namesOf = ({ pids = [] }) =>
  pids
    .filter((pid) => pid in TARGET_NAMES)
    .map((pid) => ({ pid, start_ticks: pid * 37, comm: TARGET_NAMES[pid] }));

/** What a task of requests looks for. */
export function requestSettings({
  source = null,
  tls = false,
  tls_duty_percent = 100,
  bodies = false,
  raw_paths = false,
  samples = "slow",
}) {
  const sources = source ?? (tls ? ["sockets", "tls"] : ["sockets"]);
  return {
    source: sources,
    tls: sources.includes("tls"),
    tls_duty_percent,
    bodies,
    raw_paths,
    samples,
    rules: [],
    capture_bytes: 1024,
    cpu_percent: 25,
  };
}

const NO_WAITS = {
  above: 0,
  above_ns: 0,
  below: 0,
  below_ns: 0,
  max_wait_ns: null,
  min_wait_ns: 0,
  off_cpu_mode: null,
  sampled: false,
  summary: "",
};

export function makeTask(id, change = {}) {
  const now = Date.now() * 1e6;
  return {
    id: String(id),
    kind: "on_cpu",
    target: { pids: [4242] },
    target_names: namesOf(change.target ?? { pids: [4242] }),
    group: null,
    duration_s: 10,
    frequency_hz: 99,
    wakers: false,
    timed: false,
    waits: NO_WAITS,
    event_loop: null,
    requests: null,
    effective_frequency_hz: 99,
    state: "finished",
    reason: null,
    created_at_ns: now - 200e9,
    started_at_ns: now - 200e9,
    ended_at_ns: now - 190e9,
    progress: 1,
    clock: "cpu-clock",
    samples: 0,
    stacks: stacksOf(change.samples ?? 0),
    coverage:
      (change.samples ?? 0) === 0
        ? null
        : { sampled_ns: 9_950_000_000, accounted_ns: 10_000_000_000, percent: 99.5, processes: 1 },
    losses: [],
    notes: [],
    ...change,
  };
}

export function firstTasks() {
  const now = Date.now() * 1e6;
  return [
    makeTask(11, {
      kind: "requests",
      frequency_hz: null,
      clock: null,
      requests: requestSettings({ source: ["access_log", "sockets"] }),
    }),
    makeTask(1, {
      target: { all: true },
      duration_s: 60,
      samples: 12_044,
      created_at_ns: now - 90_000e9,
      started_at_ns: now - 90_000e9,
      ended_at_ns: now - 89_940e9,
    }),
    makeTask(2, {
      target: { pids: [99999] },
      state: "failed",
      reason: "no process with pid 99999",
      samples: 0,
      clock: null,
      wakers: false,
      effective_frequency_hz: null,
      started_at_ns: null,
      ended_at_ns: now - 3000e9,
      progress: null,
    }),
    makeTask(3, { target: { container: SIDECAR }, state: "cancelled", samples: 211, duration_s: 600 }),
    makeTask(4, {
      target: { pids: [4242, 5151] },
      samples: 100_000,
      wakers: false,
      effective_frequency_hz: 499,
      frequency_hz: 999,
      losses: [LOSS],
      notes: ["the frequency was lowered from 999 to 499 Hz to stay inside the CPU budget of 2 %"],
    }),
    makeTask(5, { target: { pids: [1] }, samples: 0 }),
    makeTask(6, {
      target: { all: true },
      state: "running",
      created_at_ns: now - 30 * 3600e9,
      started_at_ns: now - 30 * 3600e9,
      progress: null,
      duration_s: null,
      ended_at_ns: null,
      samples: 803,
      frequency_hz: 19,
      wakers: false,
      effective_frequency_hz: 19,
    }),
    makeTask(7, { kind: "network", target: { network_namespace: "/run/netns/shop" }, clock: null }),
    makeTask(8, { kind: "requests", frequency_hz: null, clock: null, requests: requestSettings({}) }),
    makeTask(9, {
      kind: "requests",
      frequency_hz: null,
      clock: null,
      requests: requestSettings({
        tls: true,
        tls_duty_percent: 50,
        bodies: true,
        raw_paths: true,
        samples: "all",
      }),
    }),
    // That nothing was seen in is the stand-in's own mark.
    makeTask(10, {
      kind: "requests",
      target: { pids: [1] },
      frequency_hz: null,
      clock: null,
      requests: requestSettings({}),
      requests_seen: 0,
    }),
  ];
}

const did = (samples) => [
  { activity: "running", total_ns: samples * 4e5 },
  { activity: "waiting_for_cpu", total_ns: samples * 1e5 },
  { activity: "idle", total_ns: 1e9 },
];

export const THREADS = [
  ...Array.from({ length: 4 }, (_, i) => ({
    pid: 4242,
    tid: 4250 + i,
    process: "envoy",
    name: `wrk:worker_${i}`,
    samples: 30_000 - i * 6_100,
    activities: did(30_000 - i * 6_100),
  })),
  { pid: 4242, tid: 4242, process: "envoy", name: "envoy", samples: 2_300, activities: did(2_300) },
  { pid: 4242, tid: 4261, process: "envoy", name: "AccessLogFlush", samples: 1_700, activities: did(1_700) },
  { pid: 5151, tid: 5151, process: "httpbin", name: "httpbin", samples: 11_000, activities: did(11_000) },
].map((thread) => ({ container: null, pod: null, ...thread, total_ns: thread.samples * 5e5 }));

/** Of a pod that has ended: one without end has samples of it. */
const ENDED = {
  ...THREADS[0],
  pid: 3131,
  tid: 3131,
  process: "cart",
  name: "cart",
  container: "e".repeat(64),
  pod: "shop/cart-6c8f",
};

/** Of a result without waits nothing is known of what threads did. */
export function threadsOf(task) {
  if (task.samples === 0) return [];
  const hasWaits = task.kind === "off_cpu" || task.kind === "wall";
  const threads = task.duration_s === null ? [...THREADS, ENDED] : THREADS;
  return threads.map((thread) => (hasWaits ? thread : { ...thread, activities: [] }));
}

export function timeline(samples) {
  if (samples === 0) return { bucket_ms: 100, from_ms: 0, counts: [] };
  const wave = random(3);
  return {
    bucket_ms: 100,
    from_ms: 0,
    counts: Array.from({ length: 100 }, (_, i) =>
      Math.round((1 + Math.sin(i / 7)) * 300 + wave() * 260 + (i > 62 && i < 71 ? 900 : 0)),
    ),
  };
}

/** So many processes beside the others, five to a pod. */
export function manyProcesses(count) {
  return Array.from({ length: count }, (_, i) =>
    process(
      20_000 + i,
      i % 5 === 0 ? "envoy" : `app-${i % 7}`,
      `/usr/bin/${i % 5 === 0 ? "envoy" : `app-${i % 7}`}`,
      {
        network_namespace: 4_026_540_000 + Math.floor(i / 5),
      },
    ),
  );
}

const sums = (...rows) => rows.map(([name, count, total_ns]) => ({ name, count, total_ns }));

const BLOCKED = ["interruptible", "uninterruptible", "io", "stopped"];

const activity = (name, title, count, total_ns, states, reasons) => ({
  activity: name,
  title,
  count,
  total_ns,
  states,
  reasons,
});

const ACTIVITIES = [
  activity("running", "running", 300, 4e9, ["on_cpu"], []),
  activity("waiting_for_cpu", "waiting for a CPU", 900, 5e9, ["preempted", "woken"], []),
  activity("lock", "lock", 1900, 5e9, BLOCKED, ["futex"]),
  activity("page_fault", "page fault", 11, 1e9, BLOCKED, ["page fault"]),
  activity("other", "other waits", 200, 2e9, BLOCKED, ["pipe", "child", "io_uring", "other"]),
  activity("idle", "idle", 4000, 83e9, [], []),
];

export const WAITS = {
  idle: {
    count: 4000,
    idle_ns: 83e9,
    total_count: 9000,
    total_ns: 100e9,
    percent: 83,
    summary: "83.0 % idle",
    rules: sums(["envoy_event_loop", 4000, 83e9]),
  },
  states: sums(["sleeping", 4000, 12e9], ["runnable", 900, 5e9]),
  reasons: sums(["futex", 1900, 9e9], ["run queue", 900, 5e9], ["pipe", 200, 2e9], ["page_fault", 11, 1e9]),
  activities: ACTIVITIES,
  contention: CONTENTION,
};
