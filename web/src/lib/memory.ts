// Words for the agent's memory and its ceiling.

import type { Memory } from "../api/types";
import { bytes, count, visible } from "./format";

/** What the agent gives up in each stage. */
export const STAGE_TEXT = {
  open: "",
  trimming: "Near it: caches are dropped, and results are read one at a time.",
  refusing: "Near it: no task, check-up or import is started.",
  stopping: "Very near it: tasks are being stopped, those that are always on first.",
} as const;

/** The ceiling, how much of it is used, and where it comes from. */
export function ceilingText(memory: Memory): string {
  if (memory.ceiling_bytes === null) return "none";
  const share = Math.round((100 * memory.used_bytes) / memory.ceiling_bytes);
  const used = `${bytes(memory.ceiling_bytes)}, ${share} % used`;
  if (memory.cgroup === null) return used;
  return `${used}; 80 % of the limit of the cgroup ${visible(memory.cgroup.path)}`;
}

export function memoryParts(memory: Memory): string {
  return `${bytes(memory.own_bytes)} own, ${bytes(memory.copied_bytes)} copied symbol tables, ${bytes(memory.kernel_bytes)} in the kernel`;
}

/** What was given up since the start; empty when nothing was. */
export function givenUp(memory: Memory): string {
  const parts = [
    [memory.caches_dropped, "caches dropped"],
    [memory.refusals, "refused"],
    [memory.stopped, "stopped"],
  ] as const;
  return parts
    .filter(([times]) => times > 0)
    .map(([times, what]) => `${what} ${count(times)} times`)
    .join(", ");
}
