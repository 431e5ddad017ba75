// The way of a request through processes, as a picture shows it: where it is, what is done meanwhile, and where the flame
// graph of that is.

import type { LatencyActivity, LatencyPart, LatencyProcess, RequestLatency } from "../api/types";
import type { Flame } from "./diagnosis";
import { duration, visible } from "./format";
import type { PageState } from "./query_state";

type Place = LatencyPart["place"];
type Kind = LatencyActivity["kind"];

const PLACES: Readonly<Record<Place, { readonly title: string; readonly help: string }>> = {
  inbound_queue: { title: "inbound socket queue", help: "It lies in the socket until the process reads it" },
  request_path: { title: "request path", help: "From reading it to sending it on" },
  network: {
    title: "network",
    help: "Between the two processes, both ways, and until the other one reads it",
  },
  upstream: {
    title: "network and server",
    help: "From sending it on to the first byte of the response: the sockets of the process behind it were not recorded",
  },
  server: { title: "inside", help: "From reading the request to the first byte of the response" },
  response_queue: {
    title: "response socket queue",
    help: "The response lies in the socket until the process reads it",
  },
  response_path: {
    title: "response path",
    help: "From reading the first byte of the response to sending one on",
  },
  response_body: { title: "rest of the response", help: "From its first byte to its last" },
};

/** Hue of a part: what the process itself has, what is between processes, what the one behind it has. */
export type Where = "own" | "between" | "behind";

const WHERE: Readonly<Record<Place, Where>> = {
  inbound_queue: "own",
  request_path: "own",
  network: "between",
  upstream: "behind",
  server: "behind",
  response_queue: "own",
  response_path: "own",
  response_body: "between",
};

export const ACTIVITIES: Readonly<Record<Kind, string>> = {
  running: "computing",
  waiting_for_cpu: "waiting for a CPU",
  asleep: "asleep in a timer",
  lock: "waiting for a lock or another thread",
  file: "waiting for files",
  page_fault: "waiting for memory",
  blocked: "blocked",
  own_requests: "waiting for what it asks",
  queued: "queued behind other requests",
  suspended: "suspended",
};

export interface Step {
  readonly place: Place;
  readonly where: Where;
  readonly title: string;
  readonly help: string;
  readonly process: LatencyProcess | null;
  readonly who: string | null;
  readonly mean_ns: number;
  readonly p95_ns: number | null;
  /** Of the whole, 0 to 1. */
  readonly share: number;
}

export const processName = ({ name, pid }: LatencyProcess): string =>
  pid === null ? visible(name) : `${visible(name)} ${pid}`;

/** Parts in the order of the way. */
export function stepsOf({ parts, mean_ns }: RequestLatency): Step[] {
  return parts.map(({ place, process, mean_ns: mean, p95_ns }) => ({
    place,
    where: WHERE[place],
    ...PLACES[place],
    process,
    who: process === null ? null : processName(process),
    mean_ns: mean,
    p95_ns,
    share: mean_ns > 0 ? mean / mean_ns : 0,
  }));
}

/** "envoy 123 request path 4.00 ms, network 2.00 ms, ..." */
export function journeyText(latency: RequestLatency): string {
  return stepsOf(latency)
    .map(({ who, title, mean_ns }) => `${who === null ? "" : `${who} `}${title} ${duration(mean_ns)}`)
    .join(", ");
}

/** What an activity is, with what it is about. */
export function activityText({ kind, what, what_ns }: LatencyActivity): string {
  const title = ACTIVITIES[kind];
  if (what === null) return title;
  if (kind === "own_requests") return `waiting for ${visible(what)}, at most`;
  return `${title}, ${what_ns === null ? "" : `${duration(what_ns)} of it `}${visible(what)}`;
}

/** How waits of a kind are called in the result of the waits. */
const CUTS: Partial<Readonly<Record<Kind, Pick<Partial<PageState>, "states" | "reasons">>>> = {
  waiting_for_cpu: { states: ["preempted", "woken"] },
  asleep: { reasons: ["sleep"] },
  lock: { reasons: ["futex"] },
  file: { reasons: ["file read", "file write", "fsync"] },
  page_fault: { reasons: ["page fault"] },
};

/** The flame graph of what a process did; null where no stack shows it. */
export function activityFlame(
  flame: Flame,
  process: LatencyProcess,
  { kind }: LatencyActivity,
): Partial<PageState> | null {
  const { task, waits = null, from, to } = flame;
  const { pid } = process;
  if (kind === "running") return task === null ? null : { view: "task", id: task, pid, from, to };
  const cut = CUTS[kind];
  return waits === null || cut === undefined ? null : { view: "task", id: waits, pid, from, to, ...cut };
}

/** While a request lies in a socket, what matters is what the process does instead: it is busy, or has no CPU. */
const QUEUES: ReadonlySet<Place> = new Set(["inbound_queue", "response_queue"]);
const INSTEAD: ReadonlySet<Kind> = new Set(["running", "waiting_for_cpu"]);

/** The flame graph of what the process of a part did most meanwhile; null where nobody has the request or no stack shows it. */
export function stepFlame(
  flame: Flame,
  { inside }: RequestLatency,
  { place, process }: Step,
): { readonly to: Partial<PageState>; readonly text: string } | null {
  if (process === null || process.pid === null) return null;
  const found = inside.find((each) => each.process.pid === process.pid);
  for (const activity of found?.activities ?? []) {
    if (QUEUES.has(place) && !INSTEAD.has(activity.kind)) continue;
    const to = activityFlame(flame, process, activity);
    if (to !== null) return { to, text: ACTIVITIES[activity.kind] };
  }
  return null;
}
