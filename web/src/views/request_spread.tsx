// Values of requests as bars over one logarithmic axis, a row for each end that saw them.

import type { RequestValues } from "../api/types";
import { count } from "../lib/format";
import {
  boundsText,
  PERCENTILES,
  percentileText,
  type SpreadRow,
  spreadPicture,
} from "../lib/request_values";

const WIDE = 600;
const HIGH = 46;
const MARKS = 8;

const round = (value: number): string => value.toFixed(1);

function Bars({ row }: { row: SpreadRow }) {
  return (
    <svg viewBox={`0 0 ${WIDE} ${HIGH + MARKS}`} preserveAspectRatio="none" aria-hidden="true">
      {row.bars.map(({ from, left, right, height }) => (
        <rect
          key={from}
          class="histogram-bar"
          x={round(left * WIDE)}
          y={round(HIGH - Math.max(1, height * HIGH))}
          width={round(Math.max(1.2, (right - left) * WIDE - 0.4))}
          height={round(Math.max(1, height * HIGH))}
        />
      ))}
      <path class="histogram-axis" d={`M0 ${HIGH}H${WIDE}`} />
      {row.marks.map(({ which, left, right }, i) => (
        <path
          key={which}
          class={`histogram-tick tick-${i}`}
          d={`M${round(left * WIDE - 1)} ${HIGH + 4}H${round(Math.max(right, left + 0.005) * WIDE + 1)}`}
        />
      ))}
    </svg>
  );
}

/** Percentiles with both of their bounds behind them. */
export function Percentiles({ values, show }: { values: RequestValues; show: (value: number) => string }) {
  return (
    <dl class="row-percentiles numeric">
      {PERCENTILES.map((which, i) => (
        <div
          key={which}
          title={
            boundsText(values.bounds[which], show) === null
              ? "no values"
              : `the bucket of it is ${boundsText(values.bounds[which], show)}`
          }
        >
          <dt>
            <span class={`tick-sample tick-${i}`} aria-hidden="true" />
            {which}
          </dt>
          <dd>{percentileText(values, which, show)}</dd>
        </div>
      ))}
      <div title="Exact">
        <dt>max</dt>
        <dd>{values.max === null ? "–" : show(values.max)}</dd>
      </div>
      <div title="Exact">
        <dt>mean</dt>
        <dd>{values.mean === null ? "–" : show(values.mean)}</dd>
      </div>
    </dl>
  );
}

/** What one end saw; null where it saw nothing. */
export interface SpreadSet {
  readonly title: string;
  readonly values: RequestValues | null;
}

export function Spread({
  title,
  help,
  sets,
  show,
  base,
}: {
  title: string;
  help: string;
  sets: readonly SpreadSet[];
  show: (value: number) => string;
  /** 1024 for bytes. */
  base: 10 | 1024;
}) {
  const known = sets.filter(({ values }) => values !== null && values.count > 0);
  const picture = spreadPicture(
    known.map(({ values }) => values),
    base,
  );
  return (
    <section class="row-card spread" aria-label={title}>
      <h3 title={help}>{title}</h3>
      {picture === null ? (
        <p class="muted small">None was seen whole.</p>
      ) : (
        <>
          {known.map(({ title: name, values }, i) => (
            <div
              key={name}
              class="spread-row"
              role="img"
              aria-label={`${title}, ${name}: ${count(values!.count)} values, ${PERCENTILES.map((which) => `${which} ${percentileText(values!, which, show)}`).join(", ")}`}
            >
              <p class="small">
                {name} <span class="muted numeric">{count(values!.count)}</span>
              </p>
              <Bars row={picture.rows[i]!} />
            </div>
          ))}
          <div class="spread-axis numeric" aria-hidden="true">
            {picture.ticks.map(({ value, at }) => (
              <span key={value} style={{ left: `${at * 100}%` }}>
                {show(value)}
              </span>
            ))}
          </div>
          {known.map(({ title: name, values }) => (
            <div key={name} class="spread-numbers">
              {known.length > 1 && <span class="muted small">{name}</span>}
              <Percentiles values={values!} show={show} />
            </div>
          ))}
        </>
      )}
      {sets
        .filter((set) => !known.includes(set) && known.length > 0)
        .map(({ title: name }) => (
          <p key={name} class="muted small">{`${name}: nothing was seen there.`}</p>
        ))}
    </section>
  );
}
