// What is being measured on a page, and whether that has ended.

import type { Task } from "../api/types";
import { goodSamples, resolutionPoints } from "./estimate";
import type { PageState } from "./query_state";
import { isFinal } from "./task_list";

export type Ending = "running" | "done" | "failed";

function endingOf(tasks: readonly Task[]): Ending | null {
  if (tasks.length === 0) return null;
  if (tasks.some((task) => !isFinal(task))) return "running";
  return tasks.every(({ state }) => state === "failed") ? "failed" : "done";
}

/** Of the task, the group or the check-up that a page shows; null for other pages, and where nothing is known of it. */
export function endingShown(
  { view, id }: Pick<PageState, "view" | "id">,
  tasks: ReadonlyMap<string, Task>,
): Ending | null {
  if (view === "task") {
    const task = tasks.get(id);
    return endingOf(task === undefined ? [] : [task]);
  }
  if (view !== "checkup" && view !== "group") return null;
  return endingOf([...tasks.values()].filter(({ group }) => group === id));
}

/** A mark before the title: of what runs, and of what has ended while the page was open. */
export function endingMark(ending: Ending | null, wasRunning: boolean): string {
  if (ending === "running") return "… ";
  if (ending === null || !wasRunning) return "";
  return ending === "done" ? "✓ " : "✗ ";
}

/** A cost of this share is looked at. */
const SHARE = 0.1;
/** From so many samples on it is told well enough. */
export const ENOUGH_SAMPLES = goodSamples(SHARE);

/** What the samples so far are good for. */
export function enoughText(samples: number): { readonly enough: boolean; readonly text: string } {
  const points = resolutionPoints(samples, SHARE);
  if (points === null) return { enough: false, text: "No samples yet." };
  const enough = samples >= ENOUGH_SAMPLES;
  const exact = `a cost of 10 % reads 10 ± ${points.toFixed(1)} %`;
  return {
    enough,
    text: enough ? `Enough samples: ${exact}.` : `So far ${exact}.`,
  };
}
