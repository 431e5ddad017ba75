// One request on its way through several processes: its samples on each connection, tied together by evidence alone.

import type {
  EdgeEnd,
  MatchClass,
  RequestEdge,
  RequestPlace,
  RequestSample,
  RequestSidecar,
  Task,
  TaskRequests,
} from "../api/types";
import { endName } from "./edges";
import { count } from "./format";
import { grouped } from "./grouped";
import { type SampleRow, timingParts } from "./requests";

/** What ties a request to the one that came before it. */
export type Evidence = Exclude<MatchClass, "order">;

export interface Leg {
  readonly row: SampleRow;
  /** Nanoseconds after the first leg's beginning. */
  readonly from_ns: number;
  /** Legs that it went through before. */
  readonly depth: number;
  /** Null of the first leg. */
  readonly tied: Evidence | null;
}

/** A time between legs, or what the last leg waited for. */
export interface Between {
  readonly title: string;
  readonly from_ns: number;
  readonly to_ns: number;
  readonly depth: number;
}

export interface Waterfall {
  /** Each leg between the ways there and back of the one that it went out for. */
  readonly rows: readonly (Leg | Between)[];
  readonly legs: readonly Leg[];
  readonly whole_ns: number;
}

export const isLeg = (row: Leg | Between): row is Leg => "row" in row;

/** Samples with the same id of which more are kept say nothing about which belongs to which. */
const MAX_SAME_ID = 256;
const MAX_LEGS = 64;

const placeKey = ({ client, stream }: RequestPlace): string => `${client}\0${stream}`;

const isSame = (a: EdgeEnd, b: EdgeEnd): boolean =>
  a.pid !== null && a.pid === b.pid && a.start_ticks === b.start_ticks;

/** All that ties samples of an answer together. */
export interface LegIndex {
  readonly byPlace: ReadonlyMap<string, readonly SampleRow[]>;
  readonly byRequestId: ReadonlyMap<string, readonly SampleRow[]>;
  /** Empty unless every request is kept: another one of the same trace may be what is looked for. */
  readonly byTraceId: ReadonlyMap<string, readonly SampleRow[]>;
  /** By the place of the request that came in, and of the one that went out. */
  readonly ins: ReadonlyMap<string, readonly Pair[]>;
  readonly outs: ReadonlyMap<string, readonly Pair[]>;
}

interface Pair {
  readonly process: EdgeEnd;
  readonly class: MatchClass;
  readonly in: string;
  readonly out: string;
}

/** Whether every request is there. */
export function hasAll(answer: Pick<TaskRequests, "samples_left_out">, kept: string | undefined): boolean {
  return kept === "all" && answer.samples_left_out === 0;
}

export function legIndex(
  rows: readonly SampleRow[],
  sidecars: readonly RequestSidecar[],
  complete: boolean,
): LegIndex {
  const pairs = sidecars.flatMap(({ process, matched }) =>
    matched.map((pair) => ({
      process,
      class: pair.class,
      in: placeKey(pair.in),
      out: placeKey(pair.out),
    })),
  );
  return {
    byPlace: grouped(rows, ({ sample }) => placeKey(sample)),
    byRequestId: grouped(rows, ({ sample }) => sample.trace.request_id),
    byTraceId: complete ? grouped(rows, ({ sample }) => sample.trace.trace_id) : new Map(),
    ins: grouped(pairs, (pair) => pair.in),
    outs: grouped(pairs, (pair) => pair.out),
  };
}

/** Whether `later` may have gone out for `earlier`: out of the process that this went into, and while it was open. */
function follows(earlier: RequestSample, later: RequestSample): boolean {
  return (
    earlier.edge !== null &&
    later.edge !== null &&
    isSame(earlier.edge.server, later.edge.client) &&
    later.begin_ns >= earlier.begin_ns &&
    later.begin_ns <= earlier.begin_ns + earlier.duration_ns
  );
}

function sameId(all: readonly SampleRow[] | undefined, own: SampleRow): readonly SampleRow[] {
  return all === undefined || all.length > MAX_SAME_ID ? [] : all.filter(({ key }) => key !== own.key);
}

interface Tie {
  readonly row: SampleRow;
  readonly by: Evidence;
}

/** What a request came from, by the best evidence that there is; null where none is left alone by it. */
function cameFrom(index: LegIndex, row: SampleRow): Tie | null {
  const { sample } = row;
  const earlier = (all: readonly SampleRow[]) => all.filter((other) => follows(other.sample, sample));
  const only = (all: readonly SampleRow[], by: Evidence): Tie | null =>
    all.length === 1 ? { row: all[0]!, by } : null;
  const pairs = (index.outs.get(placeKey(sample)) ?? []).filter(
    (pair) => sample.edge !== null && isSame(pair.process, sample.edge.client),
  );
  const [pair] = pairs;
  if (pair !== undefined && pairs.length === 1 && pair.class !== "order") {
    const found = only(earlier(index.byPlace.get(pair.in) ?? []), pair.class);
    if (found !== null) return found;
  }
  const { request_id, trace_id } = sample.trace;
  const byRequest = earlier(sameId(index.byRequestId.get(request_id ?? ""), row));
  if (byRequest.length > 0) return only(byRequest, "request_id");
  return only(earlier(sameId(index.byTraceId.get(trace_id ?? ""), row)), "trace_id");
}

/** What went out for a request. */
function wentOut(index: LegIndex, row: SampleRow): Tie[] {
  const { sample } = row;
  const pairs = index.ins.get(placeKey(sample)) ?? [];
  const { request_id, trace_id } = sample.trace;
  const candidates = new Set([
    ...pairs.flatMap((pair) => index.byPlace.get(pair.out) ?? []),
    ...sameId(index.byRequestId.get(request_id ?? ""), row),
    ...sameId(index.byTraceId.get(trace_id ?? ""), row),
  ]);
  return [...candidates].flatMap((other) => {
    if (!follows(sample, other.sample)) return [];
    const tie = cameFrom(index, other);
    return tie?.row.key === row.key ? [{ row: other, by: tie.by }] : [];
  });
}

const inOnePod = (a: EdgeEnd, b: EdgeEnd | null): boolean =>
  a.network_namespace !== null && a.network_namespace === b?.network_namespace;

/** What a request into a process goes through until it is read: the process, with what it is to the request's ends. */
function wayInto(
  { client, server }: RequestEdge,
  next: EdgeEnd | null,
  seen_by: "client" | "server",
): string {
  const fromPod = inOnePod(server, client);
  const toPod = inOnePod(server, next);
  const proxy = server.program_kind === "proxy";
  const whose =
    proxy && fromPod && !toPod
      ? "the client's sidecar "
      : proxy && toPod && !fromPod
        ? "the server's sidecar "
        : "";
  const name = `${whose}${endName(server)}`;
  // What a client's socket saw begins before the network.
  return seen_by === "server" ? `in ${name}` : `${fromPod ? "inside the pod" : "network"} and ${name}`;
}

const endOf = ({ row, from_ns }: Leg): number => from_ns + row.sample.duration_ns;

/** What lies between a leg and the one behind it. */
function placeOf(earlier: Leg, later: Leg): string {
  const { edge, seen_by } = earlier.row.sample;
  return edge === null ? "not known" : wayInto(edge, later.row.sample.edge?.server ?? null, seen_by);
}

function there(earlier: Leg, later: Leg): Between {
  const title = `There: ${placeOf(earlier, later)}`;
  return { title, from_ns: earlier.from_ns, to_ns: later.from_ns, depth: later.depth };
}

/** From the end of one request to the beginning of the next that went out for the same. */
function between(earlier: Leg, last: Leg, next: Leg): Between {
  const title = `Between: ${placeOf(earlier, next)}`;
  return { title, from_ns: endOf(last), to_ns: next.from_ns, depth: next.depth };
}

/** Null where it was not measured. */
function back(earlier: Leg, later: Leg): Between | null {
  const [a, b] = [earlier.row.sample, later.row.sample];
  if (a.first_byte_ns === null || b.first_byte_ns === null) return null;
  const [from_ns, to_ns] = [later.from_ns + b.first_byte_ns, earlier.from_ns + a.first_byte_ns];
  // An answer that began before the one behind it is none of it, as 100 Continue.
  if (to_ns < from_ns) return null;
  return { title: `Back: ${placeOf(earlier, later)}`, from_ns, to_ns, depth: later.depth };
}

/** What the last leg waited for; null where it was not measured. */
function waited({ row, from_ns, depth }: Leg): Between | null {
  const { sample } = row;
  const wait = timingParts(sample).find(({ kind }) => kind === "waiting");
  if (wait === undefined || sample.edge === null) return null;
  return {
    title: `Waiting: ${wayInto(sample.edge, null, sample.seen_by)}`,
    from_ns: from_ns + wait.from_ns,
    to_ns: from_ns + wait.to_ns,
    depth: depth + 1,
  };
}

/** A sample with all others of the same request. */
export function waterfallOf(index: LegIndex, own: SampleRow): Waterfall {
  let first = own;
  const before = new Set([own.key]);
  for (let tie = cameFrom(index, own); tie !== null && !before.has(tie.row.key); ) {
    first = tie.row;
    before.add(first.key);
    tie = before.size < MAX_LEGS ? cameFrom(index, first) : null;
  }
  const start = first.sample.begin_ns;
  const legs: Leg[] = [];
  const rows: (Leg | Between)[] = [];
  const seen = new Set<string>();
  const add = (leg: Leg): void => {
    seen.add(leg.row.key);
    legs.push(leg);
    rows.push(leg);
    const behind = wentOut(index, leg.row)
      .filter((tie) => !seen.has(tie.row.key))
      .sort((a, b) => a.row.sample.begin_ns - b.row.sample.begin_ns);
    let last: Leg | null = null;
    for (const { row, by } of behind) {
      if (legs.length >= MAX_LEGS) return;
      const next = { row, from_ns: row.sample.begin_ns - start, depth: leg.depth + 1, tied: by };
      // Of several the way there is that of the first, the way back that of the one which ended last.
      if (last === null) rows.push(there(leg, next));
      else if (next.from_ns > endOf(last)) rows.push(between(leg, last, next));
      add(next);
      if (last === null || endOf(next) > endOf(last)) last = next;
    }
    const way = last === null ? null : back(leg, last);
    if (way !== null) rows.push(way);
    const wait = behind.length === 0 ? waited(leg) : null;
    if (wait !== null) rows.push(wait);
  };
  add({ row: first, from_ns: 0, depth: 0, tied: null });
  const ends = legs.map(({ row, from_ns }) => from_ns + row.sample.duration_ns);
  return { rows, legs, whole_ns: Math.max(1, ...ends) };
}

/** Why no other leg of a request is known, and what helps; empty when that is not known either. */
export function aloneBecause(
  { edge, client, stream, trace }: RequestSample,
  { sidecars }: Pick<TaskRequests, "sidecars">,
  task: Pick<Task, "requests">,
): { readonly reasons: readonly string[]; readonly keepAll: boolean } {
  const keepAll = task.requests?.samples !== "all";
  const reasons: string[] = [];
  if (edge === null)
    reasons.push("Its edge had no room in the task: which processes it went between is not known.");
  const ends = edge === null ? [] : [edge.client, edge.server];
  const passing = sidecars.filter(({ process }) => ends.some((end) => isSame(end, process)));
  if (edge !== null && passing.length === 0)
    reasons.push(
      "The task saw neither end both receive and send requests. Watch the sidecar or the service that passes it on as well, for example by the pod.",
    );
  const place = placeKey({ client, stream });
  for (const { process, matched, matched_left_out } of passing) {
    const pair = matched.find((found) => placeKey(found.in) === place || placeKey(found.out) === place);
    if (pair?.class === "order")
      reasons.push(
        `In ${endName(process)} several requests fit equally well: which one belongs to it is not known. With x-request-id it would be.`,
      );
    else if (pair !== undefined)
      reasons.push(`${endName(process)} passed it on, but the sample of that had no room in the task.`);
    else if (matched_left_out > 0)
      reasons.push(`${count(matched_left_out)} pairs of ${endName(process)} had no room in the task.`);
    else if (!keepAll)
      reasons.push(`${endName(process)} answered it by itself, or no request that fits was found there.`);
  }
  if (keepAll && passing.length > 0) {
    const id = trace.request_id === null ? " It has no x-request-id by which they would be found." : "";
    reasons.push(
      `The task keeps only the slowest and the first failing requests of each edge, so its other legs need not be among them.${id} A task that keeps all samples has them.`,
    );
  }
  return { reasons, keepAll: keepAll && passing.length > 0 };
}
