// A check-up: its progress while it runs, and then its diagnosis.

import { useEffect, useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import type { Checkup, Diagnosis } from "../api/types";
import type { Subject } from "../lib/checkup_paths";
import type { Flame } from "../lib/diagnosis";
import { clock, moment, visible } from "../lib/format";
import { type Answer, type Failure, failureOf, useAnswer } from "../state/answer";
import { runAgain, sampledTask, waitsTask } from "../state/checkups";
import { edited } from "../state/edited";
import { tasks } from "../state/live";
import { useRefetched } from "../state/refetch";
import { openView, patchRoute, route } from "../state/route";
import { shownCheckup } from "../state/title";
import { Changing } from "./changing";
import { CheckupProgress, FailedParts } from "./checkup_progress";
import { Report } from "./diagnosis_report";
import { PageLink } from "./page_link";
import { ErrorBox, Loading } from "./states";
import { namedCheckup } from "./tasks";

/** Time between two diagnoses of a check-up that runs: making one costs the agent CPU, which is measured as well. */
const LIVE_MS = 5_000;

export function CheckupMark({ checkup }: { checkup: Checkup }) {
  return (
    <span class={`state-chip state-${checkup.state}`}>
      <span class="state-mark" aria-hidden="true" />
      {checkup.state}
    </span>
  );
}

/** What was refused, and the way to another target. */
export function Refused({ failure }: { failure: Failure }) {
  return (
    <p class="field-error" role="alert">
      {visible(failure.detail)}
      {failure.hint !== undefined && <span class="muted"> {visible(failure.hint)}</span>}{" "}
      <Changing>
        <button type="button" class="link" onClick={() => patchRoute({ create: true, checkup: true })}>
          Check-up of another target
        </button>
      </Changing>
    </p>
  );
}

function Verify({
  checkup,
  refused,
  text,
}: {
  checkup: Checkup;
  refused: (failure: Failure | null) => void;
  text: string;
}) {
  const [sending, setSending] = useState(false);
  const again = async (): Promise<void> => {
    setSending(true);
    refused(null);
    try {
      await runAgain(checkup);
    } catch (error) {
      refused(failureOf(error));
      setSending(false);
    }
  };
  return (
    <button
      type="button"
      class="primary"
      disabled={sending}
      title="Measures the same target for as long, and shows what has changed"
      onClick={again}
    >
      {sending ? "Starting…" : text}
    </button>
  );
}

/** The form with what was asked for; the task with the samples has the rate. */
function Edit({ checkup }: { checkup: Checkup }) {
  const task = tasks.value?.get(sampledTask(checkup) ?? "");
  if (task === undefined) return null;
  return (
    <button
      type="button"
      onClick={() => {
        edited.value = { ...task, target: checkup.target, duration_s: checkup.duration_s };
        patchRoute({ create: true, checkup: true });
      }}
    >
      Edit and run
    </button>
  );
}

function Remove({ id, refused }: { id: string; refused: (failure: Failure) => void }) {
  const [armed, setArmed] = useState(false);
  const remove = async (): Promise<void> => {
    try {
      await checkups.remove(id);
      openView({ view: "diagnose" });
    } catch (error) {
      refused(failureOf(error));
    }
  };
  return (
    <button
      type="button"
      class={armed ? "bad" : ""}
      onBlur={() => setArmed(false)}
      onClick={() => (armed ? void remove() : setArmed(true))}
    >
      {armed ? "Really delete" : "Delete"}
    </button>
  );
}

function flameOf(checkup: Checkup, { processes, other_processes }: Diagnosis): Flame {
  const [first] = processes;
  return {
    task: sampledTask(checkup),
    waits: waitsTask(checkup),
    // A diagnosis of a part is about one process.
    pid: first !== undefined && other_processes.length > 0 ? first.pid : null,
    from: null,
    to: null,
  };
}

function Result({ checkup, subject, answer }: Shown & { answer: Answer<Diagnosis> }) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const { value } = answer;
  const tools = (
    <Changing>
      <Verify checkup={checkup} refused={setFailure} text="Run again and compare" />
      <Edit checkup={checkup} />
      <Remove id={checkup.id} refused={setFailure} />
    </Changing>
  );
  return (
    <>
      {failure !== null && <Refused failure={failure} />}
      <FailedParts checkup={checkup} />
      {!checkup.observed && (
        <p class="muted" data-not-observed>
          Nothing was read beside the tasks: CPU by the kernel's accounting and requests are not known.
        </p>
      )}
      {value !== null ? (
        <Report
          diagnosis={value}
          flame={flameOf(checkup, value)}
          subject={subject}
          verify={
            <Changing>
              <p class="verify">
                <Verify checkup={checkup} refused={setFailure} text="I applied it: verify" />
              </p>
            </Changing>
          }
        >
          {tools}
        </Report>
      ) : answer.failure !== null ? (
        <>
          <div class="diagnosis-tools">{tools}</div>
          <ErrorBox title="No diagnosis" detail={answer.failure.detail} hint={answer.failure.hint} />
        </>
      ) : (
        <Loading what="the diagnosis" />
      )}
    </>
  );
}

/** Names the target in the title of the tab. */
export function useCheckupTitle(name: string): void {
  useEffect(() => {
    shownCheckup.value = name;
    return () => {
      shownCheckup.value = null;
    };
  }, [name]);
}

function Known({ checkup }: { checkup: Checkup }) {
  useCheckupTitle(namedCheckup(checkup));
  const { pid, scope } = route.value;
  const subject = { of: "checkups", id: checkup.id, pid, scope } as const;
  const running = checkup.state === "running";
  return (
    <section class="node-page">
      <div class="group-title">
        <h1>Check-up</h1>
        <span class="name">{namedCheckup(checkup)}</span>
        <CheckupMark checkup={checkup} />
        <span class="muted">
          {moment(checkup.created_ns)} for {clock(checkup.duration_s)}
        </span>
        <PageLink to={{ view: "group", id: checkup.id }}>its tasks</PageLink>
        <span class="muted">{checkup.id}</span>
      </div>
      {running ? (
        <Running checkup={checkup} subject={subject} />
      ) : (
        <Ended checkup={checkup} subject={subject} />
      )}
    </section>
  );
}

interface Shown {
  readonly checkup: Checkup;
  readonly subject: Subject;
}

/** What is known already, while it grows. */
function Running({ checkup, subject }: Shown) {
  const diagnosis = useRefetched<Diagnosis | null>(
    null,
    (signal) => checkups.diagnosis(subject, signal),
    true,
    LIVE_MS,
    [subject.id, subject.pid, subject.scope],
  );
  return (
    <>
      <CheckupProgress checkup={checkup} diagnosis={diagnosis} />
      {diagnosis !== null && diagnosis.coverage.samples > 0 && (
        <div data-live>
          <Report diagnosis={diagnosis} flame={flameOf(checkup, diagnosis)} subject={subject}>
            <span class="muted">from the results so far</span>
          </Report>
        </div>
      )}
    </>
  );
}

function Ended({ checkup, subject }: Shown) {
  const answer = useAnswer(
    (signal) => checkups.diagnosis(subject, signal),
    () => false,
    [subject.id, subject.pid, subject.scope],
  );
  return <Result checkup={checkup} subject={subject} answer={answer} />;
}

export function CheckupPage({ id }: { id: string }) {
  const { value, failure } = useAnswer(
    (signal) => checkups.one(id, signal),
    ({ state }) => state === "running",
    [id],
  );
  if (value !== null) return <Known checkup={value} />;
  if (failure === null) return <Loading what={`the check-up ${id}`} />;
  return (
    <ErrorBox
      title="This check-up cannot be shown"
      detail={failure.detail}
      hint={failure.hint ?? "It may have been deleted, or removed by the retention."}
    />
  );
}
