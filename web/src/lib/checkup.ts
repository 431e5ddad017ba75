// The sidecar check-up: three tasks on one target at once, which the agent starts, and what it reads
// beside them.

import type { CheckupSpec, Process, Task, TaskKind, TaskSpec } from "../api/types";
import { type FormResult, podOption, shellWord, specOf, type TaskForm } from "./task_spec";

export const CHECKUP_KINDS: readonly TaskKind[] = ["on_cpu", "off_cpu", "requests"];

export type CheckupResult =
  | {
      readonly ok: true;
      readonly spec: CheckupSpec;
      /** What the agent makes of it, for the estimate. */
      readonly parts: readonly TaskSpec[];
    }
  | Extract<FormResult, { ok: false }>;

/** The request of a form. */
export function checkupSpec(form: TaskForm, matched: readonly Process[]): CheckupResult {
  const parts: TaskSpec[] = [];
  for (const kind of CHECKUP_KINDS) {
    const result = specOf({ ...form, kind, endless: false, wakers: false, timed: false }, matched);
    if (!result.ok) return result;
    parts.push(result.spec);
  }
  const [sampled] = parts;
  if (sampled === undefined || sampled.duration_s === null)
    return { ok: false, field: "duration_s", detail: "a whole number of seconds" };
  const { target, duration_s, frequency_hz } = sampled;
  return { ok: true, spec: { target, duration_s, frequency_hz }, parts };
}

/** The request as a curl command; the token stays out of it. */
export function checkupAsCurl(spec: CheckupSpec, origin: string): string {
  return [
    `curl -sS -X POST ${shellWord(`${origin}/api/v1/checkups`)}`,
    `-H "Authorization: Bearer $PROFILER_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d ${shellWord(JSON.stringify(spec))}`,
  ].join(" \\\n  ");
}

/** The same without a server; null where the command has no such target. */
export function checkupAsCli({ target, duration_s, frequency_hz }: CheckupSpec): string | null {
  const which =
    "pids" in target
      ? target.pids.map((pid) => `--pid ${pid}`).join(" ")
      : "container" in target
        ? `--container ${shellWord(target.container)}`
        : "pod" in target
          ? podOption(target.pod)
          : "comm" in target
            ? `--comm ${shellWord(target.comm)}`
            : null;
  const frequency = frequency_hz === undefined ? "" : ` --frequency ${frequency_hz}`;
  return which === null ? null : `profiler-agent diagnose ${which} --duration ${duration_s}s${frequency}`;
}

/** Tasks of a group in the order of the check-up, then by number. */
export function tasksOfGroup(tasks: Iterable<Task>, group: string): Task[] {
  const rank = (task: Task): number => {
    const at = (CHECKUP_KINDS as readonly string[]).indexOf(task.kind);
    return at === -1 ? CHECKUP_KINDS.length : at;
  };
  return [...tasks]
    .filter((task) => task.group === group)
    .sort((a, b) => rank(a) - rank(b) || Number(a.id) - Number(b.id));
}
