// All check-ups, and the single results that can be diagnosed as well.

import { useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import type { Checkup, Task } from "../api/types";
import { clock, count, moment, visible } from "../lib/format";
import { KIND_TITLES } from "../lib/kind_probes";
import { isFinal } from "../lib/task_list";
import { useAnswer } from "../state/answer";
import { tasks } from "../state/live";
import { openView, patchRoute } from "../state/route";
import { Changing } from "./changing";
import { CheckupMark } from "./checkup";
import { PageLink } from "./page_link";
import { Loading } from "./states";
import { namedCheckup, namedTarget } from "./tasks";

/** Single results that are offered. */
const MOST_RESULTS = 12;

function startCheckup(): void {
  patchRoute({ create: true, checkup: true, pids: [], container: "", pod: "" });
}

/** The older one first: what came later is compared with it. */
function compare(picked: readonly Checkup[]): void {
  const [a, b] = picked.toSorted((one, other) => one.created_ns - other.created_ns);
  if (a !== undefined && b !== undefined) openView({ view: "compare-checkups", a: a.id, b: b.id });
}

function CheckupRows({ list }: { list: readonly Checkup[] }) {
  const [ids, setIds] = useState<readonly string[]>([]);
  const picked = list.filter(({ id }) => ids.includes(id));
  const toggle = (id: string): void =>
    setIds(ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Check-ups">
        <table class="plain checkup-table" data-checkups>
          <thead>
            <tr>
              <th scope="col">Compare</th>
              <th scope="col">Target</th>
              <th scope="col">State</th>
              <th scope="col">Started</th>
              <th scope="col" class="numeric">
                Length
              </th>
              <th scope="col">Name</th>
            </tr>
          </thead>
          <tbody>
            {list.map((checkup) => (
              <tr key={checkup.id} data-row>
                <td>
                  <input
                    type="checkbox"
                    checked={ids.includes(checkup.id)}
                    disabled={
                      checkup.state === "running" || (picked.length === 2 && !ids.includes(checkup.id))
                    }
                    aria-label={`Compare ${checkup.id}`}
                    onChange={() => toggle(checkup.id)}
                  />
                </td>
                <td>
                  <PageLink class="name" to={{ view: "checkup", id: checkup.id }}>
                    {namedCheckup(checkup)}
                  </PageLink>
                </td>
                <td>
                  <CheckupMark checkup={checkup} />
                </td>
                <td>{moment(checkup.created_ns)}</td>
                <td class="numeric">{clock(checkup.duration_s)}</td>
                <td class="muted">{checkup.id}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <button type="button" disabled={picked.length !== 2} onClick={() => compare(picked)}>
          Compare two
        </button>
        <span class="muted">
          {picked.length === 2 ? "the later one against the earlier one" : "pick two check-ups of one target"}
        </span>
      </div>
    </>
  );
}

function Results({ list, hasCheckups }: { list: readonly Task[]; hasCheckups: boolean }) {
  return (
    <section class="card wide" aria-labelledby="results-title">
      <h2 id="results-title">Single results</h2>
      <p class="muted small">
        Samples alone tell who costs what. CPU of one request, waits and connections need a check-up. The
        newest are here; every result with samples on the CPU has a link on its page.
      </p>
      {list.length === 0 ? (
        <p>
          None yet.
          {hasCheckups && " The samples of check-ups are diagnosed on their own pages, listed above."}
        </p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <div class="plain-table-box" tabIndex={0} role="region" aria-label="Single results">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Task</th>
                <th scope="col">Kind</th>
                <th scope="col" class="numeric">
                  Samples
                </th>
                <th scope="col">Started</th>
              </tr>
            </thead>
            <tbody>
              {list.map((task) => (
                <tr key={task.id} data-row>
                  <td>
                    <PageLink class="name" to={{ view: "diagnosis", id: task.id }} title="Diagnose it">
                      {task.id} {namedTarget(task)}
                    </PageLink>
                  </td>
                  <td>{KIND_TITLES[task.kind as keyof typeof KIND_TITLES] ?? visible(task.kind)}</td>
                  <td class="numeric">{count(task.samples)}</td>
                  <td>{moment(task.started_at_ns ?? task.created_at_ns)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

export function DiagnosePage() {
  const { value, failure } = useAnswer(
    checkups.list,
    (list) => list.some(({ state }) => state === "running"),
    [],
  );
  const all = tasks.value;
  const single = [...(all?.values() ?? [])]
    .filter(
      (task) =>
        ["on_cpu", "wall", "imported"].includes(task.kind) &&
        isFinal(task) &&
        task.samples > 0 &&
        !(task.group ?? "").startsWith("checkup-"),
    )
    .sort((a, b) => Number(b.id) - Number(a.id))
    .slice(0, MOST_RESULTS);
  return (
    <section class="node-page">
      <div class="group-title">
        <h1>Diagnose</h1>
        <span class="muted">which part of a sidecar costs what, and the setting that changes it</span>
        <span class="push" />
        <Changing>
          <button type="button" class="primary" onClick={startCheckup}>
            New check-up
          </button>
        </Changing>
      </div>
      <div class="cards">
        <section class="card wide" aria-labelledby="checkups-title">
          <h2 id="checkups-title">Check-ups</h2>
          {failure !== null && (
            <p class="field-error" role="alert">
              {visible(failure.detail)}
              {failure.hint !== undefined && <span class="muted"> {visible(failure.hint)}</span>}
            </p>
          )}
          {value === null ? (
            failure === null && <Loading what="the check-ups" />
          ) : value.length === 0 ? (
            <p>
              None yet. A check-up measures one target on CPU, off CPU and on the network at once, reads what
              the kernel accounts and what the proxy says of itself, and gives a verdict.
            </p>
          ) : (
            <CheckupRows list={value.toSorted((a, b) => b.created_ns - a.created_ns)} />
          )}
        </section>
        {all === null ? (
          <Loading what="the tasks" />
        ) : (
          <Results list={single} hasCheckups={(value ?? []).length > 0} />
        )}
      </div>
    </section>
  );
}
