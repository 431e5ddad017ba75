// The create form as plain data: what it asks the agent, and the same as commands.

import type {
  NamedContainers,
  OffCpuMode,
  PodSelector,
  Process,
  RequestSource,
  SamplesKept,
  Target,
  Task,
  TaskKind,
  TaskSpec,
} from "../api/types";
import { selectorMeans, selectorOption, selectorText } from "./pod_selector";
import { sourcesAsked } from "./request_source";

export type TargetKind = "pids" | "pod" | "kubernetes" | "container" | "comm" | "cgroup" | "netns" | "all";

/** Pods by their names, as typed; empty is not asked for. */
export type SelectorFields = Readonly<Record<keyof PodSelector, string>>;

/** The form as typed. */
export interface TaskForm {
  readonly kind: TaskKind;
  readonly target: TargetKind;
  readonly pids: readonly number[];
  readonly container: string;
  /** Inode number of the network namespace of a pod. */
  readonly pod: string;
  /** Pods by the names that Kubernetes has for them. */
  readonly selector: SelectorFields;
  readonly comm: string;
  readonly cgroup: string;
  /** Path of a network namespace; for kinds of connections. */
  readonly netns: string;
  /** Seconds, as typed; empty is what is recommended. */
  readonly duration: string;
  readonly endless: boolean;
  /** Hertz, as typed. */
  readonly frequency: string;
  /** Also who ended the waits. */
  readonly wakers: boolean;
  /** Also the times of system calls. */
  readonly timed: boolean;
  /** How waits are counted; empty is the agent's setting. */
  readonly mode: OffCpuMode | "";
  /** Milliseconds, as typed; empty is no bound. */
  readonly minWait: string;
  readonly maxWait: string;
  /** Requests from the access logs of Envoys; for kind requests, as what follows. */
  readonly accessLogs: boolean;
  /** Requests from what is moved over sockets. */
  readonly sockets: boolean;
  /** Plaintext at TLS libraries too; with sockets only. */
  readonly tls: boolean;
  /** Percent of the time, as typed. */
  readonly duty: string;
  readonly bodies: boolean;
  readonly rawPaths: boolean;
  readonly samples: SamplesKept;
}

export type FormResult =
  | { readonly ok: true; readonly spec: TaskSpec }
  | { readonly ok: false; readonly field: string; readonly detail: string };

export const MAX_FREQUENCY_HZ = 4999;
const DEFAULT_FREQUENCY_HZ = 99;

function wholeNumber(text: string): number | null {
  return /^\d{1,12}$/.test(text.trim()) ? Number(text.trim()) : null;
}

/** Milliseconds as nanoseconds; null for an empty field, undefined for what is not a time. */
function waitBound(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  return /^\d{1,9}(\.\d{1,6})?$/.test(text.trim()) ? Math.round(Number(text) * 1e6) : undefined;
}

/** Kinds that measure waits. */
export function measuresWaits(kind: TaskKind): boolean {
  return kind === "off_cpu" || kind === "wall";
}

/** Kinds that watch connections. */
export function watchesConnections(kind: TaskKind): boolean {
  return kind === "network" || kind === "requests";
}

export const NO_SELECTOR: SelectorFields = { namespace: "", name: "", labels: "", container: "" };

/** A form that asks for nothing yet. */
export const NEW_FORM: TaskForm = {
  kind: "on_cpu",
  target: "pids",
  pids: [],
  container: "",
  pod: "",
  selector: NO_SELECTOR,
  comm: "",
  cgroup: "",
  netns: "",
  duration: "",
  endless: false,
  frequency: "99",
  wakers: false,
  timed: false,
  mode: "",
  minWait: "",
  maxWait: "",
  accessLogs: false,
  sockets: true,
  tls: false,
  duty: "100",
  bodies: false,
  rawPaths: false,
  samples: "slow",
};

/** What is asked for, without what is empty. */
export function selectorOf(fields: SelectorFields): PodSelector {
  const given = Object.entries(fields).map(([key, value]) => [key, value.trim()] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== ""));
}

/** The pod that all these processes are of; null where it has no name, or where one is of another or of none. */
export function podOf(processes: readonly Process[]): PodSelector | null {
  const named = processes.find(({ container }) => container?.names?.pod != null)?.container;
  const pod = named?.names?.pod;
  if (named == null || pod == null) return null;
  const { namespace, name } = pod;
  // A pod has containers without names too.
  const isOfIt = ({ container }: Process): boolean => {
    const of = container?.names?.pod;
    return of == null
      ? container?.pod_uid != null && container.pod_uid === named.pod_uid
      : of.namespace === namespace && of.name === name;
  };
  return processes.every(isOfIt) ? { namespace, name } : null;
}

function targetOf(form: TaskForm, matched: readonly Process[]): Target | string {
  switch (form.target) {
    case "pids":
      return form.pids.length > 0 ? { pids: form.pids } : "pick at least one process";
    case "pod": {
      if (form.pod === "") return "pick a pod";
      const [first] = matched;
      if (first === undefined) return "no process of this pod is running";
      // By its name it is the same pod after a restart.
      const named = podOf(matched);
      if (named !== null) return { pod: named };
      // All connections of the pod, also those of processes that come later.
      if (watchesConnections(form.kind)) return { network_namespace: `/proc/${first.pid}/ns/net` };
      return { pids: matched.map(({ pid }) => pid) };
    }
    case "kubernetes": {
      const pod = selectorOf(form.selector);
      const isEnough = pod.name !== undefined || pod.labels !== undefined || pod.container !== undefined;
      return isEnough ? { pod } : "type the name of a pod, labels or the name of a container";
    }
    case "container":
      return form.container !== "" ? { container: form.container } : "pick a container";
    case "comm":
      return form.comm.trim() !== "" ? { comm: form.comm.trim() } : "type the name of a process";
    case "cgroup":
      return form.cgroup.trim() !== "" ? { cgroup: form.cgroup.trim() } : "type the path of a cgroup";
    case "netns":
      return form.netns.trim() !== ""
        ? { network_namespace: form.netns.trim() }
        : "type the path of a network namespace";
    case "all":
      return { all: true };
  }
}

/** Where requests are asked for, in the order that the agent gives. */
function sourcesOfForm({ accessLogs, sockets, tls }: TaskForm): RequestSource[] {
  return [
    ...(accessLogs ? (["access_log"] as const) : []),
    ...(sockets ? (["sockets"] as const) : []),
    ...(sockets && tls ? (["tls"] as const) : []),
  ];
}

/** What is asked of requests, without what is so anyway; null for a duty that is none. */
function captureOf(form: TaskForm): Partial<TaskSpec> | null {
  const { accessLogs, sockets, duty, bodies, rawPaths, samples } = form;
  const tls = sockets && form.tls;
  const percent = wholeNumber(duty);
  if (tls && (percent === null || percent < 1 || percent > 100)) return null;
  return {
    ...(accessLogs ? { source: sourcesOfForm(form) } : tls ? { tls } : {}),
    ...(tls && percent !== null && percent < 100 ? { tls_duty_percent: percent } : {}),
    ...(sockets && bodies ? { bodies: true } : {}),
    ...(rawPaths ? { raw_paths: true } : {}),
    ...(samples === "all" ? { samples } : {}),
  };
}

/**
 * Checks only what would not make a request; limits are the agent's to check. `matched` are the processes
 * that the target means now.
 */
export function specOf(form: TaskForm, matched: readonly Process[] = []): FormResult {
  const target = targetOf(form, matched);
  if (typeof target === "string") return { ok: false, field: "target", detail: target };
  const duration = form.endless ? null : wholeNumber(form.duration);
  if (duration === null && !form.endless) {
    return { ok: false, field: "duration_s", detail: "a whole number of seconds" };
  }
  // Everything is counted; there is no rate to choose.
  const frequency =
    form.kind === "off_cpu" || watchesConnections(form.kind)
      ? DEFAULT_FREQUENCY_HZ
      : wholeNumber(form.frequency);
  if (frequency === null) return { ok: false, field: "frequency_hz", detail: "a whole number of hertz" };
  const waits = measuresWaits(form.kind);
  const [least, most] = waits ? [waitBound(form.minWait), waitBound(form.maxWait)] : [null, null];
  if (least === undefined) return { ok: false, field: "min_wait_ns", detail: "a number of milliseconds" };
  if (most === undefined) return { ok: false, field: "max_wait_ns", detail: "a number of milliseconds" };
  if (form.kind === "requests" && !form.sockets && !form.accessLogs)
    return { ok: false, field: "source", detail: "pick at least one source of requests" };
  const capture = form.kind === "requests" ? captureOf(form) : {};
  if (capture === null)
    return { ok: false, field: "tls_duty_percent", detail: "a whole number of percent, 1 to 100" };
  return {
    ok: true,
    spec: {
      kind: form.kind,
      target,
      duration_s: duration,
      frequency_hz: frequency,
      wakers: form.wakers && waits,
      ...(form.kind === "network" && form.timed ? { timed: true } : {}),
      ...(waits && form.mode !== "" ? { off_cpu_mode: form.mode } : {}),
      ...(least !== null && least > 0 ? { min_wait_ns: least } : {}),
      ...(most !== null ? { max_wait_ns: most } : {}),
      ...capture,
    },
  };
}

/** A whole pod also has unnamed containers, such as the one that holds its namespaces. */
function matchedPods(selector: PodSelector, all: readonly Process[]): Process[] {
  const means = selectorMeans(selector);
  const named = new Set(all.filter(({ container }) => means(container?.names)));
  if (selector.container !== undefined) return [...named];
  const pods = new Set([...named].flatMap(({ container }) => container?.pod_uid ?? []));
  return all.filter((process) => named.has(process) || pods.has(process.container?.pod_uid ?? ""));
}

/** The processes that a target means now. */
export function matchedProcesses(form: TaskForm, all: Iterable<Process>): Process[] {
  if (form.target === "kubernetes") {
    const target = targetOf(form, []);
    return typeof target !== "string" && "pod" in target ? matchedPods(target.pod, [...all]) : [];
  }
  const cgroup = form.cgroup.trim().replace(/\/+$/, "");
  const matches = (process: Process): boolean => {
    switch (form.target) {
      case "pids":
        return form.pids.includes(process.pid);
      case "pod":
        return form.pod !== "" && String(process.network_namespace) === form.pod && !process.kernel_thread;
      case "container":
        return form.container !== "" && process.container?.id === form.container;
      case "comm":
        return process.comm === form.comm.trim();
      case "cgroup":
        return cgroup !== "" && (process.cgroup === cgroup || process.cgroup.startsWith(`${cgroup}/`));
      case "kubernetes":
      case "netns":
        return false;
      case "all":
        return true;
    }
  };
  return [...all].filter(matches);
}

/** Text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The request as a curl command; the token stays out of it. */
export function asCurl(spec: TaskSpec, origin: string): string {
  return [
    `curl -sS -X POST ${shellWord(`${origin}/api/v1/tasks`)}`,
    `-H "Authorization: Bearer $PROFILER_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d ${shellWord(JSON.stringify(spec))}`,
  ].join(" \\\n  ");
}

/** Pods of a target as an option of a command; null where no option says the same. */
export function podOption(selector: PodSelector): string | null {
  const option = selectorOption(selector);
  return option === null ? null : `${option[0]} ${shellWord(option[1])}`;
}

/** The same measurement without a server; null where the command has no such target. */
export function asCli(spec: TaskSpec): string | null {
  const { target } = spec;
  const duration = spec.duration_s === null ? "1h" : `${spec.duration_s}s`;
  if (spec.kind === "network" || spec.kind === "requests") {
    const which =
      "pids" in target
        ? target.pids.map((pid) => `--pid ${pid}`).join(" ")
        : "container" in target
          ? `--container ${shellWord(target.container)}`
          : "pod" in target
            ? podOption(target.pod)
            : "network_namespace" in target
              ? `--netns ${shellWord(target.network_namespace)}`
              : "all" in target
                ? "--all"
                : null;
    if (which === null) return null;
    if (spec.kind === "network")
      return `profiler-agent net ${which} --duration ${duration}${spec.timed ? " --timed" : ""}`;
    const duty = spec.tls_duty_percent === undefined ? "" : ` --tls-duty ${spec.tls_duty_percent}`;
    const sources = sourcesAsked(spec);
    const names = sources.map((source) => source.replace("_", "-")).join(",");
    const capture = [
      sources.includes("access_log") ? ` --source ${names}` : spec.tls ? " --tls" : "",
      sources.includes("tls") ? duty : "",
      spec.bodies ? " --bodies" : "",
      spec.raw_paths ? " --raw-paths" : "",
      spec.samples === "all" ? " --samples all" : "",
    ].join("");
    return `profiler-agent requests ${which} --duration ${duration}${capture}`;
  }
  const which =
    "pids" in target
      ? target.pids.map((pid) => `--pid ${pid}`).join(" ")
      : "container" in target
        ? `--container ${shellWord(target.container)}`
        : "pod" in target
          ? podOption(target.pod)
          : "cgroup" in target
            ? `--cgroup ${shellWord(target.cgroup)}`
            : "comm" in target
              ? `--comm ${shellWord(target.comm)}`
              : "--all";
  if (which === null) return null;
  const frequency = `--frequency ${spec.frequency_hz}`;
  const bounds = [
    spec.off_cpu_mode === undefined ? "" : ` --off-cpu-mode ${spec.off_cpu_mode}`,
    spec.min_wait_ns === undefined ? "" : ` --min-wait ${spec.min_wait_ns}ns`,
    spec.max_wait_ns === undefined ? "" : ` --max-wait ${spec.max_wait_ns}ns`,
  ].join("");
  const wakers = (spec.wakers ? " --wakers" : "") + bounds;
  const what = { on_cpu: frequency, off_cpu: "--kind off-cpu", wall: `--kind wall ${frequency}` }[spec.kind];
  return `profiler-agent record ${which} --duration ${duration} ${what}${wakers} --format folded --output profile.folded`;
}

/** What the form asks for first: what was picked; a check-up is of a pod. */
export function firstTarget(from: {
  readonly pids: readonly number[];
  readonly container: string;
  readonly pod: string;
  readonly checkup: boolean;
}): TargetKind {
  if (from.pod !== "") return "pod";
  if (from.container !== "") return "container";
  return from.checkup && from.pids.length === 0 ? "pod" : "pids";
}

/** True while there is nothing to start a task on. */
export function nothingPicked(result: { readonly ok: boolean; readonly field?: string }): boolean {
  return !result.ok && result.field === "target";
}

/** Who the processes of a target of pids were when the task began, each name once, in the target's order. */
export function targetNames(task: Pick<Task, "target_names">): string[] {
  return [...new Set(task.target_names.map(({ comm }) => comm))];
}

/** A container that was asked for by its id, or the beginning of it. */
function containerText(asked: string, named: NamedContainers): string {
  const [id, ...others] = asked in named ? [asked] : Object.keys(named).filter((id) => id.startsWith(asked));
  const names = id === undefined || others.length > 0 ? undefined : named[id];
  return `container ${names === undefined ? "" : `${names.title} `}${asked.slice(0, 12)}`;
}

/** A target in a few words. `named`: names of the containers that run. */
export function targetText(target: Target, named: NamedContainers = {}): string {
  if ("pids" in target) return target.pids.length === 1 ? `pid ${target.pids[0]}` : pidList(target.pids);
  if ("container" in target) return containerText(target.container, named);
  if ("pod" in target) return selectorText(target.pod);
  if ("cgroup" in target) return `cgroup ${target.cgroup}`;
  if ("comm" in target) return `all named ${target.comm}`;
  if ("network_namespace" in target) return `network namespace ${namespaceText(target.network_namespace)}`;
  if ("imported" in target) return target.imported.name;
  return "whole node";
}

/** Whose namespace a path is, or the name that it was given. */
function namespaceText(path: string): string {
  const pid = /^\/proc\/(\d+)\/ns\/net$/.exec(path)?.[1];
  return pid === undefined ? path.replace(/^(\/var)?\/run\/netns\//, "") : `of pid ${pid}`;
}

/** More pids are counted. */
const LISTED_PIDS = 6;

function pidList(pids: readonly number[]): string {
  const more = pids.length - LISTED_PIDS;
  return `pids ${pids.slice(0, LISTED_PIDS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
