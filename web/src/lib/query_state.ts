// The state of the page as a query string. Everything a link should carry is here; whatever the
// address bar holds, parsing gives a valid state.

import { isCell } from "./cell";
import type { Scope } from "./checkup_paths";
import { EDGE_LABELS, EDGE_SIGNALS, type EdgeLabel, type EdgeSignal, MAX_LABELS } from "./edge_signals";
import { formatPart, parsePart } from "./flame_window";
import { MAX_PICKED } from "./threads";

export type View =
  | "overview"
  | "pods"
  | "processes"
  | "group"
  | "tasks"
  | "task"
  | "network"
  | "edge"
  | "node"
  | "diagnose"
  | "checkup"
  | "diagnosis"
  | "compare-checkups";
/** How a profile is drawn: from the root up or down, by leaf, or around one function. */
export type Layout = "flame" | "icicle" | "inverted" | "sandwich";
export type ColourMode = "kind" | "module" | "feature";
export type WaitValue = "duration" | "count";
export type IdleView = "hide" | "show" | "only";
export type Tab = "graph" | "table" | "order";
/** How samples over time are drawn: bars, seconds by their fractions, or threads. */
export type TimeView = "bars" | "subsecond" | "threads";
export type DiffNorm = "share" | "rate";
/** Edges as the map of the node, as that of one pod, or as a table; empty for what the page is for. */
export type NetView = "" | "pods" | "map" | "table";
/** What is shown of a task of requests. */
export type RequestsTab = "operations" | "samples" | "sidecars" | "access_logs" | "connections";
export type NetProtocol = "all" | "tcp" | "unix";

export interface PageState {
  readonly view: View;
  /** Task of the task page. */
  readonly id: string;
  /** Filter box of the lists. */
  readonly q: string;
  /** Column of the sort, `-` in front for descending. */
  readonly sort: string;
  /** Processes grouped by container. */
  readonly group: boolean;
  /** Kernel threads shown. */
  readonly kernel: boolean;
  /** Create-task dialog open. */
  readonly create: boolean;
  /** Pids and container that the dialog starts with. */
  readonly pids: readonly number[];
  readonly container: string;
  /** Pod that the dialog starts with: the inode number of its network namespace. */
  readonly pod: string;
  /** The dialog starts three tasks at once. */
  readonly checkup: boolean;
  /** Process whose details are shown, empty for none. */
  readonly process: string;
  readonly tab: Tab;
  readonly layout: Layout;
  readonly search: string;
  /** Path key of the zoomed frame, empty for the root. */
  readonly zoom: string;
  /** Part of the width that is shown (lib/flame_window.ts), empty for that of the zoomed frame. */
  readonly part: string;
  /** Key of the function in the middle of the sandwich. */
  readonly fn: string;
  /** Changes of what is shown (lib/flame_transform.ts). */
  readonly transforms: string;
  readonly colour: ColourMode;
  /** First frames are drawn one by one. */
  readonly unfold: boolean;
  /** The panel about the selected frame is open. */
  readonly panel: boolean;
  /** Time range in milliseconds since the start of the task. */
  readonly from: number | null;
  readonly to: number | null;
  /** Where the strip of a task without end begins; null for its start. */
  readonly since: number | null;
  /** Containers whose processes are shown, by their ids; empty shows all. */
  readonly containers: readonly string[];
  readonly tids: readonly number[];
  /** The threads of `tids` are those that are left out. */
  readonly except: boolean;
  readonly time: TimeView;
  /** Task that the shown one is compared with, empty for none, and the part of it. */
  readonly base: string;
  readonly baseFrom: number | null;
  readonly baseTo: number | null;
  readonly norm: DiffNorm;
  /** What the numbers of waits count. */
  readonly value: WaitValue;
  readonly idle: IdleView;
  /** Who ended a wait stands above it. */
  readonly wakers: boolean;
  /** States and reasons of waits that are shown; empty shows all. */
  readonly states: readonly string[];
  readonly reasons: readonly string[];
  /** Id of the edge whose two sides are shown, empty for none. */
  readonly edge: string;
  /** The page of an edge shows the time before the picked one too. */
  readonly earlier: boolean;
  /** Edges as a map or as a table. */
  readonly net: NetView;
  /** Key of the pod on the map, empty for the one that is picked by itself. */
  readonly map: string;
  /** Key of the picked node or line of the map. */
  readonly node: string;
  /** What stands on the lines of the map. */
  readonly labels: readonly EdgeLabel[];
  /** What makes a line bad. */
  readonly worst: EdgeSignal;
  /** Only bad lines. */
  readonly bad: boolean;
  /** Quiet lines inside the pod too, where the map is crowded. */
  readonly local: boolean;
  /** Cell of a diagnosis that the profile is cut to (lib/cell.ts), empty for everything. */
  readonly cell: string;
  /** Process that a diagnosis is about; null leaves it to `scope`. */
  readonly pid: number | null;
  /** Whose CPU time a check-up is about. */
  readonly scope: Scope;
  /** Check-ups that are compared: before and after. */
  readonly a: string;
  readonly b: string;
  /** Edges too on which nothing happens now. */
  readonly silent: boolean;
  readonly protocol: NetProtocol;
  readonly requests: RequestsTab;
  /** Key of the picked operation, and of the picked sample; empty for none. */
  readonly operation: string;
  readonly sample: string;
  /** What requests that are shown speak, empty for all. */
  readonly speaks: string;
  /** Only requests that failed. */
  readonly failing: boolean;
  /** What the address asks for and is not possible, in words; not part of the address that is written. */
  readonly dead: string;
}

export const START: PageState = {
  view: "overview",
  id: "",
  q: "",
  sort: "",
  group: false,
  kernel: false,
  create: false,
  pids: [],
  container: "",
  pod: "",
  checkup: false,
  process: "",
  tab: "graph",
  layout: "flame",
  search: "",
  zoom: "",
  part: "",
  fn: "",
  transforms: "",
  colour: "kind",
  unfold: false,
  panel: false,
  from: null,
  to: null,
  since: null,
  containers: [],
  tids: [],
  except: false,
  time: "bars",
  base: "",
  baseFrom: null,
  baseTo: null,
  norm: "share",
  value: "duration",
  idle: "hide",
  wakers: false,
  states: [],
  reasons: [],
  edge: "",
  earlier: false,
  net: "",
  map: "",
  node: "",
  labels: ["bytes"],
  worst: "trouble",
  bad: false,
  local: false,
  cell: "",
  pid: null,
  scope: "sidecar",
  a: "",
  b: "",
  silent: false,
  protocol: "all",
  requests: "operations",
  operation: "",
  sample: "",
  speaks: "",
  failing: false,
  dead: "",
};

const VIEWS: readonly View[] = [
  "overview",
  "pods",
  "processes",
  "group",
  "tasks",
  "task",
  "network",
  "edge",
  "node",
  "diagnose",
  "checkup",
  "diagnosis",
  "compare-checkups",
];
const REQUESTS_TABS: readonly RequestsTab[] = [
  "operations",
  "samples",
  "sidecars",
  "access_logs",
  "connections",
];
const LAYOUTS: readonly Layout[] = ["flame", "icicle", "inverted", "sandwich"];
const MAX_LIST = 256;
const PROCESS_ID = /^\d{1,10}-\d{1,20}$/;

function oneOf<T extends string>(value: string | null, allowed: readonly T[], fallback: T): T {
  return allowed.find((item) => item === value) ?? fallback;
}

function natural(value: string | null): number | null {
  return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

function naturals(value: string | null, most = MAX_LIST): number[] {
  return (value ?? "")
    .split(",")
    .slice(0, most)
    .map(natural)
    .filter((item) => item !== null);
}

/** Ids of containers. */
function containerIds(value: string | null): string[] {
  return (value ?? "")
    .split(",")
    .slice(0, MAX_LIST)
    .filter((item) => /^[0-9A-Za-z_.-]{12,128}$/.test(item));
}

/** Names of states and reasons. */
function words(value: string | null): string[] {
  return (value ?? "")
    .split(",")
    .slice(0, MAX_LIST)
    .filter((item) => /^[a-z_ ]{1,24}$/.test(item));
}

/** `none` is an empty list; nothing is what the page starts with. */
function labelsOf(value: string | null): readonly EdgeLabel[] {
  if (value === null || value === "") return START.labels;
  const known = EDGE_LABELS.map(({ key }) => key);
  const found = value.split(",").flatMap((item) => known.filter((key) => key === item));
  return [...new Set(found)].slice(0, MAX_LABELS);
}

interface Named {
  readonly id: string;
  readonly edge: string;
  readonly a: string;
  readonly b: string;
}

/** Pages that need an id of something fall back to the list of such things. */
function possible(view: View, { id, edge, a, b }: Named): View {
  if ((view === "checkup" || view === "diagnosis") && id === "") return "diagnose";
  if (view === "compare-checkups" && (a === "" || b === "")) return "diagnose";
  if ((view === "task" || view === "group") && id === "") return "tasks";
  if (view === "edge" && edge === "") return id === "" ? "network" : "task";
  return view;
}

/** What the address asks for that cannot be: it is said, because something else is shown. */
function deadParts(text: (name: string) => string, view: View, id: string): string[] {
  const asked = text("view").slice(0, 40);
  const dead: string[] = [];
  if (asked !== "" && asked !== view) dead.push(`there is no page “${asked}”`);
  if ((view === "task" || view === "group" || view === "checkup" || view === "diagnosis") && id === "")
    dead.push(text("id") === "" ? `no ${view} is named` : `“${text("id").slice(0, 40)}” is not a ${view}`);
  if (view === "edge" && text("edge") === "") dead.push("no edge is named");
  const process = text("process");
  if (process !== "" && !PROCESS_ID.test(process))
    dead.push(`“${process.slice(0, 40)}” is not a process: PID-STARTTICKS is needed`);
  return dead;
}

/** Reads a query string such as `?view=task&id=7`. */
export function parseState(search: string): PageState {
  const params = new URLSearchParams(search);
  const text = (name: string): string => (params.get(name) ?? "").slice(0, 2000);
  const key = (name: string): string => (/^[0-9a-f]{16}$/.test(text(name)) ? text(name) : "");
  const named = (name: string): string => (/^[0-9A-Za-z._-]{1,64}$/.test(text(name)) ? text(name) : "");
  const id = named("id");
  const view = oneOf(params.get("view"), VIEWS, START.view);
  const tids = naturals(params.get("tid"), MAX_PICKED);
  return {
    view: possible(view, { id, edge: text("edge"), a: named("a"), b: named("b") }),
    id,
    q: text("q"),
    sort: /^-?[a-z_]{1,20}$/.test(text("sort")) ? text("sort") : "",
    group: params.get("group") === "1",
    kernel: params.get("kernel") === "1",
    create: params.get("create") === "1",
    pids: naturals(params.get("pids")),
    container: text("container"),
    pod: /^\d{1,15}$/.test(text("pod")) ? text("pod") : "",
    checkup: params.get("checkup") === "1",
    process: PROCESS_ID.test(text("process")) ? text("process") : "",
    tab: oneOf<Tab>(params.get("tab"), ["graph", "table", "order"], "graph"),
    layout: oneOf<Layout>(params.get("layout"), LAYOUTS, "flame"),
    search: text("search"),
    zoom: key("zoom"),
    part: formatPart(parsePart(text("part"))),
    fn: key("fn"),
    transforms: /^[a-z0-9,-]*$/.test(text("x")) ? text("x") : "",
    colour: oneOf<ColourMode>(params.get("colour"), ["kind", "module", "feature"], "kind"),
    unfold: params.get("unfold") === "1",
    panel: params.get("panel") === "1",
    from: natural(params.get("from")),
    to: natural(params.get("to")),
    since: natural(params.get("since")),
    containers: containerIds(params.get("containers")),
    tids,
    except: params.get("except") === "1" && tids.length > 0,
    time: oneOf<TimeView>(params.get("time"), ["bars", "subsecond", "threads"], START.time),
    base: /^[0-9A-Za-z_-]{1,64}$/.test(text("base")) ? text("base") : "",
    baseFrom: natural(params.get("base_from")),
    baseTo: natural(params.get("base_to")),
    norm: oneOf<DiffNorm>(params.get("norm"), ["share", "rate"], START.norm),
    value: oneOf<WaitValue>(params.get("value"), ["duration", "count"], "duration"),
    idle: oneOf<IdleView>(params.get("idle"), ["hide", "show", "only"], "hide"),
    wakers: params.get("wakers") === "1",
    states: words(params.get("state")),
    reasons: words(params.get("reason")),
    edge: text("edge"),
    earlier: params.get("earlier") === "1",
    net: oneOf<NetView>(
      params.get("net"),
      ["pods", "map", "table"],
      // Links of before there was a map of all pods.
      params.has("map") ? "map" : "",
    ),
    map: text("map").slice(0, 200),
    node: text("node").slice(0, 500),
    labels: labelsOf(params.get("labels")),
    worst: oneOf<EdgeSignal>(
      params.get("worst"),
      EDGE_SIGNALS.map(({ key }) => key),
      "trouble",
    ),
    bad: params.get("bad") === "1",
    local: params.get("local") === "1",
    cell: isCell(text("cell")) ? text("cell") : "",
    pid: natural(params.get("pid")),
    scope: oneOf<Scope>(params.get("scope"), ["sidecar", "all"], "sidecar"),
    a: named("a"),
    b: named("b"),
    silent: params.get("silent") === "1",
    protocol: oneOf<NetProtocol>(params.get("proto"), ["all", "tcp", "unix"], "all"),
    requests: oneOf<RequestsTab>(params.get("requests"), REQUESTS_TABS, START.requests),
    operation: key("operation"),
    sample: key("sample"),
    speaks: /^[a-z0-9_]{1,20}$/.test(text("speaks")) ? text("speaks") : "",
    failing: params.get("failing") === "1",
    dead: deadParts(text, view, id).join("; "),
  };
}

/** The shortest query string that parses to `state`. */
export function formatState(state: PageState): string {
  const params = new URLSearchParams();
  const put = (name: string, value: string): void => {
    if (value !== "") params.set(name, value);
  };
  put("view", state.view);
  put("id", state.id);
  put("q", state.q);
  put("sort", state.sort);
  put("group", state.group ? "1" : "");
  put("kernel", state.kernel ? "1" : "");
  put("create", state.create ? "1" : "");
  put("pids", state.pids.join(","));
  put("container", state.container);
  put("pod", state.pod);
  put("checkup", state.checkup ? "1" : "");
  put("process", state.process);
  put("tab", state.tab === START.tab ? "" : state.tab);
  put("layout", state.layout === START.layout ? "" : state.layout);
  put("search", state.search);
  put("zoom", state.zoom);
  put("part", state.part);
  put("fn", state.fn);
  put("x", state.transforms);
  put("colour", state.colour === START.colour ? "" : state.colour);
  put("unfold", state.unfold ? "1" : "");
  put("panel", state.panel ? "1" : "");
  put("from", state.from === null ? "" : String(state.from));
  put("to", state.to === null ? "" : String(state.to));
  put("since", state.since === null ? "" : String(state.since));
  put("containers", state.containers.join(","));
  put("tid", state.tids.join(","));
  put("except", state.except && state.tids.length > 0 ? "1" : "");
  put("time", state.time === START.time ? "" : state.time);
  put("base", state.base);
  put("base_from", state.baseFrom === null ? "" : String(state.baseFrom));
  put("base_to", state.baseTo === null ? "" : String(state.baseTo));
  put("norm", state.norm === START.norm ? "" : state.norm);
  put("value", state.value === START.value ? "" : state.value);
  put("idle", state.idle === START.idle ? "" : state.idle);
  put("wakers", state.wakers ? "1" : "");
  put("state", state.states.join(","));
  put("reason", state.reasons.join(","));
  put("edge", state.edge);
  put("earlier", state.earlier ? "1" : "");
  put("net", state.net);
  put("map", state.map);
  put("node", state.node);
  const labels = state.labels.join(",");
  put("labels", labels === START.labels.join(",") ? "" : labels || "none");
  put("worst", state.worst === START.worst ? "" : state.worst);
  put("bad", state.bad ? "1" : "");
  put("local", state.local ? "1" : "");
  put("cell", state.cell);
  put("pid", state.pid === null ? "" : String(state.pid));
  put("scope", state.scope === START.scope ? "" : state.scope);
  put("a", state.a);
  put("b", state.b);
  put("silent", state.silent ? "1" : "");
  put("proto", state.protocol === START.protocol ? "" : state.protocol);
  put("requests", state.requests === START.requests ? "" : state.requests);
  put("operation", state.operation);
  put("sample", state.sample);
  put("speaks", state.speaks);
  put("failing", state.failing ? "1" : "");
  return `?${params.toString()}`;
}
