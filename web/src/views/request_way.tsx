// One request on its way: its legs on one time axis, what lies between them, and the code of their threads.

import { useMemo, useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import { ProblemError } from "../api/client";
import type { RequestSample, Task, TaskRequests } from "../api/types";
import { duration, visible } from "../lib/format";
import {
  aloneBecause,
  type Between,
  hasAll,
  isLeg,
  type Leg,
  legIndex,
  type Waterfall,
  waterfallOf,
} from "../lib/request_legs";
import { type CodeOf, codeOf, codeTitle, profilesOf } from "../lib/request_profile";
import { edgeName, type SampleRow, timingParts, timingText } from "../lib/requests";
import { edited } from "../state/edited";
import { tasks } from "../state/live";
import { openView, patchRoute } from "../state/route";
import { Changing } from "./changing";
import { PageLink } from "./page_link";

const TIED = {
  request_id: "same request id",
  trace_id: "same trace",
  fingerprint: "alike, nothing else fits",
  access_log: "same entry of the access log",
};
/** Of a check-up, where the task itself had no end. */
const CHECKUP_S = 60;

const percent = (part: number, whole: number): string => `${(part / whole) * 100}%`;

function Track({ leg, whole_ns }: { leg: Leg; whole_ns: number }) {
  const parts = timingParts(leg.row.sample);
  const text = `After ${duration(leg.from_ns)}: ${timingText(parts)}`;
  return (
    <div class="timing-bar" role="img" aria-label={text} title={text}>
      {parts.map(({ kind, from_ns, to_ns }) => (
        <span
          key={from_ns}
          class={`timing-${kind}`}
          style={{
            left: percent(leg.from_ns + from_ns, whole_ns),
            width: percent(to_ns - from_ns, whole_ns),
          }}
        />
      ))}
    </div>
  );
}

function seenText({ source, seen_by }: RequestSample): string {
  return source === "access_log" ? "from the access log" : `seen by the ${seen_by}`;
}

function LegRow({ leg, whole_ns, own, task }: { leg: Leg; whole_ns: number; own: boolean; task: string }) {
  const { row, depth, tied } = leg;
  const name = visible(edgeName(row.sample.edge));
  const evidence = tied === null ? "" : `, ${TIED[tied]}`;
  return (
    <li class="way-row" aria-current={own ? "true" : undefined}>
      <span class="way-name" style={{ paddingInlineStart: `${depth * 12}px` }}>
        {own ? (
          <b title={name}>{name}</b>
        ) : (
          <PageLink to={{ view: "task", id: task, requests: "samples", sample: row.key }} title={name}>
            {name}
          </PageLink>
        )}
        <span class="muted small">{` ${seenText(row.sample)}${evidence}`}</span>
      </span>
      <Track leg={leg} whole_ns={whole_ns} />
      <span class="numeric">{duration(row.sample.duration_ns)}</span>
    </li>
  );
}

function BetweenRow({ between, whole_ns }: { between: Between; whole_ns: number }) {
  const { title, from_ns, to_ns, depth } = between;
  return (
    <li class="way-row way-between small">
      <span class="way-name" style={{ paddingInlineStart: `${depth * 12}px` }} title={visible(title)}>
        {visible(title)}
      </span>
      <div class="timing-bar" aria-hidden="true">
        <span
          class="way-gap"
          style={{ left: percent(from_ns, whole_ns), width: percent(to_ns - from_ns, whole_ns) }}
        />
      </div>
      <span class="numeric">{duration(to_ns - from_ns)}</span>
    </li>
  );
}

/** Why there is one leg only, and what to do. */
function Alone({ sample, answer, task }: { sample: RequestSample; answer: TaskRequests; task: Task }) {
  const { reasons, keepAll } = aloneBecause(sample, answer, task);
  const { requests } = task;
  return (
    <div class="way-alone" data-alone>
      <p class="small">No other leg of this request is known.</p>
      <ul class="muted small">
        {reasons.map((reason) => (
          <li key={reason}>{visible(reason)}</li>
        ))}
      </ul>
      {keepAll && requests !== null && (
        <Changing>
          <button
            type="button"
            onClick={() => {
              edited.value = { ...task, requests: { ...requests, samples: "all" } };
              patchRoute({ create: true });
            }}
          >
            Keep all samples and run again
          </button>
        </Changing>
      )}
    </div>
  );
}

/** Records what was not recorded: requests and profiles of the same target at once. */
function StartCheckup({ task, pid }: { task: Task; pid: number }) {
  const [failure, setFailure] = useState("");
  const [sending, setSending] = useState(false);
  const { target, duration_s } = task;
  const start = async (): Promise<void> => {
    setSending(true);
    try {
      const spec = {
        target: "network_namespace" in target ? { pids: [pid] } : target,
        duration_s: duration_s ?? CHECKUP_S,
      };
      const { id } = await checkups.create(spec);
      openView({ view: "checkup", id });
    } catch (error) {
      setFailure(error instanceof ProblemError ? error.message : "the agent does not answer");
      setSending(false);
    }
  };
  return (
    <Changing>
      <button type="button" disabled={sending} onClick={() => void start()}>
        Start a check-up of the same target
      </button>
      {failure !== "" && (
        <p class="bad small" role="alert">
          {visible(failure)}
        </p>
      )}
    </Changing>
  );
}

function CodeRow({ code, task, answer }: { code: CodeOf; task: Task; answer: TaskRequests }) {
  const links = profilesOf(code, task, tasks.value?.values() ?? [], answer.containers);
  return (
    <li>
      <span>{visible(codeTitle(code))}</span>
      {links.length === 0 ? (
        <span class="muted">no profile of it was recorded at that time</span>
      ) : (
        links.map(({ task: { id }, title, to, help }) => (
          <PageLink key={id} class="button-link" to={to} title={help}>
            {title} <span class="muted">task {id}</span>
          </PageLink>
        ))
      )}
    </li>
  );
}

/** Flame graphs of the threads and the time of each leg. */
function Code({ way, task, answer }: { way: Waterfall; task: Task; answer: TaskRequests }) {
  const all = way.legs.flatMap((leg, i) =>
    codeOf(leg.row.sample, (way.legs[i + 1]?.depth ?? 0) <= leg.depth).map((code) => ({ code, leg })),
  );
  const recorded = all.some(
    ({ code }) => profilesOf(code, task, tasks.value?.values() ?? [], answer.containers).length > 0,
  );
  const [first] = all;
  return (
    <>
      <h3>Flame graphs of its threads and time</h3>
      {recorded && (
        <p class="muted small">
          Times are rounded to 20 ms, so requests beside it may be in them. The threads are those that moved
          the first byte of a leg: others may have worked on it.
        </p>
      )}
      {first === undefined ? (
        <p class="muted small">The processes are not known.</p>
      ) : recorded ? (
        <ul class="way-code small">
          {all.map(({ code, leg }) => (
            <CodeRow key={`${leg.row.key} ${code.pid} ${code.tid}`} code={code} task={task} answer={answer} />
          ))}
        </ul>
      ) : (
        <>
          <p class="muted small">
            No profile of these processes was recorded at that time. A check-up records requests and profiles
            at once.
          </p>
          <StartCheckup task={task} pid={first.code.pid} />
        </>
      )}
    </>
  );
}

export function RequestWay({
  row,
  rows,
  answer,
  task,
}: {
  row: SampleRow;
  /** All samples of the answer. */
  rows: readonly SampleRow[];
  answer: TaskRequests;
  task: Task;
}) {
  const index = useMemo(
    () => legIndex(rows, answer.sidecars, hasAll(answer, task.requests?.samples)),
    [rows, answer, task.requests?.samples],
  );
  const way = useMemo(() => waterfallOf(index, row), [index, row]);
  const { legs, whole_ns } = way;
  return (
    <section class="row-card request-way" aria-label="Its way">
      <h3>
        {legs.length === 1 ? "Its way" : `Its way in ${legs.length} legs`}: {duration(whole_ns)}
      </h3>
      <ol class="way">
        {way.rows.map((each, i) =>
          isLeg(each) ? (
            <LegRow
              key={each.row.key}
              leg={each}
              whole_ns={whole_ns}
              own={each.row.key === row.key}
              task={task.id}
            />
          ) : (
            <BetweenRow key={`between ${i}`} between={each} whole_ns={whole_ns} />
          ),
        )}
      </ol>
      <ul class="timing-key small" aria-hidden="true">
        {(["sending", "waiting", "answer", "unknown"] as const).map((kind) => (
          <li key={kind}>
            <span class={`timing-mark timing-${kind}`} />
            {kind === "sending" ? "sent" : kind === "unknown" ? "not seen in parts" : kind}
          </li>
        ))}
        {legs.length > 1 && (
          <li>
            <span class="timing-mark way-gap" />
            between
          </li>
        )}
      </ul>
      {legs.length === 1 && <Alone sample={row.sample} answer={answer} task={task} />}
      <Code way={way} task={task} answer={answer} />
    </section>
  );
}
