// What the stand-in answers over time: heat maps and stacks in time order.

import { THREADS } from "./mock_data.mjs";
import { random } from "./synthetic.mjs";

export function lengthMs(task) {
  const end = task.ended_at_ns ?? Date.now() * 1e6;
  return Math.max(20, Math.round((end - (task.started_at_ns ?? task.created_at_ns)) / 1e6));
}

/** A beat in each second, a burst, and a second of silence, the same for the same moment. */
function intensity(ms, thread) {
  const beat = ms % 1000 < 120 ? 2.4 : 0.7;
  const burst = ms > 4000 && ms < 4400 ? 3 : 0;
  const silent = Math.floor(ms / 1000) % 9 === 6;
  const noise = random(Math.floor(ms / 20) * 31 + thread * 7)();
  return silent ? 0 : (beat + burst) * noise * noise;
}

function countsOf(task, bucketMs, thread, weight) {
  const length = Math.ceil(lengthMs(task) / bucketMs);
  return Array.from({ length: Math.min(length, 100_000) }, (_, i) =>
    Math.round(intensity(i * bucketMs, thread) * weight * (bucketMs / 20)),
  );
}

/** In phases of half a second: at work, waiting for a CPU, in a lock for two seconds, and idle between. */
function did(length, bucketMs, thread) {
  const kinds = ["running", "waiting_for_cpu", "lock", "network", "idle"];
  const times = Object.fromEntries(kinds.map((kind) => [kind, Array(length).fill(0)]));
  for (let i = 0; i < length; i += 1) {
    const ms = i * bucketMs + thread * 700;
    const busy = Math.min(1, intensity(ms, thread) / 2);
    const locked = ms % 9000 < 2000;
    const parts = locked
      ? { lock: 1 }
      : { running: busy * 0.6, waiting_for_cpu: busy * 0.2, network: busy * 0.2, idle: 1 - busy };
    for (const [kind, part] of Object.entries(parts)) times[kind][i] = Math.round(part * bucketMs * 1000);
  }
  return kinds.map((activity) => ({ activity, times_us: times[activity] }));
}

function sumOf(threads) {
  const [{ pid, process, activities }] = threads;
  const add = (columns) => columns[0].map((_, i) => columns.reduce((sum, column) => sum + column[i], 0));
  const counts = add(threads.map((thread) => thread.counts));
  const total = counts.reduce((sum, value) => sum + value, 0);
  const sum = { pid, tid: pid, process, name: process, total, counts };
  if (activities === undefined) return sum;
  const times = (at) => add(threads.map((thread) => thread.activities[at].times_us));
  return {
    ...sum,
    activities: activities.map(({ activity }, at) => ({ activity, times_us: times(at) })),
  };
}

export function mockTimeline(task, query) {
  const bucketMs = Number(query.get("bucket_ms") ?? 100);
  if (task.samples === 0) return { bucket_ms: bucketMs, from_ms: 0, counts: [] };
  const left = (tid) => {
    const all = (name) => query.getAll(name).map(Number);
    return (all("tid").length === 0 || all("tid").includes(tid)) && !all("not_tid").includes(tid);
  };
  const threads = THREADS.filter(({ tid }) => left(tid)).map((thread, i) => {
    const counts = countsOf(task, bucketMs, i, thread.samples / 8_000);
    const total = counts.reduce((sum, value) => sum + value, 0);
    const { pid, tid, process, name } = thread;
    return { pid, tid, process, name, total, counts };
  });
  const first = Math.floor(Number(query.get("from") ?? 0) / bucketMs);
  const counts = countsOf(task, bucketMs, 0, 0)
    .map((_, i) => threads.reduce((sum, thread) => sum + thread.counts[i], 0))
    .slice(first);
  const timeline = { bucket_ms: bucketMs, from_ms: first * bucketMs, counts };
  if (!["thread", "activity"].includes(query.get("by"))) return timeline;
  if (query.get("by") === "activity")
    threads.forEach((thread, row) => {
      thread.activities = did(thread.counts.length, bucketMs, row);
    });
  threads.sort((a, b) => b.total - a.total);
  const processes = [...new Set(threads.map(({ pid }) => pid))].map((pid) =>
    sumOf(threads.filter((thread) => thread.pid === pid)),
  );
  return { ...timeline, threads, processes, other_threads: 2 };
}

const NAMES = [
  "main",
  "Envoy::Event::DispatcherImpl::run(Envoy::Event::Dispatcher::RunType)",
  "event_base_loop",
  "Envoy::Network::ConnectionImpl::onReadReady()",
  "Envoy::Http::Http1::ConnectionImpl::dispatch(Envoy::Buffer::Instance&)",
  "Envoy::Router::Filter::decodeHeaders(Envoy::Http::RequestHeaderMap&, bool)",
  "do_syscall_64",
  "tcp_sendmsg",
  "<b>not&\"bold'</b>\u202e",
];
const STACKS = [
  [0, 1, 2, 3, 4],
  [0, 1, 2, 3, 4, 5],
  [0, 1, 2, 3, 6, 7],
  [0, 1, 2],
  [0, 8],
];

export function mockSequence(task, query) {
  const bucketMs = Number(query.get("bucket_ms") ?? 100);
  const from = Math.floor(Number(query.get("from") ?? 0) / bucketMs) * bucketMs;
  const to = Number(query.get("to") ?? lengthMs(task));
  const buckets = Math.max(1, Math.ceil((to - from) / bucketMs));
  const picked = query.getAll("tid").map(Number);
  const listed = THREADS.filter(({ tid }) => picked.length === 0 || picked.includes(tid)).slice(0, 4);
  const threads = (task.samples === 0 ? [] : listed).map(({ pid, tid, process, name }, row) => {
    const columns = { bucket: [], stack: [], amount: [] };
    let total = 0;
    for (let i = 0; i < buckets; i += 1) {
      const ms = from + i * bucketMs;
      const amount = Math.round(intensity(ms, row) * 2);
      if (amount === 0) continue;
      // A phase lasts about half a second.
      const phase = Math.floor(random(Math.floor(ms / 480) * 13 + row)() * STACKS.length);
      columns.bucket.push(i);
      columns.stack.push(phase);
      columns.amount.push(amount);
      total += amount;
      if (i % 5 === 0) {
        columns.bucket.push(i);
        columns.stack.push((phase + 1) % STACKS.length);
        columns.amount.push(1);
        total += 1;
      }
    }
    return { pid, tid, process, name, total, ...columns };
  });
  return {
    bucket_ms: bucketMs,
    from_ms: from,
    buckets,
    value: "count",
    labels: NAMES.map((name, i) => ({
      name,
      module: i === 6 || i === 7 ? "[kernel]" : "/usr/local/bin/envoy",
      file: "",
      line: 0,
      kind: i === 6 || i === 7 ? 2 : 1,
      source: i === 6 || i === 7 ? 3 : 1,
    })),
    stacks: STACKS,
    threads,
    other_threads: Math.max(0, THREADS.length - listed.length - picked.length),
    other_amount: 412,
    stacks_per_bucket: 32,
  };
}
