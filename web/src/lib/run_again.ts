// A task that ran once more: as it was asked for, or as a form to change something of it.

import type { RequestSettings, Task, TaskSpec } from "../api/types";
import { sourcesAsked } from "./request_source";
import { NEW_FORM, NO_SELECTOR, type TargetKind, type TaskForm } from "./task_spec";

/** What a form has no field for, and is asked for all the same. */
export type Unseen = Pick<TaskSpec, "rules" | "capture_bytes" | "event_loop">;

export function unseenOf({ requests, event_loop }: Task): Unseen {
  return {
    ...(event_loop === null ? {} : { event_loop }),
    // Of sockets alone.
    ...(requests?.source.includes("sockets") ? { capture_bytes: requests.capture_bytes } : {}),
    ...(requests === null || requests.rules.length === 0 ? {} : { rules: requests.rules }),
  };
}

function captureAgain(settings: RequestSettings): Partial<TaskSpec> {
  const { source, tls, tls_duty_percent, bodies, raw_paths, samples } = settings;
  const kept = { raw_paths, samples };
  if (!source.includes("sockets")) return { source, ...kept };
  const asked = source.includes("access_log") ? { source } : { tls };
  return { ...asked, tls_duty_percent, bodies, ...kept };
}

/** What was asked for; null for a file, which was never asked for. */
export function specAgain(task: Task): TaskSpec | null {
  const { kind, target, duration_s, frequency_hz, wakers, waits, requests } = task;
  if (kind === "imported" || "imported" in target) return null;
  return {
    kind,
    target,
    duration_s,
    frequency_hz: frequency_hz ?? Number(NEW_FORM.frequency),
    wakers,
    ...(task.timed ? { timed: true } : {}),
    ...(waits.off_cpu_mode === null ? {} : { off_cpu_mode: waits.off_cpu_mode }),
    ...(waits.min_wait_ns > 0 ? { min_wait_ns: waits.min_wait_ns } : {}),
    ...(waits.max_wait_ns === null ? {} : { max_wait_ns: waits.max_wait_ns }),
    ...(requests === null ? {} : captureAgain(requests)),
    ...unseenOf(task),
  };
}

/** The name of a group that runs once more: a number behind a dot; `taken` are those of all tasks. */
export function groupAgain(group: string, taken: ReadonlySet<string>): string {
  const MOST_LENGTH = 60;
  const base = group.replace(/\.\d+$/, "").slice(0, MOST_LENGTH);
  let number = 2;
  while (taken.has(`${base}.${number}`)) number += 1;
  return `${base}.${number}`;
}

function targetFields(target: Task["target"]): Partial<TaskForm> & { readonly target: TargetKind } {
  if ("pids" in target) return { target: "pids", pids: target.pids };
  if ("container" in target) return { target: "container", container: target.container };
  if ("cgroup" in target) return { target: "cgroup", cgroup: target.cgroup };
  if ("comm" in target) return { target: "comm", comm: target.comm };
  if ("network_namespace" in target) return { target: "netns", netns: target.network_namespace };
  if ("pod" in target) {
    const text = Object.entries(target.pod).map(([key, value]) => [key, value ?? ""]);
    return { target: "kubernetes", selector: { ...NO_SELECTOR, ...Object.fromEntries(text) } };
  }
  return { target: "all" };
}

/** The form that asks for the same. */
export function formAgain(task: Task): TaskForm | null {
  const spec = specAgain(task);
  if (spec === null) return null;
  const sources = sourcesAsked(spec);
  const milliseconds = (ns: number | null | undefined): string => (ns == null ? "" : String(ns / 1e6));
  return {
    ...NEW_FORM,
    ...targetFields(spec.target),
    kind: spec.kind,
    duration: spec.duration_s === null ? NEW_FORM.duration : String(spec.duration_s),
    endless: spec.duration_s === null,
    frequency: String(spec.frequency_hz),
    wakers: spec.wakers,
    timed: spec.timed ?? false,
    mode: spec.off_cpu_mode ?? "",
    minWait: milliseconds(spec.min_wait_ns),
    maxWait: milliseconds(spec.max_wait_ns),
    accessLogs: sources.includes("access_log"),
    sockets: sources.includes("sockets"),
    tls: sources.includes("tls"),
    duty: String(spec.tls_duty_percent ?? 100),
    bodies: spec.bodies ?? false,
    rawPaths: spec.raw_paths ?? false,
    samples: spec.samples ?? "slow",
  };
}
