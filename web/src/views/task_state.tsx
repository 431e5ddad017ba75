// How the state of a task looks, in lists and on its page.

import type { StackQuality, Task } from "../api/types";
import { clock, count, percent } from "../lib/format";
import { LOST_SAMPLES } from "../lib/quality";
import { knownNow } from "../state/silent";

export function StateChip({ task }: { task: Task }) {
  return (
    <span class={`state-chip state-${task.state}`}>
      <span class="state-mark" aria-hidden="true" />
      {task.state}
    </span>
  );
}

/** Seconds that the task has run; one that is running is never shown beyond its duration. */
export function elapsedSeconds(
  { started_at_ns, ended_at_ns, duration_s }: Pick<Task, "started_at_ns" | "ended_at_ns" | "duration_s">,
  nowMs: number,
): number {
  if (started_at_ns === null) return 0;
  const seconds = Math.max(0, ((ended_at_ns ?? nowMs * 1e6) - started_at_ns) / 1e9);
  return ended_at_ns === null && duration_s !== null ? Math.min(seconds, duration_s) : seconds;
}

export function Progress({ task }: { task: Task }) {
  if (task.state === "queued") return <span class="muted">waiting</span>;
  if (task.state !== "running" && task.started_at_ns === null) return <span class="muted">–</span>;
  if (task.state !== "running") return <span class="muted">{clock(elapsedSeconds(task, knownNow()))}</span>;
  if (task.progress === null)
    return <span class="muted">{clock(elapsedSeconds(task, knownNow()))}, runs until stopped</span>;
  return (
    <progress value={task.progress} max={1} aria-label={`${Math.round(task.progress * 100)} percent done`} />
  );
}

/**
 * What was lost, in a few words. Only lost samples have a share: other kinds count ticks, stacks or
 * events, which have another whole.
 */
export function lossText(task: Pick<Task, "losses" | "samples">): string {
  const sum = (of: typeof task.losses) => of.reduce((total, loss) => total + loss.count, 0);
  const samples = sum(task.losses.filter((loss) => LOST_SAMPLES.has(loss.kind)));
  const others = task.losses.filter((loss) => !LOST_SAMPLES.has(loss.kind) && loss.count > 0);
  const parts: string[] = [];
  if (samples > 0) parts.push(`${count(samples)} samples (${percent(samples, samples + task.samples)})`);
  const [first, ...rest] = others;
  if (first !== undefined)
    parts.push(
      rest.length === 0
        ? `${count(first.count)} × ${first.kind.replaceAll("_", " ")}`
        : `${count(sum(others))} losses of ${others.length} other kinds`,
    );
  return parts.length === 0 ? "none" : parts.join(", ");
}

/** What it took to walk the stacks, for the tooltip of the line that says how complete they are. */
export function tableText(tables: StackQuality["tables"]): string {
  const parts = [
    `${count(tables.pages_loaded)} pages of unwind tables loaded (${count(tables.blocks)} KiB)`,
    `${count(tables.pages_evicted)} evicted`,
    `${count(tables.captures)} samples walked by the agent, ${count(tables.repaired)} to their end`,
  ];
  if (tables.captures_dropped > 0) parts.push(`${count(tables.captures_dropped)} did not fit`);
  if (tables.processes_left_out > 0) parts.push(`${count(tables.processes_left_out)} processes left out`);
  return parts.join("; ");
}
