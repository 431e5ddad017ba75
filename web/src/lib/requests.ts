// Operations of requests: what the table sorts, filters and shows, as pure functions.

import type {
  EdgeEnd,
  NamedContainers,
  RequestEdge,
  RequestOperation,
  RequestOutcome,
  RequestSample,
  RequestSidecar,
  Target,
  Task,
  TaskRequests,
} from "../api/types";
import { nameText } from "./container_names";
import { endName } from "./edges";
import { hashText } from "./flame_index";
import { count, duration } from "./format";
import { selectorMeans } from "./pod_selector";
import { sourceTitle } from "./request_source";

const PROTOCOLS: Readonly<Record<string, string>> = {
  http1: "HTTP/1",
  http2: "HTTP/2",
  grpc: "gRPC",
  websocket: "WebSocket",
  dns: "DNS",
  redis: "Redis",
  postgresql: "PostgreSQL",
  mysql: "MySQL",
  kafka: "Kafka",
  mongodb: "MongoDB",
  tls: "TLS",
  unknown: "unknown",
};

/** A protocol as people write it; one that this page does not know stays as it is. */
export function protocolTitle(protocol: string): string {
  return PROTOCOLS[protocol] ?? protocol;
}

/** What is told apart; all requests with the same are one operation. */
type Named = Pick<RequestOperation, "edge" | "protocol" | "tls" | "method" | "route">;

function identity({ edge, protocol, tls, method, route }: Named): string {
  const text = (value: string | null): string => (value === null ? "-" : `+${value}`);
  return [edge?.id ?? "", protocol, tls ? "tls" : "", text(method), text(route)].join("\0");
}

/** 16 hexadecimal digits that stay the same in every answer. */
export function operationKey(operation: Named & { readonly other: boolean }): string {
  const text = `${operation.other ? "other" : "one"}\0${identity(operation)}`;
  const part = (seed?: number): string => hashText(text, seed).toString(16).padStart(8, "0");
  return part(0x9e3779b9) + part();
}

/** A name for an operation: what is asked for. */
export function operationName({
  method,
  route,
  other,
}: Pick<RequestOperation, "method" | "route" | "other">): string {
  if (other) return "other operations";
  if (method === null && route === null) return "not seen";
  return [method, route].filter((part) => part !== null).join(" ");
}

export function edgeName(edge: RequestEdge | null): string {
  if (edge === null) return "other edges (limit reached)";
  const port = edge.server.port === null ? "" : `:${edge.server.port}`;
  return `${endName(edge.client)} → ${endName(edge.server)}${port}`;
}

/** What a row of the table shows. */
export interface OperationRow {
  readonly key: string;
  readonly operation: RequestOperation;
  /** Requests per second; null while it is not known for how long they were counted. */
  readonly rate: number | null;
}

/** Seconds in which an answer was counted; null when it does not say so. */
export function countedSeconds({ window }: Pick<TaskRequests, "window">): number | null {
  if (window === null || window.to_ns <= window.from_ns) return null;
  return (window.to_ns - window.from_ns) / 1e9;
}

/** The same for one operation: those inside TLS are counted only while there are probes. */
export function operationSeconds(
  answer: Pick<TaskRequests, "window" | "plaintext">,
  { tls }: Pick<RequestOperation, "tls">,
): number | null {
  const { plaintext } = answer;
  if (!tls || plaintext === null || plaintext.attached_percent >= 100) return countedSeconds(answer);
  return plaintext.attached_ns > 0 ? plaintext.attached_ns / 1e9 : null;
}

export function operationRows(answer: TaskRequests): OperationRow[] {
  return answer.operations.map((operation) => {
    const seconds = operationSeconds(answer, operation);
    return {
      key: operationKey(operation),
      operation,
      rate: seconds === null ? null : operation.count / seconds,
    };
  });
}

function words(filter: string): string[] {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

function endText(end: EdgeEnd, named: NamedContainers): string {
  const { comm, name, pid, container, address, port } = end;
  const names = nameText(named[container ?? ""]);
  return [comm ?? "", name ?? "", pid ?? "", container ?? "", names, address, port ?? ""].join(" ");
}

function edgeText(edge: RequestEdge | null, named: NamedContainers): string {
  if (edge === null) return "";
  return `${endText(edge.client, named)} ${endText(edge.server, named)} ${edge.original_destination ?? ""}`;
}

/** Which requests are shown. */
export interface RequestFilter {
  /** Every word must be somewhere in what is said of the request. */
  readonly q: string;
  /** Empty for all. */
  readonly protocol: string;
  readonly failingOnly: boolean;
  /** Id of an edge; empty for all. */
  readonly edge: string;
  /** What the containers of ends are called. */
  readonly named: NamedContainers;
}

export function matchesOperation(operation: RequestOperation, filter: RequestFilter): boolean {
  if (filter.protocol !== "" && operation.protocol !== filter.protocol) return false;
  if (filter.failingOnly && operation.errors === 0) return false;
  if (filter.edge !== "" && operation.edge?.id !== filter.edge) return false;
  const { edge, protocol, tls, source, statuses } = operation;
  const text = [
    edgeText(edge, filter.named),
    protocol,
    protocolTitle(protocol),
    tls ? "tls" : "plain",
    sourceTitle(source),
    operationName(operation),
    ...Object.keys(statuses),
  ];
  const low = text.join(" ").toLowerCase();
  return words(filter.q).every((word) => low.includes(word));
}

export function hasFailed(outcome: RequestOutcome): boolean {
  return outcome === "client_error" || outcome === "server_error" || outcome === "broken";
}

export function matchesSample(sample: RequestSample, filter: RequestFilter): boolean {
  if (filter.protocol !== "" && sample.protocol !== filter.protocol) return false;
  if (filter.failingOnly && !hasFailed(sample.outcome)) return false;
  if (filter.edge !== "" && sample.edge?.id !== filter.edge) return false;
  const { edge, protocol, tls, source, method, route, path, authority, status, trace, headers } = sample;
  const text = [
    edgeText(edge, filter.named),
    protocol,
    protocolTitle(protocol),
    tls ? "tls" : "plain",
    sourceTitle(source),
    method ?? "",
    route ?? "",
    path ?? "",
    authority ?? "",
    status ?? "",
    trace.request_id ?? "",
    trace.trace_id ?? "",
    trace.span_id ?? "",
    sample.client,
    ...headers.flat(),
  ];
  const low = text.join(" ").toLowerCase();
  return words(filter.q).every((word) => low.includes(word));
}

const OPERATION_VALUES: Readonly<Record<string, (row: OperationRow) => number | string>> = {
  client: ({ operation }) => (operation.edge === null ? "" : endName(operation.edge.client).toLowerCase()),
  server: ({ operation }) => (operation.edge === null ? "" : endName(operation.edge.server).toLowerCase()),
  protocol: ({ operation }) => `${operation.protocol} ${operation.tls ? 1 : 0}`,
  source: ({ operation }) => sourceTitle(operation.source),
  method: ({ operation }) => operation.method ?? "",
  route: ({ operation }) => operation.route ?? "",
  count: ({ operation }) => operation.count,
  rate: ({ operation }) => operation.count,
  errors: ({ operation }) => operation.errors,
  errors_client: ({ operation }) => operation.errors_by_class.client,
  errors_server: ({ operation }) => operation.errors_by_class.server,
  errors_broken: ({ operation }) => operation.errors_by_class.broken,
  unknown: ({ operation }) => operation.unknown,
  p_fifty: ({ operation }) => operation.latency_ns.p50 ?? -1,
  p_ninety: ({ operation }) => operation.latency_ns.p90 ?? -1,
  p_last: ({ operation }) => operation.latency_ns.p99 ?? -1,
  first: ({ operation }) => firstByte(operation)?.p50 ?? -1,
  sent: ({ operation }) => operation.request_bytes.mean ?? -1,
  received: ({ operation }) => operation.response_bytes.mean ?? -1,
};

/** As the end saw it whose latency is shown. */
export function firstByte(operation: RequestOperation): RequestOperation["latency_ns"] | null {
  return operation[operation.latency_from]?.first_byte_ns ?? null;
}

function compared<T>(
  values: Readonly<Record<string, (row: T) => number | string>>,
  fallback: string,
  sort: string,
  key: (row: T) => string,
): (a: T, b: T) => number {
  const descending = sort.startsWith("-");
  const value = values[descending ? sort.slice(1) : sort] ?? values[fallback]!;
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const left = value(a);
    const right = value(b);
    if (left < right) return -sign;
    if (left > right) return sign;
    return key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
  };
}

/** Compares by `sort` (`count`, `-count`, …), then by key, so that equal rows never swap places. */
export function compareOperations(sort: string): (a: OperationRow, b: OperationRow) => number {
  return compared(OPERATION_VALUES, "count", sort, (row) => row.key);
}

/** A sample with a name that stays the same while others come and go. */
export interface SampleRow {
  readonly key: string;
  readonly sample: RequestSample;
}

export function sampleRows(samples: readonly RequestSample[]): SampleRow[] {
  const seen = new Map<string, number>();
  return samples.map((sample) => {
    const name = `${sample.begin_ns}\0${sample.client}\0${sample.stream}\0${sample.seen_by}`;
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    const text = `${name}\0${times}`;
    const part = (seed?: number): string => hashText(text, seed).toString(16).padStart(8, "0");
    return { key: part(0x9e3779b9) + part(), sample };
  });
}

const SAMPLE_VALUES: Readonly<Record<string, (row: SampleRow) => number | string>> = {
  begin: ({ sample }) => sample.begin_ns,
  edge: ({ sample }) => edgeName(sample.edge).toLowerCase(),
  protocol: ({ sample }) => `${sample.protocol} ${sample.tls ? 1 : 0}`,
  source: ({ sample }) => sourceTitle(sample.source),
  method: ({ sample }) => sample.method ?? "",
  path: ({ sample }) => pathText(sample),
  status: ({ sample }) => statusText(sample),
  duration: ({ sample }) => sample.duration_ns,
  first: ({ sample }) => sample.first_byte_ns ?? -1,
  sent: ({ sample }) => sample.request_bytes ?? -1,
  received: ({ sample }) => sample.response_bytes ?? -1,
  kept: ({ sample }) => sample.kept_as,
};

export function compareSamples(sort: string): (a: SampleRow, b: SampleRow) => number {
  return compared(SAMPLE_VALUES, "duration", sort, (row) => row.key);
}

/** The path where it was asked for, else the route. */
export function pathText({ path, route }: Pick<RequestSample, "path" | "route">): string {
  return path ?? route ?? "not seen";
}

const OUTCOME_TEXT: Readonly<Record<RequestOutcome, string>> = {
  ok: "ok",
  client_error: "4xx",
  server_error: "5xx",
  broken: "aborted",
  unknown: "incomplete",
};

/** The status that the response had; without one, what became of the request. */
export function statusText({
  protocol,
  status,
  outcome,
}: Pick<RequestSample, "protocol" | "status" | "outcome">): string {
  if (status === null) return OUTCOME_TEXT[outcome];
  return protocol === "grpc" && typeof status === "number" ? `grpc ${status}` : String(status);
}

export function outcomeText(outcome: RequestOutcome): string {
  return OUTCOME_TEXT[outcome] ?? outcome;
}

/** The samples of an operation. Those of `other` are the ones of its edge that no operation of its own has. */
export function samplesOf(
  operation: RequestOperation,
  rows: readonly SampleRow[],
  all: readonly RequestOperation[],
): SampleRow[] {
  if (!operation.other) {
    const wanted = identity(operation);
    return rows.filter(({ sample }) => identity(sample) === wanted);
  }
  const own = new Set(all.filter(({ other }) => !other).map(identity));
  return rows.filter(
    ({ sample }) =>
      (sample.edge?.id ?? null) === (operation.edge?.id ?? null) &&
      sample.protocol === operation.protocol &&
      sample.tls === operation.tls &&
      !own.has(identity(sample)),
  );
}

/** The operation that a sample was counted in; null where it has none of its own. */
export function operationOf(
  sample: RequestSample,
  all: readonly RequestOperation[],
): RequestOperation | null {
  const wanted = identity(sample);
  return all.find((operation) => !operation.other && identity(operation) === wanted) ?? null;
}

/** Samples that are shown of one operation. */
export const SHOWN_SAMPLES = 8;

/** The slowest first, or those that failed, the slowest of them first. */
export function slowest(rows: readonly SampleRow[]): SampleRow[] {
  return rows.toSorted((a, b) => b.sample.duration_ns - a.sample.duration_ns).slice(0, SHOWN_SAMPLES);
}

export function failing(rows: readonly SampleRow[]): SampleRow[] {
  return slowest(rows.filter(({ sample }) => hasFailed(sample.outcome)));
}

/** How many requests there were in all. Each connection counts its own: with sidecars one request is several. */
export function totalText({ operations, sidecars }: Pick<TaskRequests, "operations" | "sidecars">): string {
  const all = operations.reduce((sum, operation) => sum + operation.count, 0);
  const text = `${count(all)} requests`;
  return sidecars.length === 0 ? text : `${text} on all hops (one through a sidecar counts on each)`;
}

/** How an estimated number of requests came about; null when all were seen. */
export function countText({ seen, count_interval }: RequestOperation): string | null {
  if (count_interval === null) return null;
  const { low, high } = count_interval;
  const between =
    high === null
      ? `${count(low)} or more, upper limit unknown`
      : `with 95 % confidence ${count(low)} to ${count(high)}`;
  return `estimated from ${count(seen)} that were seen: ${between}`;
}

/** Errors by class: "3 × 4xx, 1 aborted"; empty without errors. */
export function errorsText({ errors_by_class }: Pick<RequestOperation, "errors_by_class">): string {
  const { client, server, broken } = errors_by_class;
  const parts: readonly (readonly [number, string])[] = [
    [client, "× 4xx"],
    [server, "× 5xx"],
    [broken, "aborted"],
  ];
  return parts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${count(number)} ${what}`)
    .join(", ");
}

/** A part of the time of one request. */
export interface TimingPart {
  readonly kind: "sending" | "waiting" | "answer" | "unknown";
  readonly title: string;
  readonly from_ns: number;
  readonly to_ns: number;
}

/** The time of a request in its parts, without a gap from 0 to its end. What was not seen is said to be unknown. */
export function timingParts({
  duration_ns: end,
  request_end_ns,
  first_byte_ns,
}: Pick<RequestSample, "duration_ns" | "request_end_ns" | "first_byte_ns">): TimingPart[] {
  const inside = (at: number | null): number | null => (at === null ? null : Math.min(end, Math.max(0, at)));
  const sent = inside(request_end_ns);
  const first = inside(first_byte_ns);
  const part = (kind: TimingPart["kind"], title: string, from_ns: number, to_ns: number): TimingPart => ({
    kind,
    title,
    from_ns,
    to_ns,
  });
  const parts: TimingPart[] = [];
  if (sent !== null && first !== null && first < sent) {
    // The response began before the request had ended, as with streams.
    parts.push(
      part("sending", "request, until the response began", 0, first),
      part("answer", "request and response at once", first, sent),
      part("answer", "rest of the response", sent, end),
    );
  } else if (sent !== null && first !== null) {
    parts.push(
      part("sending", "request", 0, sent),
      part("waiting", "until the first byte of the response", sent, first),
      part("answer", "answer", first, end),
    );
  } else if (sent !== null) {
    parts.push(part("sending", "request", 0, sent), part("unknown", "first byte not seen", sent, end));
  } else if (first !== null) {
    parts.push(
      part("unknown", "request and waiting, end of the request not seen", 0, first),
      part("answer", "answer", first, end),
    );
  } else {
    parts.push(part("unknown", "not seen in parts", 0, end));
  }
  return parts.filter(({ from_ns, to_ns }) => to_ns > from_ns);
}

export function timingText(parts: readonly TimingPart[]): string {
  return parts.map(({ title, from_ns, to_ns }) => `${title} ${duration(to_ns - from_ns)}`).join(", ");
}

/** Protocols of an answer in the order of their requests, for the choice of one. */
export function protocolsOf(operations: readonly RequestOperation[]): string[] {
  const counts = new Map<string, number>();
  for (const { protocol, count } of operations) counts.set(protocol, (counts.get(protocol) ?? 0) + count);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([protocol]) => protocol);
}

/** The sidecars that requests of an edge go out of or into. */
export function sidecarsOf(edge: RequestEdge | null, all: readonly RequestSidecar[]): RequestSidecar[] {
  if (edge === null) return [];
  const is = (end: EdgeEnd, process: EdgeEnd): boolean =>
    end.pid !== null && end.pid === process.pid && end.start_ticks === process.start_ticks;
  return all.filter(({ process }) => is(edge.client, process) || is(edge.server, process));
}

/** The edge with this id, of those that an answer tells of; null when it has none of it. */
export function edgeOf({ operations, samples }: TaskRequests, id: string): RequestEdge | null {
  const of = ({ edge }: { readonly edge: RequestEdge | null }): boolean => edge?.id === id;
  return (operations.find(of) ?? samples.find(of))?.edge ?? null;
}

/** Whether a target has one of these ends in it, as far as that can be seen; `same`: one that has. */
export function covers(
  found: Target,
  same: Target | null,
  ends: readonly EdgeEnd[],
  named: NamedContainers,
): boolean {
  if ("all" in found) return true;
  if (same !== null && JSON.stringify(found) === JSON.stringify(same)) return true;
  if ("pids" in found) return found.pids.some((pid) => ends.some((end) => end.pid === pid));
  if ("container" in found) return ends.some(({ container }) => found.container === container);
  return "pod" in found && ends.some(({ container }) => selectorMeans(found.pod)(named[container ?? ""]));
}

/**
 * Tasks that may have requests of an edge, the newest first: of the same target as the task that it is shown
 * of, or of one of its processes. `target`: null for the always-on collection. `named`: names of the containers
 * of both ends.
 */
export function tasksWithRequests(
  edge: { readonly client: EdgeEnd; readonly server: EdgeEnd },
  target: Target | null,
  tasks: Iterable<Task>,
  named: NamedContainers,
): Task[] {
  const ends = [edge.client, edge.server];
  return [...tasks]
    .filter((task) => task.kind === "requests" && covers(task.target, target, ends, named))
    .sort((a, b) => b.created_at_ns - a.created_at_ns || Number(b.id) - Number(a.id));
}
