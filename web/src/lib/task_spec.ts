// The create form as plain data: what it asks the agent, and the same as commands.

import type { Process, Target, TaskKind, TaskSpec } from "../api/types";

export type TargetKind = "pids" | "container" | "comm" | "cgroup" | "netns" | "all";

/** The form as typed. */
export interface TaskForm {
  readonly kind: TaskKind;
  readonly target: TargetKind;
  readonly pids: readonly number[];
  readonly container: string;
  readonly comm: string;
  readonly cgroup: string;
  /** Path of a network namespace; for kind network. */
  readonly netns: string;
  /** Seconds, as typed. */
  readonly duration: string;
  readonly endless: boolean;
  /** Hertz, as typed. */
  readonly frequency: string;
  /** Also who ended the waits. */
  readonly wakers: boolean;
  /** Also the times of system calls. */
  readonly timed: boolean;
}

export type FormResult =
  | { readonly ok: true; readonly spec: TaskSpec }
  | { readonly ok: false; readonly field: string; readonly detail: string };

export const MAX_FREQUENCY_HZ = 4999;
const DEFAULT_FREQUENCY_HZ = 99;

function wholeNumber(text: string): number | null {
  return /^\d{1,12}$/.test(text.trim()) ? Number(text.trim()) : null;
}

function targetOf(form: TaskForm): Target | string {
  switch (form.target) {
    case "pids":
      return form.pids.length > 0 ? { pids: form.pids } : "pick at least one process";
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

/** Checks only what would not make a request; limits are the agent's to check. */
export function specOf(form: TaskForm): FormResult {
  const target = targetOf(form);
  if (typeof target === "string") return { ok: false, field: "target", detail: target };
  const duration = form.endless ? null : wholeNumber(form.duration);
  if (duration === null && !form.endless) {
    return { ok: false, field: "duration_s", detail: "a whole number of seconds" };
  }
  // Everything is counted; there is no rate to choose.
  const frequency =
    form.kind === "off_cpu" || form.kind === "network" ? DEFAULT_FREQUENCY_HZ : wholeNumber(form.frequency);
  if (frequency === null) return { ok: false, field: "frequency_hz", detail: "a whole number of hertz" };
  return {
    ok: true,
    spec: {
      kind: form.kind,
      target,
      duration_s: duration,
      frequency_hz: frequency,
      wakers: form.wakers && (form.kind === "off_cpu" || form.kind === "wall"),
      ...(form.kind === "network" && form.timed ? { timed: true } : {}),
    },
  };
}

/** The processes that a target means now. */
export function matchedProcesses(form: TaskForm, all: Iterable<Process>): Process[] {
  const cgroup = form.cgroup.trim().replace(/\/+$/, "");
  const matches = (process: Process): boolean => {
    switch (form.target) {
      case "pids":
        return form.pids.includes(process.pid);
      case "container":
        return form.container !== "" && process.container?.id === form.container;
      case "comm":
        return process.comm === form.comm.trim();
      case "cgroup":
        return cgroup !== "" && (process.cgroup === cgroup || process.cgroup.startsWith(`${cgroup}/`));
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

/** The same measurement without a server; null where the command has no such target. */
export function asCli(spec: TaskSpec): string | null {
  const { target } = spec;
  const duration = spec.duration_s === null ? "1h" : `${spec.duration_s}s`;
  if (spec.kind === "network") {
    const which =
      "pids" in target
        ? target.pids.map((pid) => `--pid ${pid}`).join(" ")
        : "container" in target
          ? `--container ${shellWord(target.container)}`
          : "network_namespace" in target
            ? `--netns ${shellWord(target.network_namespace)}`
            : "all" in target
              ? "--all"
              : null;
    return which === null
      ? null
      : `profiler-agent net ${which} --duration ${duration}${spec.timed ? " --timed" : ""}`;
  }
  const which =
    "pids" in target
      ? target.pids.map((pid) => `--pid ${pid}`).join(" ")
      : "container" in target
        ? `--container ${shellWord(target.container)}`
        : "cgroup" in target
          ? `--cgroup ${shellWord(target.cgroup)}`
          : "comm" in target
            ? `--comm ${shellWord(target.comm)}`
            : "--all";
  const frequency = `--frequency ${spec.frequency_hz}`;
  const wakers = spec.wakers ? " --wakers" : "";
  const what = { on_cpu: frequency, off_cpu: "--kind off-cpu", wall: `--kind wall ${frequency}` }[spec.kind];
  return `profiler-agent record ${which} --duration ${duration} ${what}${wakers} --format folded --output profile.folded`;
}

/** A target in a few words. */
export function targetText(target: Target): string {
  if ("pids" in target)
    return target.pids.length === 1 ? `pid ${target.pids[0]}` : `pids ${target.pids.join(", ")}`;
  if ("container" in target) return `container ${target.container.slice(0, 12)}`;
  if ("cgroup" in target) return `cgroup ${target.cgroup}`;
  if ("comm" in target) return `all named ${target.comm}`;
  if ("network_namespace" in target) return `namespace ${target.network_namespace}`;
  if ("imported" in target) return target.imported.name;
  return "whole node";
}
