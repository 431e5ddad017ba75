// Tasks by their id. An event may overtake an answer that was made before it, so what comes last is not always newest:
// a task that has ended does not run again, and one that was deleted does not come back.

import type { Task } from "../api/types";

export type TaskList = ReadonlyMap<string, Task>;

export function isFinal({ state }: Pick<Task, "state">): boolean {
  return state === "finished" || state === "failed" || state === "cancelled";
}

function newer(known: Task | undefined, told: Task): Task {
  return known !== undefined && isFinal(known) && !isFinal(told) ? known : told;
}

export function withTask(known: TaskList | null, told: Task, deleted: ReadonlySet<string>): TaskList {
  const next = new Map(known ?? []);
  if (!deleted.has(told.id)) next.set(told.id, newer(next.get(told.id), told));
  return next;
}

/** The answer is the whole list. */
export function listed(
  known: TaskList | null,
  answer: readonly Task[],
  deleted: ReadonlySet<string>,
): TaskList {
  const kept = answer.filter(({ id }) => !deleted.has(id));
  return new Map(kept.map((task) => [task.id, newer(known?.get(task.id), task)]));
}
