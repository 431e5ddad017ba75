// What the stand-in answers over time: heat maps, stacks in time order, and comparisons.

import { THREADS } from "./mock_data.mjs";
import { random, synthetic } from "./synthetic.mjs";

function lengthMs(task) {
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
  const counts = countsOf(task, bucketMs, 0, 0).map((_, i) =>
    threads.reduce((sum, thread) => sum + thread.counts[i], 0),
  );
  const timeline = { bucket_ms: bucketMs, from_ms: 0, counts };
  if (query.get("by") !== "thread") return timeline;
  threads.sort((a, b) => b.total - a.total);
  return { ...timeline, threads, other_threads: 2 };
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

function encodeDiff({ unitNs, coveredNs, labels, depth, a, b, label }) {
  const out = [];
  const varint = (value) => {
    let rest = value;
    while (rest >= 128) {
      out.push((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    out.push(rest);
  };
  const ids = new Map([["", 0]]);
  for (const { name, module, file } of labels)
    for (const text of [name, module, file]) if (!ids.has(text)) ids.set(text, ids.size);
  for (const char of "PFD1") out.push(char.charCodeAt(0));
  for (const number of [0, ...unitNs, ...coveredNs, ids.size]) varint(number);
  for (const text of ids.keys()) {
    const utf8 = Buffer.from(text);
    varint(utf8.length);
    out.push(...utf8);
  }
  varint(labels.length);
  for (const { name, module, file, line, kind, source } of labels) {
    for (const text of [name, module, file]) varint(ids.get(text));
    varint(line);
    out.push(kind, source);
  }
  varint(depth.length);
  for (const column of [depth, a, b, label]) for (const value of column) varint(value);
  return Uint8Array.from(out);
}

/** The base is the usual tree; on the other side one function has doubled, some are new, some gone. */
export function mockDiff(a, b) {
  const { graph } = synthetic(1500, 7, 12_000);
  const factor = graph.labels.map(({ name }, i) => {
    if (i < 4) return 1;
    if (/finishSpan|FormatterImpl/.test(name)) return 3;
    if (i % 29 === 5) return 0;
    return 0.9 + random(i)() * 0.2;
  });
  const onlyNew = graph.labels.map((_, i) => i > 4 && i % 31 === 7);
  const before = graph.self.map((value, i) => (onlyNew[graph.label[i]] ? 0 : value));
  const after = graph.self.map((value, i) => Math.round(value * factor[graph.label[i]]));
  const none = (task, values) => (task.samples === 0 ? values.map(() => 0) : values);
  return encodeDiff({
    unitNs: [graph.periodNs, graph.periodNs],
    coveredNs: [lengthMs(a) * 1e6, lengthMs(b) * 1e6],
    labels: graph.labels,
    depth: graph.depth,
    a: none(a, before),
    b: none(b, after),
    label: graph.label,
  });
}
