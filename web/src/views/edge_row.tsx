// One measured thing of an edge at one end: its sums, its course, its buckets.

import { lostPackets } from "../lib/drop_reasons";
import {
  betweenWords,
  histogramOf,
  percentiles,
  type Row,
  type RowKey,
  type Steps,
  seconds,
  stepAt,
  stepHistogram,
  stepText,
  sum,
} from "../lib/edge_series";
import { rateText } from "../lib/edge_signals";
import { errnoText, meanText, missingText } from "../lib/edges";
import { bytes, count, visible } from "../lib/format";
import { HeatMap, HistogramChart, LineChart, type Shared } from "./edge_charts";
import { Bars } from "./edge_panel";

function totalText(row: Row, covered: number): string {
  const all = sum(row.count ?? []);
  const parts = [`${count(all)} ${row.unit}`];
  if (row.bytes !== null) parts.push(bytes(sum(row.bytes)));
  if (covered > 0) {
    parts.push(rateText(all / covered));
    if (row.bytes !== null) parts.push(`${bytes(sum(row.bytes) / covered)}/s`);
  }
  const mean = row.values === null ? null : meanText(sum(row.values.sum) * row.unitNs, sum(row.values.count));
  if (mean !== null) parts.push(`mean ${mean}`);
  return parts.join(" · ");
}

/** What the step under the pointer says, in the row that it belongs to. */
function Moment({
  row,
  steps,
  shared,
  zeroNs,
}: {
  row: Row;
  steps: Steps;
  shared: Shared;
  zeroNs: number | null;
}) {
  const ms = shared.cursor.value;
  const step = ms === null ? null : stepAt(steps, ms);
  if (step === null || row.count === null) return <span class="row-moment" />;
  const number = row.count[step] ?? 0;
  const parts = [`${stepText(steps[step]!, zeroNs)}: ${count(number)} ${row.unit}`];
  if (row.bytes !== null) parts.push(bytes(row.bytes[step] ?? 0));
  if (row.values !== null) {
    const p95 = percentiles(stepHistogram(row.values, step)).find(({ share }) => share === 0.95);
    if (p95 !== undefined) parts.push(`p95 ${betweenWords(p95.between, row.unitNs)}`);
  }
  return <span class="row-moment numeric">{parts.join(" · ")}</span>;
}

function Parts({ row, name }: { row: Row; name: (key: string) => string }) {
  const parts = Object.entries(row.parts)
    .map(([key, numbers]) => [key, sum(numbers)] as const)
    .filter(([, number]) => number > 0);
  if (parts.length === 0) return null;
  return (
    <ul class="row-parts">
      {parts
        .sort((a, b) => b[1] - a[1])
        .map(([key, number]) => (
          <li key={key}>
            <b class="numeric">{count(number)}</b> {visible(name(key))}
          </li>
        ))}
    </ul>
  );
}

const TROUBLE: ReadonlySet<RowKey> = new Set(["retransmit", "drop", "reset", "error"]);

/** The same of the time before. */
export interface Earlier {
  readonly row: Row;
  readonly covered: number;
}

/** "before: 12 calls/s"; empty where there is nothing to say. */
function earlierText({ row, covered }: Earlier): string {
  if (row.count === null || covered === 0) return "";
  const rate =
    row.bytes === null ? rateText(sum(row.count) / covered) : `${bytes(sum(row.bytes) / covered)}/s`;
  return `before: ${rate}`;
}

export function RowCard({
  kind,
  row,
  earlier,
  side,
  steps,
  shared,
  zeroNs,
}: {
  kind: RowKey;
  row: Row;
  earlier: Earlier | null;
  side: string;
  steps: Steps;
  shared: Shared;
  /** When counting began, where that is known. */
  zeroNs: number | null;
}) {
  const covered = seconds(steps);
  const all = row.count === null ? 0 : sum(row.count);
  const histogram = row.values === null ? null : histogramOf(row.values);
  const told = histogram === null ? [] : percentiles(histogram);
  const past = earlier?.row.values == null ? null : histogramOf(earlier.row.values);
  const ghost =
    past === null || earlier === null || earlier.covered === 0
      ? null
      : { histogram: past, scale: covered / earlier.covered };
  const pastTold = past === null ? [] : percentiles(past);
  const parts = Object.entries(row.parts).map(([name, numbers]) => [name, sum(numbers)] as const);
  const bad = TROUBLE.has(kind) && (kind === "drop" ? lostPackets(all, Object.fromEntries(parts)) : all) > 0;
  return (
    <section
      class={bad ? "row-card bad-row" : "row-card"}
      aria-label={`${side}: ${row.title}`}
      data-row-kind={kind}
      data-side={side.toLowerCase()}
    >
      <h3 title={row.help}>
        <span class="row-side muted">{side}</span>
        {bad && <span aria-hidden="true">⚠ </span>}
        {row.title}
        {row.count !== null && <span class="row-total numeric">{totalText(row, covered)}</span>}
        {earlier !== null && earlierText(earlier) !== "" && (
          <span class="row-earlier numeric">{earlierText(earlier)}</span>
        )}
      </h3>
      {row.count === null ? (
        <p class="muted small">{visible(missingText(row.reason, row.title))}</p>
      ) : all === 0 && sum(row.bytes ?? []) === 0 ? (
        <p class="muted small">none in this time</p>
      ) : (
        <>
          <LineChart
            steps={steps}
            numbers={row.bytes ?? row.count}
            text={row.bytes === null ? rateText : perSecond}
            label={
              row.bytes === null ? `${row.title}, ${row.unit} per second` : `${row.title}, bytes per second`
            }
          />
          {row.values !== null && histogram !== null && (
            <>
              <HeatMap steps={steps} values={row.values} unitNs={row.unitNs} label={row.title} />
              <HistogramChart
                histogram={histogram}
                unitNs={row.unitNs}
                ghost={ghost}
                label={`${row.title}: ${told.map(({ share, between }) => `p${share * 100} ${betweenWords(between, row.unitNs)}`).join(", ")}`}
              />
            </>
          )}
          {told.length > 0 && (
            <dl class="row-percentiles">
              {told.map(({ share, between }, i) => (
                <div key={share}>
                  <dt>
                    <span class={`tick-sample tick-${i}`} aria-hidden="true" />
                    {`p${share * 100}`}
                  </dt>
                  <dd>
                    {betweenWords(between, row.unitNs)}
                    {pastTold[i] !== undefined && (
                      <span class="row-earlier">{` before: ${betweenWords(pastTold[i].between, row.unitNs)}`}</span>
                    )}
                  </dd>
                </div>
              ))}
            </dl>
          )}
          <Parts row={row} name={kind === "error" ? errnoText : (key) => key} />
          <Moment row={row} steps={steps} shared={shared} zeroNs={zeroNs} />
          {histogram !== null && (
            <details class="row-counts">
              <summary>Counts of the buckets</summary>
              <Bars histogram={histogram} unitNs={row.unitNs} />
            </details>
          )}
        </>
      )}
      {row.timesReason !== "" && (
        <p class="muted small">{visible(missingText(row.timesReason, "Call durations"))}</p>
      )}
    </section>
  );
}

export const perSecond = (rate: number): string => `${bytes(rate)}/s`;
