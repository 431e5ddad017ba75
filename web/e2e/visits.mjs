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
  return [...list[1].matchAll(/"([a-z_]+)"/g)].map(([, view]) => view);
}

const query = (state) => new URLSearchParams(state).toString();

/** What is shown once a page is there; every page has one of these. */
export const READY =
  "[role=grid], [role=table], .flame-canvas, .state h2, .cards, .topology svg, svg[role], .edge-page, .empty-state";

/**
 * Pages by name: `{ view, name, query }`. Those that need data are there when the agent has it;
 * `missing` names the views for which it has none.
 */
export async function visitsOf(ask) {
  const { items: tasks } = await ask("/tasks");
  const { items: processes } = await ask("/processes");
  const done = (kind) =>
    tasks.find((task) => task.kind === kind && task.state === "finished" && task.samples > 0);
  const pids = processes.slice(0, 2).map(({ pid }) => pid);
  const visits = [
    { view: "processes", name: "processes", query: "view=processes" },
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
  if (network !== undefined) task("network-task", network.id);
  await addNetwork(ask, visits, network, processes);
  return visits;
}

/** Pages of connections, as far as the router has them. */
async function addNetwork(ask, visits, task, processes) {
  const views = routerViews();
  const { network } = await ask("/meta");
  const table =
    network === "always"
      ? await ask("/network/edges")
      : task === undefined
        ? { edges: [] }
        : await ask(`/tasks/${task.id}/edges`);
  const source = network === "always" ? {} : task === undefined ? null : { id: task.id };
  if (source === null) return;
  if (network === "always") visits.push({ view: "network", name: "network", query: "view=network" });
  const edge = table.edges[0];
  const at = (end) => `${end.pid ?? ""}@${end.address ?? end.ip ?? ""}`;
  const key = edge?.key ?? edge?.id ?? (edge === undefined ? "" : `${at(edge.client)}>${at(edge.server)}`);
  if (views.includes("topology")) {
    visits.push({ view: "topology", name: "topology", query: query({ view: "topology", ...source }) });
    const namespace = processes.find((each) => each.container !== null)?.network_namespace;
    if (namespace !== undefined && namespace !== null)
      visits.push({
        view: "topology",
        name: "topology-pod",
        query: query({ view: "topology", ...source, pod: namespace }),
      });
  }
  if (views.includes("edge"))
    visits.push({ view: "edge", name: "edge", query: query({ view: "edge", ...source, edge: key }) });
}

/** Views of the router that no visit opens. */
export function unvisited(visits) {
  const seen = new Set(visits.map(({ view }) => view));
  return routerViews().filter((view) => !seen.has(view));
}
