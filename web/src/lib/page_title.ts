// What the tab of the browser says: the object first, because tabs are cut at the end.

import type { Task } from "../api/types";
import { visible } from "./format";
import { KIND_TITLES } from "./kind_probes";
import type { PageState } from "./query_state";
import { targetNames, targetText } from "./task_spec";

const PROGRAM = "profiler-agent";

function taskTitle(task: Task | undefined, id: string): string {
  if (task === undefined) return `Task ${id}`;
  const names = targetNames(task);
  const kind = (KIND_TITLES as Readonly<Record<string, string>>)[task.kind] ?? task.kind;
  return `${names.length > 0 ? names.join(", ") : targetText(task.target)} – ${kind}, task ${id}`;
}

function objectOf(route: PageState, task: Task | undefined, checkup: string | null): string {
  switch (route.view) {
    case "overview":
      return "Overview";
    case "pods":
      return "Pods";
    case "processes":
      return "Processes";
    case "tasks":
      return "Tasks";
    case "network":
      return "Network";
    case "node":
      return "Node";
    case "group":
      return `Group ${route.id}`;
    case "task":
      return taskTitle(task, route.id);
    case "diagnose":
      return "Diagnose";
    case "checkup":
      return `${checkup === null ? "" : `${checkup} – `}Check-up ${route.id}`;
    case "diagnosis":
      return `Diagnosis of task ${route.id}`;
    case "compare-checkups":
      return `${checkup === null ? "" : `${checkup} – `}Check-ups ${route.a} and ${route.b}`;
    case "edge":
      return route.id === "" ? `Edge ${route.edge}` : `Edge ${route.edge} of task ${route.id}`;
  }
}

/**
 * `node`: name of the machine, when it is known. `edge`: the two ends of the edge that is shown, when they are. `checkup`: what the
 * check-up that is shown is of.
 */
export function pageTitle(
  route: PageState,
  {
    task,
    edge,
    checkup,
    node,
  }: { task: Task | undefined; edge: string | null; checkup: string | null; node: string | null },
): string {
  const object = route.view === "edge" && edge !== null ? edge : objectOf(route, task, checkup);
  return [visible(object), node === null ? "" : visible(node), PROGRAM]
    .filter((part) => part !== "")
    .join(" · ");
}
