// What the agent knows, as signals, kept fresh by the event stream; by polling while there is none.

import { batch, computed, effect, signal } from "@preact/signals";
import { api, onOutcome, ProblemError } from "../api/client";
import { readEvents } from "../api/events";
import type {
  Pod as ListedPod,
  Loss,
  Meta,
  NamedContainers,
  PodReading,
  Problem,
  Process,
  ProcessChange,
  ProcessReading,
  ProcessReadings,
  Self,
  Task,
} from "../api/types";
import { namesOf } from "../lib/container_names";
import { isInPod, podsOf, withReadings } from "../lib/pods";
import type { ServerEvent } from "../lib/sse";
import { listed, type TaskList, withTask } from "../lib/task_list";
import { route } from "./route";
import { silentSince } from "./silent";

export type Connection = "connecting" | "live" | "polling" | "unreachable";
export type Access = "unknown" | "granted" | "missing_token" | "wrong_token";

export const connection = signal<Connection>("connecting");
export const access = signal<Access>("unknown");
export const meta = signal<Meta | null>(null);
export const self = signal<Self | null>(null);
/** Last readings of the agent's own CPU (percent of one core) and memory, oldest first. */
export const selfHistory = signal<{ readonly cpu: readonly number[]; readonly rss: readonly number[] }>({
  cpu: [],
  rss: [],
});
/** By process id; null before the first answer. */
export const processes = signal<ReadonlyMap<string, Process> | null>(null);
let podsAreShown = false;
/** Asked for while something shows them. */
const listedPods = signal<readonly ListedPod[] | null>(null, {
  watched: () => {
    podsAreShown = true;
    void refreshPods().catch(() => {});
  },
  unwatched: () => {
    podsAreShown = false;
  },
});
/** Pods with those of their processes that run, busiest first; null before the first answer. */
export const pods = computed(() => {
  const [listed, all] = [listedPods.value, processes.value];
  return listed === null || all === null ? null : podsOf(listed, all);
});
let lastNames: NamedContainers = {};
/** Names of the containers that run, by id; the same object until one changes. */
export const namedContainers = computed<NamedContainers>(() => {
  lastNames = namesOf(processes.value?.values() ?? [], lastNames);
  return lastNames;
});
/** Last CPU readings of each process, oldest first. */
export const cpuHistory = signal<ReadonlyMap<string, readonly number[]>>(new Map());
/** Tokens that were refused one after the other. */
export const refusals = signal(0);

/** By task id; null before the first answer. */
export const tasks = signal<TaskList | null>(null);
/** Ids are never used again. */
const deletedTasks = new Set<string>();
/** Why the last refresh failed, when the agent answered with an error. */
export const refreshError = signal<Problem | null>(null);

const POLL_MS = 5_000;
/** The stream normally opens at once and brings the first data; polling begins only when it does not. */
const FIRST_POLL_MS = 600;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8_000;
const HISTORY_LENGTH = 30;
const LIST_DELAY_MS = 700;

function byId<T extends { readonly id: string }>(items: readonly T[]): Map<string, T> {
  return new Map(items.map((item) => [item.id, item]));
}

function remember(readings: readonly { id: string; cpu_percent: number | null }[]): void {
  const next = new Map<string, readonly number[]>();
  for (const { id, cpu_percent } of readings) {
    const known = cpuHistory.peek().get(id) ?? [];
    next.set(id, cpu_percent === null ? known : [...known, cpu_percent].slice(-HISTORY_LENGTH));
  }
  cpuHistory.value = next;
}

/** Losses of the agent as they were some seconds ago, to see whether something is being lost now. */
export const lossesBefore = signal<readonly Loss[] | null>(null);
const LOSS_WINDOW_MS = 15_000;
let lossReadings: { at: number; losses: readonly Loss[] }[] = [];

function takeSelf(own: Self): void {
  const now = performance.now();
  // One that is old enough stays as the ground.
  lossReadings = [...lossReadings, { at: now, losses: own.losses }];
  while (lossReadings.length > 2 && now - lossReadings[1]!.at >= LOSS_WINDOW_MS) lossReadings.shift();
  lossesBefore.value = lossReadings[0]!.losses;
  self.value = own;
  const { cpu, rss } = selfHistory.peek();
  selfHistory.value = {
    cpu: [...cpu, own.cpu_percent].slice(-HISTORY_LENGTH),
    rss: [...rss, own.rss_bytes].slice(-HISTORY_LENGTH),
  };
}

function applyReadings(readings: readonly ProcessReading[], ofPods: readonly PodReading[]): void {
  const known = processes.peek();
  if (known === null) return;
  const next = new Map(known);
  for (const { id, cpu_percent, rss_bytes, threads } of readings) {
    const process = next.get(id);
    if (process !== undefined) next.set(id, { ...process, cpu_percent, rss_bytes, threads });
  }
  batch(() => {
    processes.value = next;
    const listed = listedPods.peek();
    if (podsAreShown && listed !== null) listedPods.value = withReadings(listed, ofPods);
  });
  remember(readings);
}

/** Puts a task into the list (answers of create and stop arrive before their event, or after it). */
export function putTask(task: Task): void {
  tasks.value = withTask(tasks.peek(), task, deletedTasks);
}

export function dropTask(id: string): void {
  deletedTasks.add(id);
  const next = new Map(tasks.peek() ?? []);
  next.delete(id);
  tasks.value = next;
}

let listTimer: ReturnType<typeof setTimeout> | undefined;

/** Many processes may start at once: one list request for all of them. */
function refreshListSoon(): void {
  if (listTimer !== undefined) return;
  listTimer = setTimeout(() => {
    listTimer = undefined;
    void refreshProcesses().catch(() => {});
  }, LIST_DELAY_MS);
}

function applyChange(change: ProcessChange): void {
  if (change.change === "started") {
    refreshListSoon();
    return;
  }
  for (const ended of endedMeanwhile) ended.add(change.id);
  // Others of its pod may have another role without it.
  if (podsAreShown && isInPod(listedPods.peek() ?? [], change.id)) refreshListSoon();
  const known = processes.peek();
  if (known === null || !known.has(change.id)) return;
  const next = new Map(known);
  next.delete(change.id);
  processes.value = next;
}

function handle({ event, data }: ServerEvent): void {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return;
  }
  switch (event) {
    case "task":
      putTask(value as Task);
      return;
    case "task_deleted":
      dropTask((value as { id: string }).id);
      return;
    case "process":
      applyChange(value as ProcessChange);
      return;
    case "processes": {
      const { items, pods: ofPods } = value as ProcessReadings;
      applyReadings(items, ofPods);
      return;
    }
    case "self":
      takeSelf(value as Self);
      return;
    case "lagged":
      void refreshAll().catch(() => {});
      return;
  }
}

/** Whoever names containers tells of a new one some time after its first process: the list is asked for again. */
const NAME_RETRIES_MS = [2_000, 8_000, 30_000] as const;
let unnamed = "";
let nameRetries = 0;
let nameTimer: ReturnType<typeof setTimeout> | undefined;

function refreshForNames(items: readonly Process[]): void {
  const ids = new Set(items.flatMap(({ container }) => (container?.names === null ? [container.id] : [])));
  const key = [...ids].sort().join();
  if (key !== unnamed) nameRetries = 0;
  unnamed = key;
  const delay = NAME_RETRIES_MS[nameRetries];
  if (key === "" || delay === undefined || nameTimer !== undefined) return;
  nameTimer = setTimeout(() => {
    nameTimer = undefined;
    nameRetries += 1;
    if (running !== null) void refreshProcesses().catch(() => {});
  }, delay);
}

/** For each list of processes that is under way, those that have ended since it was asked for. */
const endedMeanwhile = new Set<Set<string>>();

export async function refreshProcesses(): Promise<void> {
  const ended = new Set<string>();
  endedMeanwhile.add(ended);
  try {
    const answer = await api.processes(route.peek().kernel);
    const items = answer.items.filter(({ id }) => !ended.has(id));
    processes.value = byId(items);
    remember(items);
    refreshForNames(items);
    if (podsAreShown) await refreshPods();
  } finally {
    endedMeanwhile.delete(ended);
  }
}

async function refreshPods(): Promise<void> {
  listedPods.value = (await api.pods()).items;
}

export async function refreshAll(): Promise<void> {
  try {
    const [metaNow, selfNow, taskList] = await Promise.all([api.meta(), api.self(), api.tasks()]);
    meta.value = metaNow;
    takeSelf(selfNow);
    tasks.value = listed(tasks.peek(), taskList.items, deletedTasks);
    await refreshProcesses();
    refreshError.value = null;
  } catch (error) {
    if (error instanceof ProblemError) refreshError.value = error.problem;
    throw error;
  }
}

let running: AbortController | null = null;
const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });

let streamOpen = false;

/** Without an accepted token there is nothing to ask for. */
function refused(): boolean {
  return access.peek() === "missing_token" || access.peek() === "wrong_token";
}

async function poll(signal: AbortSignal, firstMs: number): Promise<void> {
  await sleep(firstMs, signal);
  while (!signal.aborted && !streamOpen && !refused()) {
    await refreshAll().catch(() => {});
    await sleep(POLL_MS, signal);
  }
}

async function follow(signal: AbortSignal): Promise<void> {
  let delay = FIRST_RETRY_MS;
  while (!signal.aborted && !refused()) {
    try {
      const opened = (): void => {
        streamOpen = true;
        connection.value = "live";
        delay = FIRST_RETRY_MS;
        void refreshAll().catch(() => {});
      };
      await readEvents("/events", handle, opened, signal);
    } catch {
      // The outcome listener has already noted why; the loop below tries again.
    }
    if (signal.aborted) return;
    if (streamOpen) {
      streamOpen = false;
      if (connection.peek() === "live") connection.value = "polling";
      void poll(signal, POLL_MS);
    }
    await sleep(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, LAST_RETRY_MS);
  }
}

function start(): void {
  running?.abort();
  running = new AbortController();
  streamOpen = false;
  connection.value = "connecting";
  void poll(running.signal, FIRST_POLL_MS);
  void follow(running.signal);
}

/** Begins again, for a new token. */
export function reconnect(): void {
  access.value = "unknown";
  start();
}

export function startLive(): void {
  onOutcome((outcome) => {
    if (outcome === "unreachable") {
      connection.value = "unreachable";
      silentSince.value ??= Date.now();
      return;
    }
    silentSince.value = null;
    // Several requests with one token are refused; it counts once.
    if (outcome === "wrong_token" && access.peek() !== "wrong_token") refusals.value += 1;
    if (outcome === "answered") refusals.value = 0;
    access.value = outcome === "answered" ? "granted" : outcome;
    connection.value = streamOpen ? "live" : "polling";
  });
  document.addEventListener("visibilitychange", () => {
    // A hidden page costs the node nothing.
    if (document.visibilityState === "hidden") {
      running?.abort();
      running = null;
    } else if (running === null) start();
  });
  let kernel = route.peek().kernel;
  effect(() => {
    if (route.value.kernel === kernel) return;
    kernel = route.value.kernel;
    void refreshProcesses().catch(() => {});
  });
  start();
}
