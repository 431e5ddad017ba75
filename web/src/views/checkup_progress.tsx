// A check-up that runs: how far each of its tasks is.

import type { Checkup, Diagnosis } from "../api/types";
import { enoughText } from "../lib/ending";
import { clock, visible } from "../lib/format";
import { KIND_TITLES } from "../lib/kind_probes";
import { isFinal } from "../lib/task_list";
import { tasks } from "../state/live";
import { StopAll } from "./group";
import { NoticeChoice } from "./notice";
import { PageLink } from "./page_link";
import { Progress, StateChip } from "./task_state";

/** `diagnosis`: of the results so far, null before there are any; without it nothing is said of how far they go. */
export function CheckupProgress({ checkup, diagnosis }: { checkup: Checkup; diagnosis?: Diagnosis | null }) {
  const known = tasks.value;
  const running = checkup.tasks
    .map(({ id }) => known?.get(id))
    .filter((task) => task !== undefined)
    .filter((task) => !isFinal(task));
  const { enough, text } = enoughText(diagnosis ?? null);
  return (
    <section class="card checkup-progress" aria-label={`Progress of ${checkup.id}`} data-progress>
      <p>
        {checkup.ends_in_s === null
          ? "It runs until its tasks have ended."
          : checkup.ends_in_s > 0
            ? `The verdict is here in about ${clock(checkup.ends_in_s)}.`
            : "Reading what was measured…"}{" "}
        {diagnosis !== undefined && (
          <span class={enough ? "" : "muted"} data-enough>
            {text}
          </span>
        )}
      </p>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">State</th>
            <th scope="col">Progress</th>
          </tr>
        </thead>
        <tbody>
          {checkup.tasks.map(({ id, kind, state, reason }) => {
            const task = known?.get(id);
            const title = KIND_TITLES[kind as keyof typeof KIND_TITLES] ?? visible(kind);
            return (
              <tr key={id}>
                <td>
                  <PageLink to={{ view: "task", id }}>{title}</PageLink>
                </td>
                <td>
                  {task === undefined ? state : <StateChip task={task} />}
                  {reason !== null && <p class="field-error">{visible(reason)}</p>}
                </td>
                <td>
                  {task === undefined ? <span class="muted">not known</span> : <Progress task={task} />}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <div class="buttons">
        <StopAll running={running} text={enough ? "End it now: enough samples" : "End it now"} />
        <NoticeChoice />
      </div>
    </section>
  );
}

/** Tasks that failed, or that were not started, with the reason. */
export function FailedParts({ checkup }: { checkup: Checkup }) {
  const failed = checkup.tasks.filter(({ reason, state }) => reason !== null || state === "failed");
  if (failed.length === 0) return null;
  return (
    <ul class="field-error" data-failed-parts>
      {failed.map(({ id, kind, reason, state }) => (
        <li key={id}>
          <b>{KIND_TITLES[kind as keyof typeof KIND_TITLES] ?? visible(kind)}:</b>{" "}
          {reason === null ? state : visible(reason)}
        </li>
      ))}
    </ul>
  );
}
