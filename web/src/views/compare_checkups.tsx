// Two check-ups of one target: what a change has saved, and whether chance could have done it.

import { useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import type {
  Checkup,
  CheckupComparison,
  ComparedFinding,
  ComparedLatency,
  ComparedRow,
  ComparedTotal,
} from "../api/types";
import { drawCard } from "../canvas/compare_card";
import {
  changeBar,
  changeScale,
  DIRECTIONS,
  directionOf,
  isEmpty,
  microsChange,
  perRequest,
  points,
  pointsInterval,
  sortedRows,
  totalText,
} from "../lib/checkup_compare";
import { cardLines } from "../lib/compare_card";
import { micros, share } from "../lib/diagnosis";
import { pText } from "../lib/diff_text";
import { clock, duration, moment, visible } from "../lib/format";
import { save } from "../lib/save";
import { useAnswer } from "../state/answer";
import { sampledTask } from "../state/checkups";
import { copyAnswer } from "../state/clipboard";
import { openView, patchRoute, route } from "../state/route";
import { CheckupMark, useCheckupTitle } from "./checkup";
import { CheckupProgress } from "./checkup_progress";
import { Choice } from "./choice";
import { PageLink } from "./page_link";
import { ErrorBox, Loading } from "./states";
import { namedCheckup } from "./tasks";
import { Unknown } from "./unknown";

function Side({ title, checkup }: { title: string; checkup: Checkup }) {
  return (
    <div class="compared-side">
      <span class="muted">{title}</span>{" "}
      <PageLink class="name" to={{ view: "checkup", id: checkup.id }}>
        {namedCheckup(checkup)}
      </PageLink>{" "}
      <CheckupMark checkup={checkup} />{" "}
      <span class="muted">
        {moment(checkup.created_ns)} for {clock(checkup.duration_s)}, {checkup.id}
      </span>
    </div>
  );
}

function Total({
  title,
  total,
  text,
}: {
  title: string;
  total: ComparedTotal | null;
  text: (value: number) => string;
}) {
  const direction = total === null ? "same" : directionOf(total, total.change_percent);
  return (
    <div class="fact">
      <dt>{title}</dt>
      <dd>
        {total === null ? (
          <Unknown why="It is not known of both check-ups; each says why." />
        ) : (
          <>
            {text(total.a)} → {text(total.b)}{" "}
            <span class={`change-${direction}`}>
              <span aria-hidden="true">{DIRECTIONS[direction].mark} </span>
              {totalText(total)}
            </span>
          </>
        )}
      </dd>
    </div>
  );
}

/** Before and after; how much of a difference is chance nothing tells. */
function Latency({ latency: { process, a, b } }: { latency: ComparedLatency }) {
  return (
    <div class="fact" title="How much of the difference is chance is not known">
      <dt>Requests to {visible(process)}</dt>
      <dd>
        {duration(a.mean_ns)} → {duration(b.mean_ns)}{" "}
        <span class="muted">
          mean; p95 {duration(a.p95_ns)} → {duration(b.p95_ns)}
        </span>
      </dd>
    </div>
  );
}

function Row({ row, end, requests }: { row: ComparedRow; end: number; requests: boolean }) {
  const direction = directionOf(row, row.change);
  // A share that grows because another went is not a cause for alarm: the colour is for where nothing else is known.
  const colour = requests ? "" : `change-${direction}`;
  const { at, from, to } = changeBar(row, end);
  const saved = perRequest(row);
  return (
    <tr>
      <th scope="row">{visible(row.title)}</th>
      {requests && (
        <>
          <td class="numeric">{row.a_us === null ? <NoRequests /> : micros(row.a_us)}</td>
          <td class="numeric">{row.b_us === null ? <NoRequests /> : micros(row.b_us)}</td>
          <td class="numeric">
            {saved === null ? (
              <NoRequests />
            ) : (
              <b class={row.significant ? "" : "muted"}>{microsChange(saved)}</b>
            )}
          </td>
        </>
      )}
      <td class="numeric">{share(row.a_percent)}</td>
      <td class="numeric">{share(row.b_percent)}</td>
      <td class="numeric" title={`95 % interval: ${pointsInterval(row)} points`}>
        <span class={colour}>{points(row.change)}</span>
      </td>
      <td>
        <span class="change-bar" aria-hidden="true">
          <span class="change-zero" />
          <span class="interval-range" style={{ left: `${from}%`, width: `${Math.max(0.5, to - from)}%` }} />
          <span class={`change-dot ${colour}`} style={{ left: `${at}%` }} />
        </span>
      </td>
      <td class={colour}>
        <span aria-hidden="true">{DIRECTIONS[direction].mark} </span>
        {DIRECTIONS[direction].word}
        <span class="muted"> {row.p === null ? "" : pText(row.p)}</span>
      </td>
    </tr>
  );
}

function NoRequests() {
  return <Unknown why="The requests of this check-up are not known." />;
}

function Rows({ rows }: { rows: readonly ComparedRow[] }) {
  const end = changeScale(rows);
  const requests = rows.some(({ a_us, b_us }) => a_us !== null || b_us !== null);
  const numeric = (titles: readonly string[]) =>
    titles.map((title) => (
      <th key={title} scope="col" class="numeric">
        {title}
      </th>
    ));
  return (
    <section class="card wide" aria-labelledby="rows-title">
      <h2 id="rows-title">By feature</h2>
      <p class="muted small">
        Shares add to 100 % in each check-up: when one feature costs less, the shares of all others grow.
        {requests
          ? " The CPU of one request does not do that; whether a change is significant is told of the share."
          : " Requests are not known, so that only shares can be compared."}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Changes by feature">
        <table class="plain compared" data-compared>
          <thead>
            <tr class="compared-over">
              <td />
              {requests && (
                <th scope="colgroup" colSpan={3}>
                  CPU of one request
                </th>
              )}
              <th scope="colgroup" colSpan={5}>
                Share of the CPU
              </th>
            </tr>
            <tr>
              <th scope="col">Feature</th>
              {requests && numeric(["Before", "After", "Change"])}
              {numeric(["Before", "After", "Points"])}
              <th scope="col">95 % interval</th>
              <th scope="col">Significance</th>
            </tr>
          </thead>
          <tbody>
            {sortedRows(rows).map((row) => (
              <Row key={row.feature} row={row} end={end} requests={requests} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const GROUPS = [
  ["gone", "✓", "Gone"],
  ["new", "▲", "New"],
  ["still", "○", "Still there"],
] as const;

function FindingGroups({ findings }: Pick<CheckupComparison, "findings">) {
  return (
    <section class="card wide" aria-labelledby="groups-title">
      <h2 id="groups-title">Findings</h2>
      <div class="finding-groups" data-finding-groups>
        {GROUPS.map(([key, mark, title]) => (
          <div key={key} class={`group-${key}`}>
            <h3>
              <span aria-hidden="true">{mark} </span>
              {title}
            </h3>
            <ul>
              {findings[key].length === 0 && <li class="muted">none</li>}
              {findings[key].map((finding: ComparedFinding) => (
                <li key={finding.id}>{visible(finding.title)}</li>
              ))}
            </ul>
          </div>
        ))}
      </div>
    </section>
  );
}

/** What has changed, to be shown to others. */
function Share({
  comparison,
  before,
  after,
}: {
  comparison: CheckupComparison;
  before: Checkup;
  after: Checkup;
}) {
  const [failed, setFailed] = useState("");
  const tasks = [sampledTask(before), sampledTask(after)] as const;
  const picture = async (): Promise<void> => {
    const moments = [moment(before.created_ns), moment(after.created_ns)] as const;
    try {
      const card = await drawCard(cardLines(comparison, namedCheckup(after), moments));
      save(card, `${after.id}.png`);
      setFailed("");
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="buttons" data-share>
      <button
        type="button"
        onClick={() =>
          void copyAnswer(checkups.compareReport(before.id, after.id, route.value.scope), "Comparison")
        }
      >
        Copy as Markdown
      </button>
      <button type="button" onClick={() => void picture()}>
        Save as picture
      </button>
      {tasks[0] !== null && tasks[1] !== null && (
        <PageLink class="button-link" to={{ view: "task", id: tasks[1], base: tasks[0] }}>
          Differential flame graph
        </PageLink>
      )}
      {failed !== "" && (
        <span class="field-error" role="alert">
          {failed}
        </span>
      )}
    </div>
  );
}

function Compared({ before, after }: { before: Checkup; after: Checkup }) {
  const [a, b] = [before.id, after.id];
  const { scope } = route.value;
  const { value, failure } = useAnswer(
    (signal) => checkups.compare(a, b, scope, signal),
    () => false,
    [a, b, scope],
  );
  if (value === null)
    return failure === null ? (
      <Loading what="the comparison" />
    ) : (
      <ErrorBox title="Not compared" detail={failure.detail} hint={failure.hint} />
    );
  const { programs, other_programs } = value;
  return (
    <>
      {(other_programs.length > 0 || scope === "all") && (
        <Choice
          label="CPU of"
          value={scope}
          choices={[
            ["sidecar", scope === "all" ? "the sidecar" : visible(programs.join(", "))],
            ["all", "all processes"],
          ]}
          set={(next) => patchRoute({ scope: next })}
        />
      )}
      <p class="verdict" data-verdict>
        {visible(value.verdict)}
      </p>
      <dl class="facts diagnosis-totals">
        {value.latency !== null && <Latency latency={value.latency} />}
        <Total title="CPU of one request" total={value.totals.cpu_us_per_request} text={micros} />
        <Total title="CPU" total={value.totals.cpu_cores} text={(cores) => `${cores.toFixed(2)} cores`} />
      </dl>
      <Share comparison={value} before={before} after={after} />
      {value.not_compared !== null ? (
        <p data-not-compared>
          Features and findings are not compared: {visible(value.not_compared)}. Check up for longer, at a
          higher frequency or under more load.
        </p>
      ) : isEmpty(value) ? (
        <p>Nothing was measured that could be compared.</p>
      ) : (
        <div class="cards">
          <FindingGroups findings={value.findings} />
          <Rows rows={value.rows} />
        </div>
      )}
    </>
  );
}

export function CompareCheckupsPage({ a, b }: { a: string; b: string }) {
  const both = useAnswer(
    (signal) => Promise.all([checkups.one(a, signal), checkups.one(b, signal)]),
    (pair) => pair.some(({ state }) => state === "running"),
    [a, b],
  );
  if (both.value === null)
    return both.failure === null ? (
      <Loading what="the check-ups" />
    ) : (
      <ErrorBox title="No comparison" detail={both.failure.detail} hint={both.failure.hint} />
    );
  return <Pair before={both.value[0]} after={both.value[1]} />;
}

function Pair({ before, after }: { before: Checkup; after: Checkup }) {
  useCheckupTitle(namedCheckup(after));
  const running = [before, after].filter(({ state }) => state === "running");
  return (
    <section class="node-page">
      <div class="group-title">
        <h1>What has changed in {namedCheckup(after)}</h1>
        <span class="push" />
        <button
          type="button"
          onClick={() => openView({ view: "compare-checkups", a: after.id, b: before.id })}
        >
          Swap
        </button>
      </div>
      <div class="compared-sides">
        <Side title="Before" checkup={before} />
        <Side title="After" checkup={after} />
      </div>
      {running.length > 0 ? (
        running.map((checkup) => <CheckupProgress key={checkup.id} checkup={checkup} />)
      ) : (
        <Compared before={before} after={after} />
      )}
    </section>
  );
}
