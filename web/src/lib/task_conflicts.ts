// What stands against a task, or will surprise: as sentences, before the agent is asked.

import type { Meta, Process, Task, TaskKind, TaskSpec } from "../api/types";
import type { KindStatus } from "./kind_probes";
import { sourcesAsked } from "./request_source";

export interface Remark {
  /** A refusal comes from the agent for sure; a note is worth knowing. */
  readonly weight: "refusal" | "note";
  readonly text: string;
}

/** Rates that run in step with timers that fire at round numbers a second. */
const IN_STEP = new Set([10, 20, 25, 50, 100, 125, 200, 250, 500, 1000, 2000, 2500]);

export interface ConflictInput {
  readonly specs: readonly TaskSpec[];
  readonly meta: Meta | null;
  readonly tasks: Iterable<Task>;
  readonly kinds: readonly KindStatus[];
  readonly matched: readonly Process[];
  /** Whether `matched` is what the target means; it is not for a path of a namespace. */
  readonly isMatched: boolean;
}

const samplesAtRate = (kind: TaskKind): boolean => kind === "on_cpu" || kind === "wall";

function limits({ specs, meta }: ConflictInput): Remark[] {
  const spec = specs[0];
  if (spec === undefined || meta === null) return [];
  const { max_duration_s, max_frequency_hz } = meta.limits;
  const remarks: Remark[] = [];
  if (spec.duration_s !== null && (spec.duration_s < 1 || spec.duration_s > max_duration_s))
    remarks.push({ weight: "refusal", text: `The duration must be 1 to ${max_duration_s} seconds.` });
  if (samplesAtRate(spec.kind) && (spec.frequency_hz < 1 || spec.frequency_hz > max_frequency_hz))
    remarks.push({ weight: "refusal", text: `The frequency must be 1 to ${max_frequency_hz} Hz.` });
  if (samplesAtRate(spec.kind) && IN_STEP.has(spec.frequency_hz))
    remarks.push({
      weight: "note",
      text: `${spec.frequency_hz} Hz may run in step with the program's own timers and show them too often or never; ${spec.frequency_hz - 1} does not.`,
    });
  if (meta.cpu_budget_percent !== null && samplesAtRate(spec.kind))
    remarks.push({
      weight: "note",
      text: `The agent lowers the rate when it needs more than ${meta.cpu_budget_percent} % of one CPU.`,
    });
  return remarks;
}

function places({ specs, meta, tasks }: ConflictInput): Remark[] {
  const others = [...tasks].filter(({ state }) => state === "running" || state === "queued");
  const remarks: Remark[] = [];
  const most = meta?.limits.max_running_tasks;
  if (most !== undefined && others.length + specs.length > most)
    remarks.push({
      weight: "note",
      text: `${others.length} tasks run or wait and ${most} may run at once: ${
        specs.length === 1 ? "this one" : "some of these"
      } will wait for a place.`,
    });
  for (const spec of specs) {
    const same = others.find(
      (task) => task.kind === spec.kind && JSON.stringify(task.target) === JSON.stringify(spec.target),
    );
    if (same !== undefined)
      remarks.push({
        weight: "note",
        text: `Task ${same.id} does the same on the same target now; both will cost.`,
      });
  }
  return remarks;
}

/** Access logs come without probes. */
const usesProbes = (spec: TaskSpec): boolean =>
  spec.kind !== "requests" || sourcesAsked(spec).includes("sockets");

/** Everything to say, refusals first. */
export function remarksOn(input: ConflictInput): Remark[] {
  const { specs, kinds, matched, isMatched } = input;
  const remarks: Remark[] = [];
  for (const spec of specs.filter(usesProbes)) {
    const status = kinds.find(({ kind }) => kind === spec.kind);
    if (status?.state === "impossible")
      remarks.push({ weight: "refusal", text: `${status.title} is not possible here: ${status.reason}.` });
    if (status?.state === "degraded")
      remarks.push({ weight: "note", text: `${status.title} will show less here: ${status.reason}.` });
  }
  // Without a target the form says so itself.
  if (isMatched && matched.length === 0 && specs.length > 0)
    remarks.push({
      weight: "note",
      text: "No process matches now: what is not running when the task starts may be refused, or nothing is seen.",
    });
  remarks.push(...limits(input), ...places(input));
  const rank = { refusal: 0, note: 1 } as const;
  return remarks.sort((a, b) => rank[a.weight] - rank[b.weight]);
}
