// Typed calls of the agent's API. Every failure is one of two errors: the agent refused
// (ProblemError), or there was no answer (UnreachableError).

import type { Norm } from "../lib/diff";
import { currentToken } from "./token";
import type {
  AccessLogStatus,
  ChangedFunctions,
  ContainerList,
  Feature,
  KernelObjects,
  List,
  MeasuredRuns,
  Meta,
  NodeOverview,
  Pod,
  Probe,
  Problem,
  Process,
  ProcessDetail,
  ProcessSymbols,
  ProfileFormat,
  ProfileQuality,
  ProfileThread,
  Self,
  Sequence,
  Setting,
  SymbolFile,
  SymbolFileList,
  Task,
  TaskSpec,
  Timeline,
  Waits,
} from "./types";

/** The agent answered with an error. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

/** No answer at all. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

export type Outcome = "answered" | "missing_token" | "wrong_token" | "unreachable";
let listener: (outcome: Outcome) => void = () => {};

/** One listener learns the outcome of every call: connection banner and token page hang on it. */
export function onOutcome(listen: (outcome: Outcome) => void): void {
  listener = listen;
}

async function problemOf(response: Response): Promise<Problem> {
  const fallback: Problem = {
    type: "about:blank",
    title: response.statusText || `HTTP ${response.status}`,
    status: response.status,
    detail: `the agent answered ${response.status}`,
    code: "unknown",
  };
  if (!(response.headers.get("content-type") ?? "").includes("json")) return fallback;
  try {
    return { ...fallback, ...((await response.json()) as Partial<Problem>) };
  } catch {
    return fallback;
  }
}

/** The second says so once too many were sent; the right one is taken all the same. */
function isWrongToken({ code }: Problem): boolean {
  return code === "wrong_token" || code === "too_many_wrong_tokens";
}

/** The agent gives up answers after 60 s by itself: later than that nothing comes any more. */
const ANSWER_LIMIT_MS = 75_000;
/** And requests that bring a file after 15 minutes. */
const FILE_LIMIT_MS = 16 * 60_000;

/** Tells the listener that a stream has stopped: a process that is stopped keeps its connections. */
export function noteSilence(): void {
  listener("unreachable");
}

/** Sends a request with the token; resolves to a response with a 2xx status only, which begins within `limitMs`. */
export async function request(
  path: string,
  init: RequestInit = {},
  limitMs = init.body instanceof Blob ? FILE_LIMIT_MS : ANSWER_LIMIT_MS,
): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = currentToken();
  if (token !== null) headers.set("Authorization", `Bearer ${token}`);
  let response: Response;
  // The body of an answer may take longer than its beginning.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
  try {
    response = await fetch(`/api/v1${path}`, {
      ...init,
      headers,
      signal,
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    // Others may be answered meanwhile: the stream of events says whether the agent runs.
    if (late.signal.aborted)
      throw new UnreachableError(`the agent did not answer within ${Math.round(limitMs / 1000)} s`);
    listener("unreachable");
    throw new UnreachableError("the agent does not answer");
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) {
    listener("answered");
    return response;
  }
  const problem = await problemOf(response);
  // Who has left does not know the reason: its reading was broken off.
  init.signal?.throwIfAborted();
  const wrong = isWrongToken(problem);
  if (!wrong && response.status !== 401) listener("answered");
  // That a token is refused which is not used any more is no news.
  else if (token === currentToken()) listener(wrong ? "wrong_token" : "missing_token");
  throw new ProblemError(problem);
}

export async function json<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function post<T>(path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method: "POST" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  return (await (await request(path, init)).json()) as T;
}

/** What part of a profile is asked for. */
export interface ProfileCut {
  readonly from: number | null;
  readonly to: number | null;
  readonly tids: readonly number[];
  /** The threads of `tids` are those that are left out. */
  readonly except: boolean;
  /** Null where nothing waits. */
  readonly waits: WaitCut | null;
  /** Cell, row or column of a diagnosis (`lib/cell.ts`); missing or empty for everything. */
  readonly cell?: string;
  /** One process; missing or null for all. */
  readonly pid?: number | null;
  /** Processes of these containers; missing or empty for all. */
  readonly containers?: readonly string[];
}

/** What part of the waits is asked for, and what the numbers count. */
export interface WaitCut {
  readonly value: "duration" | "count";
  readonly idle: "hide" | "show" | "only";
  readonly wakers: boolean;
  readonly states: readonly string[];
  readonly reasons: readonly string[];
}

function cutParams(cut: ProfileCut, params: URLSearchParams, side = ""): URLSearchParams {
  if (cut.from !== null) params.set(`${side}from`, String(cut.from));
  if (cut.to !== null) params.set(`${side}to`, String(cut.to));
  for (const tid of cut.tids) params.append(cut.except ? `${side}not_tid` : `${side}tid`, String(tid));
  if (cut.pid !== undefined && cut.pid !== null) params.set(`${side}pid`, String(cut.pid));
  for (const id of cut.containers ?? []) params.append(`${side}container`, id);
  return params;
}

/** Which samples, by what they did or waited for; what the numbers of waits count is asked for by itself. */
function viewParams(
  { waits, cell }: Pick<ProfileCut, "waits" | "cell">,
  params: URLSearchParams,
): URLSearchParams {
  if (cell !== undefined && cell !== "") params.set("cell", cell);
  if (waits === null) return params;
  params.set("idle", waits.idle);
  for (const state of waits.states) params.append("state", state);
  for (const reason of waits.reasons) params.append("reason", reason);
  return params;
}

/** Path of a profile, below /api/v1. */
export function profilePath(id: string, format: ProfileFormat, cut: ProfileCut): string {
  const params = viewParams(cut, cutParams(cut, new URLSearchParams({ format })));
  if (cut.waits !== null) {
    params.set("value", cut.waits.value);
    if (cut.waits.wakers) params.set("wakers", "true");
  }
  return `/tasks/${encodeURIComponent(id)}/profile?${params}`;
}

/** One side of a comparison. */
export interface DiffSide {
  readonly id: string;
  readonly cut: ProfileCut;
}

/** More functions are not asked for. */
const MOST_FUNCTIONS = 10_000;

/** What is asked for of a comparison: the graph, or the functions below one of its nodes. */
type DiffQuery =
  | { readonly format: "flamegraph" }
  | { readonly format: "table"; readonly norm: Norm; readonly below: number };

/** Path of a comparison, below /api/v1; waits are shown as `b` shows them. */
export function diffPath(a: DiffSide, b: DiffSide, query: DiffQuery): string {
  const params = new URLSearchParams({ a: a.id, b: b.id, format: query.format });
  if (query.format === "table") {
    params.set("norm", query.norm);
    params.set("limit", String(MOST_FUNCTIONS));
    if (query.below > 0) params.set("below", String(query.below));
  }
  cutParams(a.cut, params, "a_");
  cutParams(b.cut, params, "b_");
  const { waits } = b.cut;
  viewParams(b.cut, params);
  if (waits !== null) {
    params.set("value", waits.value);
    if (waits.wakers) params.set("wakers", "true");
  }
  return `/diff?${params}`;
}

/** What is asked for over time. */
export interface TimelineQuery {
  readonly bucketMs: number;
  /** For each thread too, and what it did. */
  readonly by?: "thread" | "activity" | undefined;
  readonly value?: "count" | "duration";
  readonly cut?: ProfileCut;
}

const task = (id: string): string => `/tasks/${encodeURIComponent(id)}`;

export const api = {
  meta: (signal?: AbortSignal) => json<Meta>("/meta", signal),
  self: (signal?: AbortSignal) => json<Self>("/self", signal),
  probes: (signal?: AbortSignal) => json<{ items: readonly Probe[] }>("/probes", signal),
  processes: (kernel: boolean, signal?: AbortSignal) =>
    json<List<Process>>(`/processes?kernel=${kernel}`, signal),
  overview: (signal?: AbortSignal) => json<NodeOverview>("/overview", signal),
  pods: (signal?: AbortSignal) => json<List<Pod>>("/pods", signal),
  containers: (signal?: AbortSignal) => json<ContainerList>("/containers", signal),
  accessLogs: (signal?: AbortSignal) => json<AccessLogStatus>("/access-logs", signal),
  process: (id: string, signal?: AbortSignal) =>
    json<ProcessDetail>(`/processes/${encodeURIComponent(id)}`, signal),
  processSymbols: (id: string, signal?: AbortSignal) =>
    json<ProcessSymbols>(`/processes/${encodeURIComponent(id)}/symbols`, signal),
  kernelObjects: (signal?: AbortSignal) => json<KernelObjects>("/self/kernel", signal),
  /** Lets the kernel measure runs of programs for this long. */
  measureRuns: (durationMs: number) =>
    post<MeasuredRuns>("/self/kernel/statistics", { duration_ms: durationMs }),
  features: (signal?: AbortSignal) => json<{ items: readonly Feature[] }>("/features", signal),
  config: (signal?: AbortSignal) => json<{ items: readonly Setting[] }>("/config", signal),
  supportBundle: async (): Promise<Blob> => (await request("/support-bundle")).blob(),
  tasks: (signal?: AbortSignal) => json<List<Task>>("/tasks", signal),
  task: (id: string, signal?: AbortSignal) => json<Task>(task(id), signal),
  create: (spec: TaskSpec) => post<Task>("/tasks", spec),
  /** Keeps a pprof file or folded stacks as a task. */
  importProfile: async (file: Blob, name: string): Promise<Task> => {
    const headers = { "Content-Type": "application/octet-stream" };
    const path = `/imports?${new URLSearchParams({ name: name.slice(0, 60) })}`;
    return (await (await request(path, { method: "POST", body: file, headers })).json()) as Task;
  },
  stop: (id: string) => post<Task>(`${task(id)}/stop`),
  remove: async (id: string): Promise<void> => {
    await request(task(id), { method: "DELETE" });
  },
  threads: (id: string, cut: ProfileCut, signal?: AbortSignal) =>
    json<{ items: readonly ProfileThread[] }>(
      `${task(id)}/threads?${viewParams(cut, cutParams(cut, new URLSearchParams()))}`,
      signal,
    ),
  quality: (id: string, cut: ProfileCut, signal?: AbortSignal) =>
    json<ProfileQuality>(`${task(id)}/quality?${cutParams(cut, new URLSearchParams())}`, signal),
  /** Sums by state and reason of what `idle` shows; the idle share is that of everything. */
  waits: (id: string, cut: ProfileCut, signal?: AbortSignal) => {
    const params = cutParams(cut, new URLSearchParams({ idle: cut.waits?.idle ?? "show" }));
    return json<Waits>(`${task(id)}/waits?${params}`, signal);
  },
  edges: <T>(path: string, signal?: AbortSignal) => json<T>(path, signal),
  symbols: (signal?: AbortSignal) => json<SymbolFileList>("/symbols", signal),
  /** With a build-id the agent refuses a file of another build. */
  giveSymbols: async (file: Blob, buildId: string | null): Promise<SymbolFile> => {
    const path = buildId === null ? "/symbols" : `/symbols/${encodeURIComponent(buildId)}`;
    const method = buildId === null ? "POST" : "PUT";
    const headers = { "Content-Type": "application/octet-stream" };
    return (await (await request(path, { method, body: file, headers })).json()) as SymbolFile;
  },
  removeSymbols: async (buildId: string): Promise<void> => {
    await request(`/symbols/${encodeURIComponent(buildId)}`, { method: "DELETE" });
  },
  timeline: (id: string, query: TimelineQuery, signal?: AbortSignal) => {
    const params = new URLSearchParams({ bucket_ms: String(query.bucketMs) });
    if (query.by !== undefined) params.set("by", query.by);
    if (query.value !== undefined) params.set("value", query.value);
    if (query.cut !== undefined) viewParams(query.cut, cutParams(query.cut, params));
    return json<Timeline>(`${task(id)}/timeline?${params}`, signal);
  },
  sequence: (id: string, bucketMs: number, threads: number, cut: ProfileCut, signal?: AbortSignal) => {
    const params = new URLSearchParams({ bucket_ms: String(bucketMs), threads: String(threads) });
    if (cut.waits !== null) params.set("value", cut.waits.value);
    return json<Sequence>(`${task(id)}/sequence?${viewParams(cut, cutParams(cut, params))}`, signal);
  },
  diffBytes: async (a: DiffSide, b: DiffSide, signal?: AbortSignal): Promise<Uint8Array> => {
    const response = await request(diffPath(a, b, { format: "flamegraph" }), signal ? { signal } : {});
    return new Uint8Array(await response.arrayBuffer());
  },
  /** The functions below a node of the graph. */
  changes: (a: DiffSide, b: DiffSide, norm: Norm, below: number, signal?: AbortSignal) =>
    json<ChangedFunctions>(diffPath(a, b, { format: "table", norm, below }), signal),
  profileBytes: async (
    id: string,
    cut: ProfileCut,
    features: boolean,
    signal?: AbortSignal,
  ): Promise<Uint8Array> => {
    const path = profilePath(id, "flamegraph", cut) + (features ? "&features=true" : "");
    const response = await request(path, signal ? { signal } : {});
    return new Uint8Array(await response.arrayBuffer());
  },
  exportBlob: async (id: string, format: ProfileFormat, cut: ProfileCut): Promise<Blob> =>
    (await request(profilePath(id, format, cut))).blob(),
};
