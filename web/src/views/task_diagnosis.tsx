// The diagnosis of a single result: what its samples tell, and what only a check-up could add.

import { checkups } from "../api/checkups";
import { useAnswer } from "../state/answer";
import { tasks } from "../state/live";
import { patchRoute, route } from "../state/route";
import { Report } from "./diagnosis_report";
import { PageLink } from "./page_link";
import { ErrorBox, Loading } from "./states";
import { namedTarget } from "./tasks";

export function TaskDiagnosisPage({ id }: { id: string }) {
  const { pid, from, to } = route.value;
  const subject = { of: "tasks", id, pid, from, to } as const;
  const { value, failure } = useAnswer(
    (signal) => checkups.diagnosis(subject, signal),
    () => false,
    [id, pid, from, to],
  );
  const task = tasks.value?.get(id);
  const target = task === undefined ? null : namedTarget(task);
  if (value === null)
    return failure === null ? (
      <Loading what={`the diagnosis of task ${id}`} />
    ) : (
      <ErrorBox title={`No diagnosis of task ${id}`} detail={failure.detail} hint={failure.hint} />
    );
  return (
    <section class="node-page">
      <div class="group-title">
        <h1>Diagnosis of one result</h1>
        {target !== null && <span class="name">{target}</span>}
        <PageLink to={{ view: "task", id, from, to, pid }}>task {id}</PageLink>
        {(from !== null || to !== null) && (
          <span class="muted">
            a part of its time{" "}
            <button type="button" class="link" onClick={() => patchRoute({ from: null, to: null })}>
              all of it
            </button>
          </span>
        )}
      </div>
      <Report diagnosis={value} flame={{ task: id, pid, from, to }} subject={subject} />
    </section>
  );
}
