// What is being measured on a page, and whether that has ended.

import type { Diagnosis, Task } from "../api/types";
import { wordsOf } from "./cell";
import { visible } from "./format";
import type { PageState } from "./query_state";
import { isFinal } from "./task_list";

export type Ending = "running" | "done" | "failed";

function endingOf(tasks: readonly Task[]): Ending | null {
  if (tasks.length === 0) return null;
  if (tasks.some((task) => !isFinal(task))) return "running";
  return tasks.every(({ state }) => state === "failed") ? "failed" : "done";
}

/** A task, or the tasks of a check-up or another group. */
export interface Measured {
  readonly view: "task" | "checkup";
  readonly id: string;
}

/** What is measured on a page; of a comparison that is the later one. */
export function measuredOn({ view, id, b }: Pick<PageState, "view" | "id" | "b">): Measured | null {
  if (view === "task") return { view, id };
  if (view === "checkup" || view === "group") return { view: "checkup", id };
  return view === "compare-checkups" ? { view: "checkup", id: b } : null;
}

/** How far it is; null where nothing is known of it. */
export function endingOfMeasured({ view, id }: Measured, tasks: ReadonlyMap<string, Task>): Ending | null {
  if (view === "task") {
    const task = tasks.get(id);
    return endingOf(task === undefined ? [] : [task]);
  }
  return endingOf([...tasks.values()].filter(({ group }) => group === id));
}

/** A mark before the title: of what runs, and of what has ended while the page was open. */
export function endingMark(ending: Ending | null, wasRunning: boolean): string {
  if (ending === "running") return "… ";
  if (ending === null || !wasRunning) return "";
  return ending === "done" ? "✓ " : "✗ ";
}

/** The largest cost is told well enough within so many points, over so many seconds: those of one second are alike. */
const ENOUGH_POINTS = 2;
const ENOUGH_SECONDS = 5;

/** What the results so far are good for, by the interval of the largest cost. */
export function enoughText(diagnosis: Pick<Diagnosis, "matrix" | "window"> | null): {
  readonly enough: boolean;
  readonly text: string;
} {
  const largest = diagnosis?.matrix.rows.toSorted((a, b) => b.share_percent - a.share_percent)[0];
  if (diagnosis === null || largest === undefined) return { enough: false, text: "No samples yet." };
  const { feature, share_percent, low, high } = largest;
  const points = Math.max(share_percent - low, high - share_percent);
  const enough = points <= ENOUGH_POINTS && diagnosis.window.duration_s >= ENOUGH_SECONDS;
  const exact = `the largest cost, ${visible(wordsOf(feature))}, is ${share_percent.toFixed(1)} ± ${points.toFixed(1)} points`;
  return { enough, text: enough ? `Enough samples: ${exact}.` : `So far ${exact}.` };
}
