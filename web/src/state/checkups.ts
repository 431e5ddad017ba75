// Starting check-ups again, for proving what a change has saved.

import { checkups } from "../api/checkups";
import type { Checkup } from "../api/types";
import { tasks } from "./live";
import { openView } from "./route";

/** The task whose samples the matrix shares out. */
export function sampledTask(checkup: Checkup): string | null {
  const found =
    checkup.tasks.find(({ kind }) => kind === "on_cpu") ?? checkup.tasks.find(({ kind }) => kind === "wall");
  return found?.id ?? null;
}

/** The task with the waits. */
export function waitsTask(checkup: Checkup): string | null {
  return checkup.tasks.find(({ kind }) => kind === "off_cpu")?.id ?? null;
}

/** Measures the same target for as long, and goes to the comparison with `before`. */
export async function runAgain(before: Checkup): Promise<void> {
  const task = tasks.peek()?.get(sampledTask(before) ?? "");
  const { id } = await checkups.create({
    target: before.target,
    duration_s: before.duration_s,
    ...(task?.frequency_hz == null ? {} : { frequency_hz: task.frequency_hz }),
  });
  openView({ view: "compare-checkups", a: before.id, b: id });
}
