// The sidecar check-up: three tasks on one target at once, found again by the name of their group.

import type { Process, Task, TaskKind, TaskSpec } from "../api/types";
import type { FormResult, TaskForm } from "./task_spec";
import { specOf } from "./task_spec";

export const CHECKUP_KINDS: readonly TaskKind[] = ["on_cpu", "off_cpu", "network"];

/** A name that no earlier check-up of this page has. */
export function checkupName(nowMs: number): string {
  return `checkup-${new Date(nowMs).toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15)}-${(nowMs % 1000).toString(36)}`;
}

export type CheckupResult =
  | { readonly ok: true; readonly specs: readonly TaskSpec[] }
  | Extract<FormResult, { ok: false }>;

/** The three requests of a form. */
export function checkupSpecs(form: TaskForm, matched: readonly Process[], group: string): CheckupResult {
  const specs: TaskSpec[] = [];
  for (const kind of CHECKUP_KINDS) {
    const result = specOf({ ...form, kind, wakers: false, timed: false }, matched);
    if (!result.ok) return result;
    specs.push({ ...result.spec, group });
  }
  return { ok: true, specs };
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
