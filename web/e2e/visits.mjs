// The one list of pages: every view of the router has a visit, with and without what can be open on
// it. Addresses are made from what the agent answers, so that the same list serves the stand-in,
// recorded data and a real agent.

import { readFileSync } from "node:fs";

/** Asks the agent as the page does. `agentUrl` is as the agent prints it. */
export function client(agentUrl) {
  const { origin, hash } = new URL(agentUrl);
  const token = new URLSearchParams(hash.slice(1)).get("token");
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  return async (path, init = {}) => {
    const response = await fetch(`${origin}/api/v1${path}`, { ...init, headers });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 200)}`);
    return text === "" ? null : JSON.parse(text);
  };
}

/** The views that the router knows, read from its source. */
export function routerViews() {
  const source = readFileSync(new URL("../src/lib/query_state.ts", import.meta.url), "utf8");
  const list = /const VIEWS: readonly View\[\] = \[([^\]]+)\]/.exec(source);
  if (list === null) throw new Error("query_state.ts has no list VIEWS any more");
  return [...list[1].matchAll(/"([a-z_-]+)"/g)].map(([, view]) => view);
}

const query = (state) => new URLSearchParams(state).toString();

/** What is shown once a page is there; every page has one of these. */
export const READY =
  "[role=grid], .flame-canvas, .state h2, .cards, .map, .row-card, .group-page, main section h1";

/** Pages by name: `{ view, name, query }`. Those that need data are there when the agent has it. */
export async function visitsOf(ask) {
  const { items: tasks } = await ask("/tasks");
  const { items: processes } = await ask("/processes");
  const done = (kind) =>
    tasks.find((task) => task.kind === kind && task.state === "finished" && task.samples > 0);
  const pids = processes.slice(0, 2).map(({ pid }) => pid);
  const visits = [
    { view: "overview", name: "overview", query: "view=overview" },
    { view: "overview", name: "overview-nothing", query: "view=overview&q=nothing-has-this-name" },
    { view: "pods", name: "pods", query: "view=pods" },
    { view: "processes", name: "processes", query: "view=processes" },
    {
      view: "processes",
      name: "process",
      query: query({ view: "processes", process: processes[0]?.id ?? "" }),
    },
    { view: "processes", name: "processes-grouped", query: "view=processes&group=1" },
    { view: "processes", name: "processes-nothing", query: "view=processes&q=nothing-has-this-name" },
    { view: "processes", name: "create", query: query({ view: "processes", create: 1, pids }), dialog: true },
    { view: "tasks", name: "tasks", query: "view=tasks" },
    { view: "task", name: "task-missing", query: "view=task&id=99999", fails: true },
    { view: "node", name: "node", query: "view=node" },
  ];
  const task = (name, id, more = {}) =>
    visits.push({ view: "task", name, query: query({ view: "task", id, ...more }) });
  const onCpu = done("on_cpu") ?? done("imported");
  if (onCpu !== undefined) {
    task("on-cpu", onCpu.id);
    task("on-cpu-icicle-search", onCpu.id, { layout: "icicle", search: "Http" });
    task("on-cpu-table", onCpu.id, { tab: "table" });
    task("on-cpu-range", onCpu.id, { from: 1000, to: 3000 });
    task("on-cpu-inverted", onCpu.id, { layout: "inverted", colour: "module" });
    task("on-cpu-sandwich", onCpu.id, { layout: "sandwich", panel: 1, x: "p" });
    task("on-cpu-order", onCpu.id, { tab: "order" });
    task("on-cpu-subsecond", onCpu.id, { time: "subsecond" });
    task("on-cpu-threads", onCpu.id, { time: "threads" });
  }
  for (const kind of ["off_cpu", "wall", "imported"]) {
    const found = done(kind);
    if (found === undefined) continue;
    task(kind.replace("_", "-"), found.id);
    if (found.wakers) task(`${kind.replace("_", "-")}-wakers`, found.id, { wakers: 1 });
  }
  for (const state of ["failed", "running", "queued", "cancelled"]) {
    const found = tasks.find((each) => each.state === state);
    if (found !== undefined) task(`task-${state}`, found.id);
  }
  const empty = tasks.find(
    (each) => each.state === "finished" && each.samples === 0 && each.kind === "on_cpu",
  );
  if (empty !== undefined) task("task-empty", empty.id);
  const network = tasks.find((each) => each.kind === "network");
  const group = tasks.find((each) => each.group !== null && each.group !== undefined)?.group;
  visits.push({ view: "group", name: "group", query: query({ view: "group", id: group ?? "none-such" }) });
  await addRequests(ask, tasks, task);
  const other = tasks.find(
    (each) =>
      each.id !== onCpu?.id && each.kind === "on_cpu" && each.state === "finished" && each.samples > 0,
  );
  if (onCpu !== undefined && other !== undefined) task("diff", onCpu.id, { base: other.id });
  await addNetwork(ask, visits, network);
  await addDiagnoses(ask, visits, tasks);
  return visits;
}

/** The edge that is used most: others of a node may be gone before their page is opened. */
function busiest(edges) {
  const writes = ({ metrics }) => (metrics.client?.write?.count ?? 0) + (metrics.server?.write?.count ?? 0);
  return edges.toSorted((one, other) => writes(other) - writes(one))[0];
}

/** Pages of connections: of the node where they are always watched, and of a task. */
async function addNetwork(ask, visits, task) {
  const { network } = await ask("/meta");
  const add = (view, name, state) => visits.push({ view, name, query: query({ view, ...state }) });
  if (network === "always") {
    const { edges } = await ask("/network/edges");
    add("network", "network-pods");
    add("network", "network-map", { net: "map" });
    add("network", "network-bad", { net: "map", bad: 1, worst: "rtt", labels: "rtt,ops" });
    add("network", "network-table", { net: "table" });
    const edge = busiest(edges);
    if (edge !== undefined) {
      add("network", "network-sides", { net: "table", edge: edge.id });
      add("edge", "edge", { edge: edge.id });
    }
  }
  if (task === undefined) return;
  const { edges } = await ask(`/tasks/${task.id}/edges`);
  add("task", "network-task-pods", { id: task.id, net: "pods" });
  add("task", "network-task-map", { id: task.id, net: "map" });
  add("task", "network-task-table", { id: task.id, net: "table" });
  if (edges.length > 0) add("edge", "edge-of-task", { id: task.id, edge: edges[0].id });
}

/** What tasks of requests found, and everything of one that found something. */
async function addRequests(ask, tasks, task) {
  const found = tasks.filter(({ kind, state }) => kind === "requests" && state === "finished");
  let whole = false;
  for (const [i, { id }] of found.entries()) {
    task(`requests-${i + 1}`, id);
    const { operations, sidecars, access_logs } = await ask(`/tasks/${id}/requests`);
    if ((access_logs?.envoys.length ?? 0) > 0) task("requests-access-logs", id, { requests: "access_logs" });
    if (whole || operations.length === 0) continue;
    whole = true;
    task("requests-failing", id, { failing: 1, sort: "-errors_server" });
    task("requests-samples", id, { requests: "samples" });
    if (sidecars.length > 0) task("requests-sidecars", id, { requests: "sidecars" });
    task("requests-connections", id, { requests: "connections", net: "table" });
  }
}

/** Check-ups, their comparison, and the diagnoses of single results. */
async function addDiagnoses(ask, visits, tasks) {
  const add = (view, name, state, more = {}) =>
    visits.push({ view, name, query: query({ view, ...state }), ...more });
  add("diagnose", "diagnose", {});
  const done = tasks.filter(({ state, samples }) => state === "finished" && samples > 0);
  const single = done.filter(({ kind }) => kind === "on_cpu").toReversed();
  if (single.length > 0) add("diagnosis", "diagnosis-of-task", { id: single[0].id });
  const poor = done.find(({ id }) => id === "1");
  if (poor?.kind === "on_cpu" && poor.id !== single[0]?.id)
    add("diagnosis", "diagnosis-of-first-task", { id: poor.id });
  const wall = done.find(({ kind }) => kind === "wall");
  if (wall !== undefined) add("diagnosis", "diagnosis-of-wall", { id: wall.id });
  const cut = single[0];
  if (cut !== undefined) add("task", "cell-of-diagnosis", { id: cut.id, cell: "kernel_receive" });
  const known = (await ask("/checkups")).filter(({ state }) => state === "finished");
  known.sort((a, b) => a.created_ns - b.created_ns);
  const [first] = known;
  if (first !== undefined) add("checkup", "checkup", { id: first.id });
  else add("checkup", "checkup-missing", { id: "checkup-none" }, { fails: true });
  const [a, b] = known.length > 1 ? known.map(({ id }) => id) : ["checkup-none", "checkup-none-either"];
  add("compare-checkups", "compare-checkups", { a, b }, { fails: known.length < 2 });
}

/** Views of the router that no visit opens. */
export function unvisited(visits) {
  const seen = new Set(visits.map(({ view }) => view));
  return routerViews().filter((view) => !seen.has(view));
}
