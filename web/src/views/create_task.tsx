// The dialog that creates a task.

import { useEffect, useMemo, useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import { api, ProblemError } from "../api/client";
import type { Problem, Task, TaskKind } from "../api/types";
import { CHECKUP_KINDS, checkupAsCli, checkupAsCurl, checkupSpec } from "../lib/checkup";
import { coresOf, recommendedSeconds } from "../lib/estimate";
import { visible } from "../lib/format";
import { kindStatuses } from "../lib/kind_probes";
import { formAgain, unseenOf } from "../lib/run_again";
import { remarksOn } from "../lib/task_conflicts";
import {
  asCli,
  asCurl,
  firstTarget,
  matchedProcesses,
  NEW_FORM,
  nothingPicked,
  specOf,
  type TargetKind,
  type TaskForm,
  watchesConnections,
} from "../lib/task_spec";
import { edited } from "../state/edited";
import { meta, processes, putTask, tasks } from "../state/live";
import { probes } from "../state/probes";
import { openView, patchRoute, route } from "../state/route";
import { CaptureFields } from "./capture_fields";
import { CopyButton } from "./copy_button";
import { Dialog } from "./dialog";
import { FieldError, type FieldFailure } from "./field_error";
import { TargetFields } from "./target_fields";
import { TaskEstimate } from "./task_estimate";
import { TaskOptions } from "./task_options";

const KINDS: readonly (readonly [TaskKind, string])[] = [
  ["on_cpu", "On-CPU"],
  ["off_cpu", "Off-CPU"],
  ["wall", "Wall clock"],
  ["network", "Network"],
  ["requests", "Requests"],
];
const TARGETS: readonly (readonly [TargetKind, string])[] = [
  ["pids", "Processes"],
  ["pod", "Pod"],
  ["kubernetes", "Pod by label"],
  ["container", "Container"],
  ["comm", "Process name"],
  ["cgroup", "Cgroup"],
  ["netns", "Network namespace"],
  ["all", "Whole node"],
];

function failureOf(problem: Problem): FieldFailure {
  return { field: problem.field ?? null, detail: problem.detail || problem.title, hint: problem.hint };
}

const PLACED = ["target", "duration_s", "frequency_hz", "min_wait_ns", "max_wait_ns", "source", "tls"];

/** Offered when they are asked for. */
const RARE_TARGETS: ReadonlySet<TargetKind> = new Set(["kubernetes", "comm", "cgroup", "netns"]);

function close(): void {
  patchRoute({ create: false, pids: [], container: "", pod: "", checkup: false }, "replace");
}

function titleOf(checkup: boolean, again: Task | null): string {
  if (again === null) return checkup ? "New check-up" : "New task";
  return checkup ? "Edit and run the check-up" : `Edit and run task ${again.id}`;
}

export function CreateTask() {
  const [again] = useState(() => edited.peek());
  const [form, setForm] = useState<TaskForm>(() => {
    const from = route.peek();
    const { pids, container, pod } = from;
    const known = again === null ? null : formAgain(again);
    return known ?? { ...NEW_FORM, target: firstTarget(from), pids, container, pod };
  });
  // However the dialog is left, the next one begins anew.
  useEffect(
    () => () => {
      edited.value = null;
    },
    [],
  );
  const [failure, setFailure] = useState<FieldFailure | null>(null);
  const [sending, setSending] = useState(false);
  const [allTargets, setAllTargets] = useState(false);
  const change = (part: Partial<TaskForm>): void => {
    setForm((before) => ({ ...before, ...part }));
    setFailure(null);
  };

  const all = processes.value;
  const matched = useMemo(() => matchedProcesses(form, all?.values() ?? []), [form, all]);
  const { checkup } = route.value;
  const recommended = recommendedSeconds(
    !checkup && !watchesConnections(form.kind),
    Number(form.frequency) || Number(NEW_FORM.frequency),
    form.target === "netns" ? null : coresOf(matched),
  );
  const filled = form.duration.trim() === "" ? { ...form, duration: String(recommended) } : form;
  const plain = specOf(filled, matched);
  const unseen = again !== null && again.kind === form.kind ? unseenOf(again) : {};
  const result = plain.ok ? { ...plain, spec: { ...plain.spec, ...unseen } } : plain;
  const asked = checkup ? checkupSpec(filled, matched) : null;
  const specs = asked === null ? (result.ok ? [result.spec] : []) : asked.ok ? asked.parts : [];
  const remarks = remarksOn({
    specs,
    meta: meta.value,
    tasks: tasks.value?.values() ?? [],
    kinds: kindStatuses(probes.value),
    matched,
    isMatched: form.target !== "netns",
  });
  const curl = asked?.ok
    ? checkupAsCurl(asked.spec, location.origin)
    : asked === null && result.ok
      ? asCurl(result.spec, location.origin)
      : null;
  const cli = asked?.ok ? checkupAsCli(asked.spec) : asked === null && result.ok ? asCli(result.spec) : null;

  const isDemo = meta.value?.demo_data === true;

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const wrong = asked === null ? result : asked;
    if (!wrong.ok) {
      setFailure({ field: wrong.field, detail: wrong.detail, hint: undefined });
      return;
    }
    setSending(true);
    try {
      if (asked?.ok) {
        const { id } = await checkups.create(asked.spec);
        openView({ view: "checkup", id });
      } else if (result.ok) {
        const task = await api.create(result.spec);
        putTask(task);
        openView({ view: "task", id: task.id });
      }
    } catch (error) {
      setSending(false);
      if (error instanceof ProblemError) setFailure(failureOf(error.problem));
      else setFailure({ field: null, detail: "the agent does not answer", hint: undefined });
    }
  };

  return (
    <Dialog title={titleOf(checkup, again)} class="create" onClose={close}>
      <form onSubmit={submit} noValidate>
        <fieldset class="segments">
          <legend>What to measure</legend>
          {KINDS.map(([kind, title]) => (
            <label key={kind} class="segment">
              <input
                type="radio"
                name="kind"
                value={kind}
                checked={!checkup && form.kind === kind}
                onChange={() => {
                  patchRoute({ checkup: false }, "replace");
                  change(
                    !watchesConnections(kind) && form.target === "netns"
                      ? { kind, target: "pids" }
                      : { kind },
                  );
                }}
              />
              <span>{title}</span>
            </label>
          ))}
          <label class="segment">
            <input
              type="radio"
              name="kind"
              value="checkup"
              checked={checkup}
              onChange={() => {
                patchRoute({ checkup: true }, "replace");
                change({
                  endless: false,
                  ...(form.target === "netns" ? { target: "pids" as const } : {}),
                  ...(watchesConnections(form.kind) ? { kind: "on_cpu" as const } : {}),
                });
              }}
            />
            <span>Check-up</span>
          </label>
        </fieldset>
        {checkup && (
          <p class="muted small">
            Starts {CHECKUP_KINDS.length} tasks on the target at once, on-CPU, off-CPU and requests, reads
            what the kernel accounts and what the proxy says of itself, and says where requests spend their
            time and what costs what.
          </p>
        )}
        <fieldset class="segments">
          <legend>Target</legend>
          {TARGETS.filter(([kind]) => kind !== "netns" || (watchesConnections(form.kind) && !checkup))
            .filter(([kind]) => allTargets || !RARE_TARGETS.has(kind) || form.target === kind)
            .map(([kind, title]) => (
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
          {!allTargets && (
            <button
              type="button"
              class="quiet"
              onClick={(event) => {
                // It goes away: the focus stays among the targets.
                event.currentTarget.closest("fieldset")?.querySelector<HTMLElement>("input:checked")?.focus();
                setAllTargets(true);
              }}
            >
              More…
            </button>
          )}
        </fieldset>
        <TargetFields form={form} change={change} matched={matched} />
        <FieldError failure={failure} field="target" />

        {!checkup && form.kind === "requests" && (
          <CaptureFields form={form} change={change} failure={failure} />
        )}

        <TaskOptions
          form={form}
          change={change}
          failure={failure}
          checkup={checkup}
          recommended={recommended}
          isOpen={again !== null}
        />

        <TaskEstimate
          specs={specs}
          matched={matched}
          isMatched={form.target !== "netns"}
          problem={(asked ?? result).ok ? null : ((asked ?? result) as { readonly detail: string }).detail}
        />

        {remarks.length > 0 && (
          <ul class="task-remarks" aria-label="What to know before">
            {remarks.map(({ weight, text }) => (
              <li key={text} class={`remark-${weight}`}>
                <b>{weight === "refusal" ? "Will be refused: " : "Note: "}</b>
                {visible(text)}
              </li>
            ))}
          </ul>
        )}

        {failure !== null && !PLACED.some((field) => (failure.field ?? "").startsWith(field)) && (
          <p class="field-error" role="alert">
            {visible(failure.detail)}
            {failure.hint !== undefined && <span class="muted"> {failure.hint}</span>}
          </p>
        )}

        <footer class="dialog-foot">
          <CopyButton title="Copy as curl" text={curl} />
          <CopyButton
            title="Copy as CLI"
            text={cli}
            missing={curl === null ? undefined : "The command has no option for this target"}
          />
          <span class="push" />
          {isDemo && <span class="muted small">Demo data: nothing can be recorded here</span>}
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={sending || isDemo || nothingPicked(asked ?? result)}
            data-first=""
          >
            {sending ? "Starting…" : checkup ? "Start check-up" : "Start"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
