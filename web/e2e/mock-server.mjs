// A stand-in for the agent, for looking at the page and testing it without one: serves dist/ with
// the agent's own security headers, and canned data under /api/v1.
// Run alone: node e2e/mock-server.mjs [PORT]

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { HOSTILE, poisoned } from "./hostile.mjs";
import { accessLogStatus } from "./mock_access_logs.mjs";
import { checkupsRoute, checkupTasks, samplesOfCell, taskDiagnosis } from "./mock_checkups.mjs";
import {
  firstTasks,
  META,
  makeProcesses,
  makeTask,
  manyProcesses,
  requestSettings,
  selfNow,
  threadsOf,
  WAITS,
} from "./mock_data.mjs";
import { mockDiff } from "./mock_diff.mjs";
import { edgeConnections, edgeSeries } from "./mock_edge_series.mjs";
import { edgeTable, networkEdges } from "./mock_edges.mjs";
import { containerList, podRefusal } from "./mock_names.mjs";
import { CONFIG, FEATURES, kernelObjects, measuredRuns, processSymbols } from "./mock_node.mjs";
import { overviewOf } from "./mock_overview.mjs";
import { podList, podReadings } from "./mock_pods.mjs";
import { requestsOf } from "./mock_requests.mjs";
import { mockSequence, mockTimeline } from "./mock_time.mjs";
import { attributed, encode, synthetic } from "./synthetic.mjs";

export const TOKEN = "0123456789abcdef".repeat(4);
export const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

const DIST = new URL("../dist/", import.meta.url).pathname;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const TICK_MS = 2000;
/** Fewer would not reach so many frames. */
const SAMPLES_OF_A_FRAME = 40;

class Problem extends Error {
  constructor(status, code, detail, field) {
    super(detail);
    Object.assign(this, { status, code, field });
  }
}

class Agent {
  role = "full";
  startedAt = Date.now();
  processes = makeProcesses();
  tasks = new Map([...checkupTasks(makeTask), ...firstTasks()].map((task) => [task.id, task]));
  nextId = 12;
  listeners = new Set();
  /** As if the process was stopped. */
  frozen = false;
  symbols = [];
  /** The overview is on. */
  overview = true;
  profiles = new Map();
  /** Access logs are received, from Envoys or from none yet, or not received. */
  accessLogs = "on";
  /** Text from outside is as hostile as it can be. */
  hostile = false;
  /** Of task 4. */
  frames = 100_000;
  /** Seconds that the series of an edge has; null: since the start. */
  seriesSeconds = null;
  /** `{ nodes, edges }` of a pod instead of the small mesh. */
  crowd = null;
  /** How often a table of edges is sent. */
  edgesMs = 1000;

  emit(event, data) {
    const sent = this.hostile ? poisoned(data) : data;
    if (this.frozen) return;
    for (const listener of this.listeners)
      listener.write(`event: ${event}\ndata: ${JSON.stringify(sent)}\n\n`);
  }

  running() {
    return [...this.tasks.values()].filter((task) => task.state === "running").length;
  }

  tick() {
    for (const process of this.processes) {
      if (process.cpu_percent > 0)
        process.cpu_percent = Math.max(0.05, process.cpu_percent * (0.85 + Math.random() * 0.3));
    }
    const items = this.processes.map(({ id, cpu_percent, rss_bytes, threads }) => ({
      id,
      cpu_percent,
      rss_bytes,
      threads,
    }));
    this.emit("processes", { items, pods: podReadings(this.processes) });
    this.emit("self", selfNow(this.startedAt, this.running()));
  }

  advance() {
    for (const task of this.tasks.values()) {
      if (task.state !== "running") continue;
      const seconds = (Date.now() * 1e6 - task.started_at_ns) / 1e9;
      task.samples = Math.round(seconds * task.frequency_hz * 0.84);
      if (task.duration_s !== null) {
        task.progress = Math.min(1, seconds / task.duration_s);
        if (task.progress === 1) this.finish(task, "finished");
      }
      this.emit("task", task);
    }
  }

  finish(task, state) {
    task.state = state;
    task.ended_at_ns = Date.now() * 1e6;
  }

  create(body) {
    const { kind, target, duration_s = 10, frequency_hz = 99, group = null } = body;
    if (frequency_hz < 1 || frequency_hz > 4999)
      throw new Problem(422, "invalid_field", "frequency_hz must be between 1 and 4999", "frequency_hz");
    if (duration_s !== null && (duration_s < 1 || duration_s > 3600))
      throw new Problem(422, "invalid_field", "duration_s must be between 1 and 3600", "duration_s");
    const refusal = target.pod === undefined ? null : podRefusal(target.pod);
    if (refusal !== null) throw new Problem(422, "invalid_field", refusal, "target.pod");
    const gone = (target.pids ?? []).find(
      (pid) =>
        !this.processes.some((process) => process.pid === pid) && pid !== Number(process.env.TARGET_PID),
    );
    if (gone !== undefined)
      throw new Problem(422, "invalid_field", `no process with pid ${gone}`, "target.pids");
    const now = Date.now() * 1e6;
    const task = makeTask(this.nextId, {
      kind,
      target,
      group,
      duration_s,
      frequency_hz,
      requests: kind === "requests" ? requestSettings(body) : null,
      effective_frequency_hz: frequency_hz,
      state: "running",
      progress: 0,
      created_at_ns: now,
      started_at_ns: now,
      ended_at_ns: null,
    });
    this.nextId += 1;
    this.tasks.set(task.id, task);
    this.emit("task", task);
    return task;
  }

  import(name, body) {
    if (!/ \d+\n/.test(body))
      throw new Problem(422, "unusable_profile", "line 1: no count follows the stack; write `a;b;c 12`");
    const file = { name, format: "folded", values: "counts", has_times: false, has_threads: false };
    const task = makeTask(this.nextId, {
      kind: "imported",
      target: { imported: file },
      duration_s: null,
      frequency_hz: null,
      effective_frequency_hz: null,
      clock: null,
      samples: 5000,
      created_at_ns: Date.now() * 1e6,
      started_at_ns: null,
      ended_at_ns: null,
    });
    this.nextId += 1;
    this.tasks.set(task.id, task);
    return task;
  }

  rename() {
    let at = 0;
    return (text) => {
      at += 1;
      return this.hostile ? `${HOSTILE[at % HOSTILE.length]} ${text}` : text;
    };
  }

  profile(task, query) {
    const inCell = samplesOfCell(query.get("cell"));
    if (inCell !== null)
      return inCell === 0 ? emptyProfile() : synthetic(900, 5, inCell, this.rename()).bytes;
    const frames =
      task.id === "4" ? this.frames : task.samples === 0 ? 0 : task.state === "running" ? 1500 : 6000;
    const samples = task.state === "running" ? "" : task.samples;
    const features = query.get("features") === "true";
    const key = `${frames} ${samples} ${query.get("from")} ${query.getAll("tid")} ${features}`;
    if (!this.profiles.has(key)) {
      const seed = 7 + query.getAll("tid").length;
      const made = frames === 0 ? null : synthetic(frames, seed, Math.max(task.samples, 1000), this.rename());
      // A bench of so many frames must have them.
      if (task.id === "4" && made.graph.depth.length !== frames)
        throw new Error(`${made.graph.depth.length} frames were made instead of ${frames}`);
      const bytes = features && made !== null ? encode(attributed(made.graph)) : made?.bytes;
      this.profiles.set(key, bytes ?? emptyProfile());
    }
    return this.profiles.get(key);
  }
}

/** The exported file, as the agent makes it (render/html.rs). */
function offlineFile(bytes) {
  const about = {
    title: "On-CPU time of </script><img src=x> (task 1)",
    unit: "samples",
    time: "on the CPU",
    idle: null,
    version: "0.1.0",
  };
  return readFileSync(join(DIST, "viewer.html"), "utf8")
    .replace("@@ABOUT@@", Buffer.from(JSON.stringify(about)).toString("base64"))
    .replace("@@PROFILE@@", gzipSync(bytes).toString("base64"));
}

function emptyProfile() {
  // Magic, no flags, no period, one empty string and "all", one label, one node.
  return Uint8Array.of(0x50, 0x46, 0x47, 0x31, 0, 0, 2, 0, 3, 97, 108, 108, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0);
}

function sendJson(response, status, value) {
  const type = status >= 400 ? "application/problem+json" : "application/json";
  response.writeHead(status, { ...HEADERS, "Content-Type": type, "Cache-Control": "no-store" });
  const sent = response.hostile ? poisoned(value) : value;
  response.end(status === 204 ? undefined : JSON.stringify(sent));
}

/** A diagnosis, or its report. */
function sendDiagnosis(response, status, value) {
  if (typeof value !== "string") return sendJson(response, status, value);
  response.writeHead(status, { ...HEADERS, "Content-Type": "text/markdown; charset=utf-8" });
  return response.end(value);
}

/** The table at once and each second; `last` ends the stream after one. */
function streamEdges(response, table, last, everyMs = 1000) {
  response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const send = () =>
    response.write(
      `event: edges\ndata: ${JSON.stringify(response.hostile ? poisoned(table()) : table())}\n\n`,
    );
  send();
  if (last) return response.end();
  const timers = [setInterval(send, everyMs), setInterval(() => response.write(": ping\n\n"), TICK_MS)];
  return response.on("close", () => timers.forEach(clearInterval));
}

/** `/edges/ID/series` of a table after so many seconds. */
function seriesRoute(table, seconds, [id, what], query, response, live) {
  const edge = table.edges.find((found) => found.id === id);
  if (edge === undefined) throw new Problem(404, "not_found", `no edge ${id}`);
  if (what === "connections") return sendJson(response, 200, edgeConnections(edge, live));
  const ms = (name) => (query.has(name) ? Number(query.get(name)) : null);
  const range = { from: ms("from"), to: ms("to") };
  return sendJson(response, 200, edgeSeries(edge, table.unavailable, seconds, range));
}

/** How long a task has counted. */
function secondsOf(task) {
  const ended = task.ended_at_ns ?? Date.now() * 1e6;
  return Math.round((ended - task.started_at_ns) / 1e9) % 600;
}

function edgesRoute(task, [more, last], query, response, crowd) {
  const seconds = secondsOf(task);
  const table = () => ({ state: task.state, reason: task.reason, ...edgeTable(seconds, crowd) });
  const events = more === "events";
  if (last !== undefined)
    return seriesRoute(table(), seconds, [more, last], query, response, task.state === "running");
  return events ? streamEdges(response, table, task.state !== "running") : sendJson(response, 200, table());
}

function taskRoute(agent, method, [id, part, more, last], query, response) {
  const task = agent.tasks.get(id);
  if (task === undefined) throw new Problem(404, "not_found", `no task ${id}`);
  if (part === "stop" && method === "POST") {
    agent.finish(task, "finished");
    agent.emit("task", task);
    return sendJson(response, 200, task);
  }
  if (part === "edges") return edgesRoute(task, [more, last], query, response, agent.crowd);
  if (part === "requests") return sendJson(response, 200, requestsOf(task, secondsOf(task)));
  if (part === "diagnosis") return sendDiagnosis(response, 200, taskDiagnosis(task, query));
  if (part === "threads") return sendJson(response, 200, { items: threadsOf(task) });
  if (part === "waits") return sendJson(response, 200, WAITS);
  if (part === "quality") return sendJson(response, 200, quality(task.samples, agent.symbols.length > 0));
  if (part === "timeline") return sendJson(response, 200, mockTimeline(task, query));
  if (part === "sequence") return sendJson(response, 200, mockSequence(task, query));
  if (part === "profile") {
    const format = query.get("format");
    const body =
      format === "flamegraph"
        ? agent.profile(task, query)
        : format === "html"
          ? offlineFile(agent.profile(task, query))
          : Buffer.from("main;work 10\n");
    response.writeHead(200, { ...HEADERS, "Content-Type": "application/octet-stream" });
    return response.end(body);
  }
  if (method === "DELETE") {
    agent.tasks.delete(id);
    agent.emit("task_deleted", { id });
    return sendJson(response, 204);
  }
  return sendJson(response, 200, task);
}

const BUILD_ID = "9e558093aa01";

/** Two thirds of the frames have names until a symbol file is given; one of each stack is the loop of an interpreter. */
function quality(samples, given) {
  const frames = samples * 20;
  const unnamed = given ? 0 : Math.round(frames / 3);
  const modules = [{ path: "/usr/bin/envoy", build_id: BUILD_ID, unnamed, inferred: 0 }];
  const names = {
    frames,
    exact: frames - unnamed - samples,
    inferred: 0,
    interpreter: samples,
    jit: 0,
    unnamed,
    sources: [{ source: "elf_symbol", frames: frames - unnamed }],
    samples,
    samples_with_a_name: samples,
    modules: unnamed > 0 ? modules : [],
    runtimes: [
      { runtime: "Lua", frames: samples, samples, remedy: "its interpreter has no way to give names" },
    ],
  };
  return { names };
}

function symbolsRoute(agent, request, id, response, body) {
  if (request.method === "GET")
    return sendJson(response, 200, { items: agent.symbols, total: agent.symbols.length, max_bytes: 4 << 28 });
  if (request.method === "DELETE") {
    agent.symbols = agent.symbols.filter((file) => file.build_id !== id);
    return sendJson(response, 204);
  }
  if (!body.startsWith("\u007fELF"))
    throw new Problem(422, "unusable_symbols", "the file is not a little-endian ELF file");
  const file = {
    build_id: id ?? BUILD_ID,
    bytes: body.length,
    origin: "uploaded",
    added_at_ns: Date.now() * 1e6,
    has_symbols: true,
    has_debug_information: false,
  };
  agent.symbols = [file];
  return sendJson(response, 201, file);
}

function apiRoute(agent, request, url, response, body) {
  if (request.headers.authorization === undefined)
    throw new Problem(401, "missing_token", "the request has no token");
  if (request.headers.authorization !== `Bearer ${TOKEN}`)
    throw new Problem(401, "wrong_token", "the token is not the agent's");
  const [resource, ...rest] = url.pathname.slice("/api/v1/".length).split("/");
  if (agent.role === "read_only" && (request.method !== "GET" || resource === "support-bundle"))
    throw new Problem(403, "read_only_token", "this token may only look");
  if (resource === "meta") return sendJson(response, 200, { ...META, role: agent.role });
  if (resource === "probes") return sendJson(response, 200, { items: META.probes });
  if (resource === "self" && rest[0] === "kernel") {
    const isMeasured = rest[1] === "statistics";
    return sendJson(response, 200, isMeasured ? measuredRuns(agent, JSON.parse(body)) : kernelObjects(agent));
  }
  if (resource === "features") return sendJson(response, 200, { items: FEATURES });
  if (resource === "config") return sendJson(response, 200, { items: CONFIG });
  if (resource === "support-bundle") {
    response.writeHead(200, { ...HEADERS, "Content-Type": "application/gzip" });
    return response.end(Buffer.from("1f8b0800000000000003", "hex"));
  }
  if (resource === "processes" && rest.length > 0) {
    const process = agent.processes.find(({ id }) => id === rest[0]);
    if (process === undefined)
      throw new Problem(404, "not_found", `there is no process ${rest[0]}; it may have exited`);
    if (rest[1] === "symbols") return sendJson(response, 200, processSymbols(process));
    const thread_list = Array.from({ length: process.threads }, (_, i) => ({
      tid: process.pid + i,
      name: i === 0 ? process.comm : `wrk:worker_${i - 1}`,
      cpu_time_ns: 9e9 / (i + 1),
    }));
    return sendJson(response, 200, { ...process, thread_list });
  }
  if (resource === "self") return sendJson(response, 200, selfNow(agent.startedAt, agent.running()));
  if (resource === "processes") {
    const kernel = url.searchParams.get("kernel") === "true";
    const items = agent.processes.filter((process) => kernel || !process.kernel_thread);
    return sendJson(response, 200, { items, total: items.length });
  }
  if (resource === "overview") return sendJson(response, 200, overviewOf(agent));
  if (resource === "pods") return sendJson(response, 200, podList(agent.processes));
  if (resource === "access-logs") return sendJson(response, 200, accessLogStatus(agent.accessLogs));
  if (resource === "containers") return sendJson(response, 200, containerList(agent.processes));
  if (resource === "events") {
    response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    response.write(": hello\n\n");
    agent.listeners.add(response);
    return response.on("close", () => agent.listeners.delete(response));
  }
  if (resource === "network" && rest[2] !== undefined) {
    const seconds = agent.seriesSeconds ?? Math.min(180, Math.round((Date.now() - agent.startedAt) / 1000));
    const table = networkEdges(agent.startedAt, agent.crowd);
    return seriesRoute(table, seconds, rest.slice(1), url.searchParams, response, true);
  }
  if (resource === "network" && rest[0] === "edges")
    return rest[1] === "events"
      ? streamEdges(response, () => networkEdges(agent.startedAt, agent.crowd), false, agent.edgesMs)
      : sendJson(response, 200, networkEdges(agent.startedAt, agent.crowd));
  if (resource === "imports")
    return sendJson(response, 201, agent.import(url.searchParams.get("name"), body));
  if (resource === "diff") {
    const [a, b] = ["a", "b"].map((side) => agent.tasks.get(url.searchParams.get(side)));
    if (a === undefined || b === undefined) throw new Problem(404, "not_found", "no such task");
    if (a.kind !== b.kind)
      throw new Problem(422, "invalid_field", `task ${a.id} is ${a.kind} and task ${b.id} is ${b.kind}`, "b");
    const answer = mockDiff(a, b, url.searchParams);
    if (!(answer instanceof Uint8Array)) return sendJson(response, 200, answer);
    response.writeHead(200, { ...HEADERS, "Content-Type": "application/vnd.profiler-agent.diff" });
    return response.end(answer);
  }
  if (resource === "checkups")
    return sendDiagnosis(response, ...checkupsRoute(agent, request.method, rest, url.searchParams, body));
  if (resource === "symbols") return symbolsRoute(agent, request, rest[0], response, body);
  if (resource === "tasks" && rest.length === 0) {
    if (request.method === "POST") return sendJson(response, 201, agent.create(JSON.parse(body)));
    const group = url.searchParams.get("group");
    const items = [...agent.tasks.values()]
      .reverse()
      .filter((task) => group === null || task.group === group);
    return sendJson(response, 200, { items, total: items.length });
  }
  if (resource === "tasks") return taskRoute(agent, request.method, rest, url.searchParams, response);
  throw new Problem(404, "not_found", "no such resource");
}

function serveFile(url, response) {
  const path = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
  const allowed = path === "/index.html" || path.startsWith("/assets/");
  try {
    if (!allowed) throw new Error("not part of the page");
    const content = readFileSync(join(DIST, path));
    response.writeHead(200, {
      ...HEADERS,
      "Content-Type": TYPES[extname(path)] ?? "application/octet-stream",
    });
    response.end(content);
  } catch {
    response.writeHead(404, HEADERS);
    response.end();
  }
}

/** Starts on a free port (or `port`); `url` carries the token. */
export async function startMock(port = 0, options = {}) {
  const { processes = 0, tickMs = TICK_MS, ...state } = options;
  const agent = new Agent();
  Object.assign(agent, state);
  agent.tasks.get("4").samples = agent.frames * SAMPLES_OF_A_FRAME;
  agent.processes.push(...manyProcesses(processes));
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://mock");
    // A stopped process takes connections and says nothing.
    if (agent.frozen) return;
    response.hostile = agent.hostile;
    if (!url.pathname.startsWith("/api/v1/")) return serveFile(url, response);
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      try {
        apiRoute(agent, request, url, response, Buffer.concat(parts).toString());
      } catch (error) {
        const { status = 500, code = "internal", message, field } = error;
        sendJson(response, status, {
          type: "about:blank",
          title: code,
          status,
          detail: message,
          code,
          ...(field ? { field } : {}),
        });
      }
    });
  });
  // Who is lost keeps the port, which another program could take otherwise.
  let isLost = false;
  server.on("connection", (socket) => isLost && socket.destroy());
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  // The stream is never silent, however seldom there is something new.
  const beat = () => {
    if (!agent.frozen) for (const listener of agent.listeners) listener.write(": beat\n\n");
  };
  const timers = [
    setInterval(() => agent.tick(), tickMs),
    setInterval(() => agent.advance(), 300),
    setInterval(beat, TICK_MS),
  ];
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    agent,
    origin,
    url: `${origin}/#token=${TOKEN}`,
    /** Ends all connections and takes none. */
    lose: () => {
      isLost = true;
      server.closeAllConnections();
    },
    /** Takes connections again. */
    find: () => {
      isLost = false;
    },
    close: () => {
      timers.forEach(clearInterval);
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await startMock(Number(process.argv[2] ?? 7118));
  console.log(`listening on ${url}`);
}
