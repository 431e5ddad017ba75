// The first page: how the pods of the node do, what needs attention first.

import { useState } from "preact/hooks";
import { checkups } from "../api/checkups";
import { api } from "../api/client";
import type { NodeOverview, OverviewLimit, OverviewRow, RowCheckup, Trouble } from "../api/types";
import { clock, moment, plural, visible } from "../lib/format";
import {
  below,
  between,
  coresOf,
  errorShare,
  overviewParts,
  processesOf,
  rate,
  requestsOf,
  targetOf,
} from "../lib/overview";
import { type Answer, type Failure, failureOf, useAnswer } from "../state/answer";
import { meta } from "../state/live";
import { openView, patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { PageLink } from "./page_link";
import { Sparkline } from "./sparkline";
import { Empty, ErrorBox, Loading } from "./states";

/** Length of a check-up that is started here. */
const CHECKUP_S = 30;
/** Readings of a sparkline: ten minutes. */
const SLOTS = 60;
const COLUMNS = 9;
/** Time between two questions: the agent reads each ten seconds. */
const READ_MS = 5_000;
/** Rows that are drawn before more are asked for. */
const MOST_ROWS = 100;

const LEVEL_TEXT: Readonly<Record<Trouble["level"], string>> = {
  bad: "Bad",
  warning: "Warning",
  elsewhere: "Elsewhere",
};

const unknown = (why: string) => (
  <span class="muted" title={visible(why)}>
    –
  </span>
);

function Trend({ row, value }: { row: OverviewRow; value: "cores" | "requests_per_s" }) {
  const values = row.history.flatMap((point) => point[value] ?? []);
  // The scale begins at zero and ends at the largest.
  return <Sparkline values={values} top={Number.MIN_VALUE} slots={SLOTS} />;
}

function limitText({ cores, used_cores, periods, throttled_periods }: OverviewLimit): string {
  const used = `${used_cores.toFixed(2)} of a CPU limit of ${cores.toFixed(2)} cores are used`;
  if (periods === null || throttled_periods === null) return used;
  return `${used}; it was used up in ${throttled_periods} of ${periods} periods`;
}

function Requests({ row }: { row: OverviewRow }) {
  const { requests, areSent } = requestsOf(row);
  if (requests === null) return unknown(row.requests_unknown ?? "Known after the second reading");
  return (
    <span class="trend" title={row.requests_unknown === null ? undefined : visible(row.requests_unknown)}>
      <Trend row={row} value="requests_per_s" />
      <span>
        {areSent && (
          <span class="muted" title="Requests that it sends: it serves none that Envoy counts">
            out{" "}
          </span>
        )}
        {row.requests_unknown !== null && <span class="warn">▲ </span>}
        {rate(requests.per_s)}
      </span>
    </span>
  );
}

function Errors({ row }: { row: OverviewRow }) {
  const { requests } = requestsOf(row);
  const share = requests === null ? null : errorShare(requests);
  if (requests === null || share === null) return unknown("No requests that are counted");
  return (
    <span
      class={share === 0 ? "muted" : ""}
      title={`${requests.errors} of ${requests.count} responses have status 5xx`}
    >
      {share === 0 ? "0" : share.toFixed(share < 10 ? 1 : 0)} %
    </span>
  );
}

function Slowest({ row }: { row: OverviewRow }) {
  const { requests } = requestsOf(row);
  const p95 = requests?.p95 ?? null;
  if (p95 === null) return unknown("No times that are counted");
  const median = requests?.p50 ?? null;
  const title = [between("p95", p95), ...(median === null ? [] : [between("p50", median)])].join("\n");
  return <span title={title}>{below(p95)}</span>;
}

function Cpu({ row }: { row: OverviewRow }) {
  const { cores, limit } = row.cpu;
  if (cores === null) return unknown("Known after the second reading");
  return (
    <span class="trend">
      <Trend row={row} value="cores" />
      <span>
        {cores.toFixed(2)}
        {limit !== null && (
          <span class="muted" title={limitText(limit)}>
            {" "}
            · {limit.used_cores.toFixed(2)}/{limit.cores.toFixed(2)}
          </span>
        )}
      </span>
    </span>
  );
}

function Waiting({ row }: { row: OverviewRow }) {
  const { waiting } = row.cpu;
  if (waiting === null) return unknown("The kernel does not account it, or there is one reading so far");
  return <span class={waiting < 0.1 ? "muted" : ""}>{waiting.toFixed(2)}</span>;
}

function Retransmits({ row }: { row: OverviewRow }) {
  const { segments } = row;
  if (segments === null)
    return unknown(row.kind === "pod" ? "Known after the second reading" : "Counted for the whole node only");
  const { sent, retransmitted, retransmitted_per_s: perS } = segments;
  return (
    <span
      class={retransmitted === 0 ? "muted" : ""}
      title={`${retransmitted} of ${sent + retransmitted} segments were retransmitted`}
    >
      {rate(perS)}
    </span>
  );
}

function LastCheckup({ found }: { found: RowCheckup | undefined }) {
  if (found === undefined) return <span class="muted">none</span>;
  const text = found.state === "running" ? "running…" : (found.verdict ?? found.state);
  return (
    <PageLink class="last-verdict" to={{ view: "checkup", id: found.id }} title={visible(text)}>
      <span class="verdict-text">{visible(text)}</span>
      <span class="muted"> {moment(found.created_ns)}</span>
    </PageLink>
  );
}

function Troubles({ row: { troubles } }: { row: OverviewRow }) {
  return (
    <tr class={`trouble-row worst-${troubles[0]?.level}`}>
      <td colSpan={COLUMNS}>
        <ul class="troubles">
          {troubles.map(({ level, text }) => (
            <li key={text} class={`trouble-${level}`}>
              <span class="trouble-level">{LEVEL_TEXT[level]}</span> {visible(text)}
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}

function CheckUp({ row, failed }: { row: OverviewRow; failed: (failure: Failure | null) => void }) {
  const [starting, setStarting] = useState(false);
  const target = targetOf(row);
  if (target === null) return null;
  const start = async (): Promise<void> => {
    setStarting(true);
    failed(null);
    try {
      const { id } = await checkups.create({ target, duration_s: CHECKUP_S });
      openView({ view: "checkup", id });
    } catch (error) {
      failed(failureOf(error));
      setStarting(false);
    }
  };
  return (
    <Changing>
      <button
        type="button"
        disabled={starting || meta.value?.demo_data === true}
        title={`Measures it for ${CHECKUP_S} s: requests, on-CPU, off-CPU, connections`}
        aria-label={`Check up ${visible(row.title)}`}
        onClick={() => void start()}
      >
        Check up
      </button>
    </Changing>
  );
}

function Row({
  row,
  found,
  failed,
}: {
  row: OverviewRow;
  found: RowCheckup | undefined;
  failed: (failure: Failure | null) => void;
}) {
  const worst = row.troubles[0]?.level;
  return (
    <>
      <tr data-row={row.id} class={worst === undefined ? "" : `has-trouble worst-${worst}`}>
        <th scope="row">
          <PageLink class="name" to={processesOf(row)} title={`${visible(row.title)}: its processes`}>
            {visible(row.title)}
          </PageLink>{" "}
          <span class="muted">
            {row.workload === null ? "" : `${visible(row.workload)} · `}
            {row.kind !== "pod"
              ? `${row.kind} · `
              : row.pod === null
                ? `net ${row.network_namespace ?? "?"} · `
                : ""}
            {plural(row.processes, "process", "processes")}
          </span>
        </th>
        <td class="numeric" data-title="Requests/s">
          <Requests row={row} />
        </td>
        <td class="numeric" data-title="Errors">
          <Errors row={row} />
        </td>
        <td class="numeric" data-title="p95">
          <Slowest row={row} />
        </td>
        <td class="numeric" data-title="CPU, cores">
          <Cpu row={row} />
        </td>
        <td class="numeric" data-title="Runnable, waiting">
          <Waiting row={row} />
        </td>
        <td class="numeric" data-title="Retransmits/s">
          <Retransmits row={row} />
        </td>
        <td class="last-checkup" data-title="Last check-up">
          <LastCheckup found={found} />
        </td>
        <td class="row-button">
          <CheckUp row={row} failed={failed} />
        </td>
      </tr>
      {worst !== undefined && <Troubles row={row} />}
    </>
  );
}

function Table({
  label,
  rows,
  overview,
  failed,
}: {
  label: string;
  rows: readonly OverviewRow[];
  overview: NodeOverview;
  failed: (failure: Failure | null) => void;
}) {
  const [all, setAll] = useState(false);
  const byRow = new Map(overview.checkups.map((found) => [found.row, found]));
  const shown = all ? rows : rows.slice(0, MOST_ROWS);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <div class="overview-box" tabIndex={0} role="region" aria-label={label}>
      <table class="plain overview-table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Pod</th>
            <th scope="col" class="numeric" title="By Envoy's own counters; the line is the last minutes">
              Requests/s
            </th>
            <th scope="col" class="numeric" title="Responses with status 5xx">
              Errors
            </th>
            <th scope="col" class="numeric" title="95 of 100 requests take less than this">
              p95
            </th>
            <th scope="col" class="numeric" title="Cores in use, of the limit where there is one">
              CPU, cores
            </th>
            <th scope="col" class="numeric" title="Threads that could run and waited for a CPU, on average">
              Runnable, waiting
            </th>
            <th scope="col" class="numeric" title="TCP segments that were retransmitted">
              Retransmits/s
            </th>
            <th scope="col">Last check-up</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row key={row.id} row={row} found={byRow.get(row.id)} failed={failed} />
          ))}
        </tbody>
      </table>
      {shown.length < rows.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {rows.length} rows
        </button>
      )}
    </div>
  );
}

function Facts({ overview }: { overview: NodeOverview }) {
  const { read_ns, period_s, cost_percent, notes } = overview;
  return (
    <p class="muted small overview-facts">
      {read_ns !== null && `Read at ${moment(read_ns)}, every ${clock(period_s)}`}
      {cost_percent !== null &&
        ` · reading takes ${cost_percent.toFixed(cost_percent < 0.1 ? 2 : 1)} % of one core`}
      {notes.map((note) => ` · ${visible(note)}`)}
    </p>
  );
}

function Found({ overview, q }: { overview: NodeOverview; q: string }) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const { first, node } = overviewParts(overview, q);
  const worst = overview.rows[0]?.troubles[0]?.level;
  const cores = coresOf(node);
  return (
    <>
      <p class={`overview-summary summary-${worst ?? "good"}`} data-summary>
        {visible(overview.summary)}
      </p>
      {failure !== null && (
        <p class="field-error" role="alert">
          The check-up was not started: {visible(failure.detail)}
          {failure.hint !== undefined && <span class="muted"> {visible(failure.hint)}</span>}
        </p>
      )}
      {first.length > 0 && <Table label="Pods" rows={first} overview={overview} failed={setFailure} />}
      {first.length === 0 && node.length === 0 && (
        <Empty title="Nothing matches the filter">
          <button type="button" onClick={() => patchRoute({ q: "" }, "replace")}>
            Clear the filter
          </button>
        </Empty>
      )}
      {node.length > 0 && (
        <details class="overview-node" open={first.length === 0}>
          <summary>
            Outside of pods: {plural(node.length, "group")} of processes
            {cores !== null && `, ${cores.toFixed(2)} cores`}
          </summary>
          <Table label="Outside of pods" rows={node} overview={overview} failed={setFailure} />
        </details>
      )}
      <Facts overview={overview} />
    </>
  );
}

function Body({ answer: { value, failure }, q }: { answer: Answer<NodeOverview>; q: string }) {
  if (value === null)
    return failure === null ? (
      <Loading what="the overview" />
    ) : (
      <ErrorBox title="The overview cannot be shown" detail={failure.detail} hint={failure.hint} />
    );
  if (!value.is_on)
    return (
      <Empty title="The overview is off">
        <p>
          The agent was started with <code>--overview off</code>. Without it the processes of the node are
          under <PageLink to={{ view: "pods" }}>Pods</PageLink>.
        </p>
      </Empty>
    );
  if (value.read_ns === null) return <Loading what="the first reading" />;
  return <Found overview={value} q={q} />;
}

export function OverviewPage() {
  const { q } = route.value;
  const answer = useAnswer(api.overview, () => true, [], READ_MS);
  return (
    <section class="overview-page">
      <div class="toolbar">
        <h1>Overview</h1>
        <input
          type="search"
          data-search
          class="filter"
          placeholder="Filter: pod, workload, trouble   /"
          aria-label="Filter the overview"
          spellcheck={false}
          value={q}
          onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
        />
      </div>
      <Body answer={answer} q={q} />
    </section>
  );
}
