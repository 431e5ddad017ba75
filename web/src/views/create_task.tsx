// The dialog that creates a task.

import { useMemo, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { Problem, TaskKind } from "../api/types";
import { estimateLine } from "../lib/estimate";
import {
  asCli,
  asCurl,
  MAX_FREQUENCY_HZ,
  matchedProcesses,
  specOf,
  type TargetKind,
  type TaskForm,
} from "../lib/task_spec";
import { meta, processes, putTask } from "../state/live";
import { openView, patchRoute, route } from "../state/route";
import { CopyButton } from "./copy_button";
import { Dialog } from "./dialog";
import { TargetFields } from "./target_fields";

const DURATIONS = ["10", "30", "60", "300"] as const;
const KINDS: readonly (readonly [TaskKind, string])[] = [
  ["on_cpu", "On CPU"],
  ["off_cpu", "Off CPU"],
  ["wall", "Wall clock"],
  ["network", "Network"],
];
const TARGETS: readonly (readonly [TargetKind, string])[] = [
  ["pids", "Processes"],
  ["container", "Container"],
  ["comm", "Name"],
  ["cgroup", "Cgroup"],
  ["netns", "Network namespace"],
  ["all", "Whole node"],
];

interface Failure {
  readonly field: string | null;
  readonly detail: string;
  readonly hint: string | undefined;
}

function failureOf(problem: Problem): Failure {
  return { field: problem.field ?? null, detail: problem.detail || problem.title, hint: problem.hint };
}

/** The error next to the field it is about. */
export function FieldError({ failure, field }: { failure: Failure | null; field: string }) {
  const mine = failure?.field === field || (failure?.field ?? "").startsWith(`${field}.`);
  if (failure === null || !mine) return null;
  return (
    <p class="field-error" role="alert" id={`error-${field}`}>
      {failure.detail}
      {failure.hint !== undefined && <span class="muted"> {failure.hint}</span>}
    </p>
  );
}

const PLACED = ["target", "duration_s", "frequency_hz"];

function close(): void {
  patchRoute({ create: false, pids: [], container: "" }, "replace");
}

export function CreateTask() {
  const [form, setForm] = useState<TaskForm>(() => ({
    kind: "on_cpu",
    target: route.peek().container !== "" ? "container" : "pids",
    pids: route.peek().pids,
    container: route.peek().container,
    comm: "",
    cgroup: "",
    netns: "",
    duration: "10",
    endless: false,
    frequency: "99",
    wakers: false,
    timed: false,
  }));
  const [failure, setFailure] = useState<Failure | null>(null);
  const [sending, setSending] = useState(false);
  const change = (part: Partial<TaskForm>): void => {
    setForm((before) => ({ ...before, ...part }));
    setFailure(null);
  };

  const all = processes.value;
  const matched = useMemo(() => matchedProcesses(form, all?.values() ?? []), [form, all]);
  const cores = matched.reduce((sum, process) => sum + (process.cpu_percent ?? 0), 0) / 100;
  const result = specOf(form);
  const maxFrequency = meta.value?.limits.max_frequency_hz ?? MAX_FREQUENCY_HZ;

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!result.ok) {
      setFailure({ field: result.field, detail: result.detail, hint: undefined });
      return;
    }
    setSending(true);
    try {
      const task = await api.create(result.spec);
      putTask(task);
      openView({ view: "task", id: task.id });
    } catch (error) {
      setSending(false);
      if (error instanceof ProblemError) setFailure(failureOf(error.problem));
      else setFailure({ field: null, detail: "the agent does not answer", hint: undefined });
    }
  };

  return (
    <Dialog title="New task" class="create" onClose={close}>
      <form onSubmit={submit} noValidate>
        <fieldset class="segments">
          <legend>What to measure</legend>
          {KINDS.map(([kind, title]) => (
            <label key={kind} class="segment">
              <input
                type="radio"
                name="kind"
                value={kind}
                checked={form.kind === kind}
                onChange={() =>
                  change(kind !== "network" && form.target === "netns" ? { kind, target: "pids" } : { kind })
                }
              />
              <span>{title}</span>
            </label>
          ))}
        </fieldset>
        <fieldset class="segments">
          <legend>Target</legend>
          {TARGETS.filter(([kind]) => kind !== "netns" || form.kind === "network").map(([kind, title]) => (
            <label key={kind} class="segment">
              <input
                type="radio"
                name="target"
                value={kind}
                checked={form.target === kind}
                onChange={() => change({ target: kind })}
              />
              <span>{title}</span>
            </label>
          ))}
        </fieldset>
        <TargetFields form={form} change={change} matched={matched} />
        <FieldError failure={failure} field="target" />

        <div class="two-fields">
          <div class="field">
            <label for="duration">Duration, seconds</label>
            <div class="inline-field">
              <input
                id="duration"
                inputMode="numeric"
                autocomplete="off"
                value={form.endless ? "" : form.duration}
                placeholder={form.endless ? "no end" : ""}
                disabled={form.endless}
                onInput={(event) => change({ duration: event.currentTarget.value })}
              />
              <span class="presets">
                {DURATIONS.map((seconds) => (
                  <button
                    key={seconds}
                    type="button"
                    class="preset"
                    aria-pressed={!form.endless && form.duration === seconds}
                    onClick={() => change({ duration: seconds, endless: false })}
                  >
                    {Number(seconds) >= 60 ? `${Number(seconds) / 60} min` : `${seconds} s`}
                  </button>
                ))}
              </span>
            </div>
            <label class="check">
              <input
                type="checkbox"
                checked={form.endless}
                onChange={(event) => change({ endless: event.currentTarget.checked })}
              />
              No end: until it is stopped
            </label>
            <FieldError failure={failure} field="duration_s" />
          </div>
          <div class="field" hidden={form.kind === "network"}>
            <label for="frequency">Frequency, Hz</label>
            <input
              id="frequency"
              inputMode="numeric"
              autocomplete="off"
              value={form.kind === "off_cpu" ? "" : form.frequency}
              placeholder={form.kind === "off_cpu" ? "every switch" : ""}
              disabled={form.kind === "off_cpu"}
              onInput={(event) => change({ frequency: event.currentTarget.value })}
            />
            <p class="muted small">
              1 to {maxFrequency}. 99 does not run in step with timers that fire 100 times a second.
            </p>
            <FieldError failure={failure} field="frequency_hz" />
          </div>
        </div>

        {(form.kind === "off_cpu" || form.kind === "wall") && (
          <label class="check">
            <input
              type="checkbox"
              checked={form.wakers}
              onChange={(event) => change({ wakers: event.currentTarget.checked })}
            />
            Also who ended each wait
          </label>
        )}

        {form.kind === "network" && (
          <label class="check">
            <input
              type="checkbox"
              checked={form.timed}
              onChange={(event) => change({ timed: event.currentTarget.checked })}
            />
            Also how long calls took, and how long connections waited to be accepted (costs more)
          </label>
        )}

        <p class="estimate" aria-live="off">
          {form.kind === "off_cpu" && result.ok
            ? "Every time that a thread leaves the CPU is measured, with its stack."
            : form.kind === "network" && result.ok
              ? "Every connection is counted at both ends: bytes, calls, times, losses. Payload is not looked at."
              : form.kind === "wall" && result.ok
                ? "All time of each thread: waits are measured, time on the CPU is shared out over the samples."
                : result.ok
                  ? estimateLine(result.spec.duration_s, result.spec.frequency_hz, cores)
                  : `No estimate yet: ${result.detail}.`}
        </p>

        {failure !== null && !PLACED.some((field) => (failure.field ?? "").startsWith(field)) && (
          <p class="field-error" role="alert">
            {failure.detail}
            {failure.hint !== undefined && <span class="muted"> {failure.hint}</span>}
          </p>
        )}

        <footer class="dialog-foot">
          <CopyButton title="Copy as curl" text={result.ok ? asCurl(result.spec, location.origin) : null} />
          <CopyButton title="Copy as CLI" text={result.ok ? asCli(result.spec) : null} />
          <span class="push" />
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={sending}
            data-first={form.pids.length > 0 ? "" : undefined}
          >
            {sending ? "Starting…" : "Start"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
