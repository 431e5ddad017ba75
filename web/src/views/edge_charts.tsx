// Charts of the page of an edge: a line over time, a heat map over time, a histogram. All lines over time
// share one cursor, and dragging on one picks a time range for all.

import { type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Histogram, ValueSeries } from "../api/types";
import {
  drawnBounds,
  groupSteps,
  HEAT_LEVELS,
  heatOf,
  joinSteps,
  joinValues,
  peaks,
  percentiles,
  rates,
  type Steps,
  span,
} from "../lib/edge_series";
import { betweenText } from "../lib/edges";
import { patchRoute } from "../state/route";

/** Width of a drawing; it is stretched to the room there is. */
const WIDE = 600;
const LINE_HIGH = 54;
const ROW_HIGH = 5;
/** A heat map has no narrower columns. */
const HEAT_COLUMNS = 240;

/** What all charts of a page share. */
export interface Shared {
  /** Moment under the pointer. */
  readonly cursor: Signal<number | null>;
  /** Range that is being dragged. */
  readonly drag: Signal<readonly [number, number] | null>;
}

export function makeShared(): Shared {
  return { cursor: signal<number | null>(null), drag: signal<readonly [number, number] | null>(null) };
}

export const SharedCharts = createContext<Shared>(makeShared());

/** A drag of less is a click. */
const LEAST_DRAG_PX = 4;

function Marks({ from, to }: { from: number; to: number }) {
  const { cursor, drag } = useContext(SharedCharts);
  const at = (ms: number): number => ((ms - from) / (to - from)) * 100;
  const moment = cursor.value;
  const range = drag.value;
  return (
    <>
      {range !== null && (
        <div
          class="chart-drag"
          style={{
            left: `${at(Math.min(...range))}%`,
            width: `${at(Math.max(...range)) - at(Math.min(...range))}%`,
          }}
        />
      )}
      {moment !== null && moment >= from && moment <= to && (
        <div class="chart-cursor" style={{ left: `${at(moment)}%` }} />
      )}
    </>
  );
}

/** The ground of everything over time: pointer, cursor, brush. */
function OverTime({ steps, children, label }: { steps: Steps; children: unknown; label: string }) {
  const { cursor, drag } = useContext(SharedCharts);
  const covered = span(steps);
  if (covered === null) return null;
  const [from, to] = covered;
  const moment = (event: PointerEvent): number => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
    return from + share * (to - from);
  };
  const end = (event: PointerEvent): void => {
    const range = drag.peek();
    if (range === null) return;
    drag.value = null;
    const width = (event.currentTarget as Element).getBoundingClientRect().width;
    const [low, high] = [Math.min(...range), Math.max(...range)];
    if (((high - low) / (to - from)) * width < LEAST_DRAG_PX) return;
    patchRoute({ from: Math.floor(low), to: Math.ceil(high) });
  };
  return (
    <div
      class="chart-box"
      role="img"
      aria-label={label}
      onPointerMove={(event) => {
        cursor.value = moment(event);
        const range = drag.peek();
        if (range !== null) drag.value = [range[0], moment(event)];
      }}
      onPointerLeave={() => {
        cursor.value = null;
      }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        drag.value = [moment(event), moment(event)];
      }}
      onPointerUp={end}
      onPointerCancel={() => {
        drag.value = null;
      }}
    >
      {children as string}
      <Marks from={from} to={to} />
    </div>
  );
}

const round = (value: number): string => value.toFixed(1);

/**
 * Rates as steps, never as slopes between them: each number holds for its whole step. Where steps are narrower than the
 * drawing can show, a column is the highest of its steps.
 */
export function LineChart({
  steps,
  numbers,
  text,
  label,
}: {
  steps: Steps;
  numbers: readonly number[];
  text: (rate: number) => string;
  label: string;
}) {
  const covered = span(steps);
  if (covered === null) return null;
  const [from, to] = covered;
  const groups = joinSteps(steps, WIDE);
  const columns = groupSteps(steps, groups);
  const values = peaks(rates(steps, numbers), groups);
  const most = Math.max(0, ...values);
  const x = (ms: number): string => round(((ms - from) / Math.max(1, to - from)) * WIDE);
  const y = (value: number): string =>
    round(LINE_HIGH - 1 - (most === 0 ? 0 : (value / most) * (LINE_HIGH - 4)));
  let path = "";
  let area = "";
  values.forEach((value, i) => {
    const [start, end] = columns[i]!;
    const joined = i > 0 && columns[i - 1]![1] === start;
    path += `${joined ? "L" : "M"}${x(start)} ${y(value)}L${x(end)} ${y(value)}`;
    if (value > 0) area += `M${x(start)} ${LINE_HIGH}V${y(value)}H${x(end)}V${LINE_HIGH}Z`;
  });
  return (
    <OverTime steps={steps} label={`${label}: at most ${text(most)}`}>
      <svg
        class="line-chart"
        viewBox={`0 0 ${WIDE} ${LINE_HIGH}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <path class="chart-area" d={area} />
        <path class="chart-line" d={path} />
      </svg>
      <span class="chart-most numeric">{text(most)}</span>
    </OverTime>
  );
}

/** Counts by bucket and time; darker is more. */
export function HeatMap({
  steps,
  values,
  unitNs,
  label,
}: {
  steps: Steps;
  values: ValueSeries;
  unitNs: number;
  label: string;
}) {
  const covered = span(steps);
  const { columns, heat } = useMemo(() => {
    const groups = joinSteps(steps, HEAT_COLUMNS);
    const joined = groupSteps(steps, groups);
    return { columns: joined, heat: heatOf(joined, joinValues(values, groups)) };
  }, [steps, values]);
  if (covered === null || heat === null) return null;
  const [from, to] = covered;
  const rows = heat.high - heat.low + 1;
  const x = (ms: number): number => ((ms - from) / Math.max(1, to - from)) * WIDE;
  const paths = new Array<string>(HEAT_LEVELS).fill("");
  for (const { step, bucket, level } of heat.cells) {
    const [start, end] = columns[step]!;
    const left = x(start);
    // At least a hair wide, so that one step of very many is seen.
    const width = Math.max(x(end) - left, 0.8);
    paths[level - 1] +=
      `M${round(left)} ${(heat.high - bucket) * ROW_HIGH}h${round(width)}v${ROW_HIGH}h${round(-width)}z`;
  }
  const bound = (bucket: number): string =>
    betweenText({ above: values.bounds[bucket - 1] ?? null, upTo: values.bounds[bucket] ?? null }, unitNs);
  return (
    <OverTime
      steps={steps}
      label={`${label} by time and size, from ${bound(heat.low)} to ${bound(heat.high)}`}
    >
      <svg
        class="heat-map"
        viewBox={`0 0 ${WIDE} ${rows * ROW_HIGH}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {paths.map((path, level) => (
          <path key={level} class={`heat-${level + 1}`} d={path} />
        ))}
      </svg>
      <span class="chart-most numeric">{bound(heat.high)}</span>
      {rows > 1 && <span class="chart-least numeric">{bound(heat.low)}</span>}
    </OverTime>
  );
}

const HIGH = 64;

/** Counts of another time; `scale` makes them those of as many seconds. */
export interface Ghost {
  readonly histogram: Histogram;
  readonly scale: number;
}

/** True buckets on a logarithmic axis; their heights are counts. A ghost stands behind them as outlines. */
export function HistogramChart({
  histogram,
  unitNs,
  label,
  ghost,
}: {
  histogram: Histogram;
  unitNs: number;
  label: string;
  ghost: Ghost | null;
}) {
  const { counts } = histogram;
  const earlier = counts.map((_, i) => (ghost?.histogram.counts[i] ?? 0) * (ghost?.scale ?? 0));
  const used = (i: number): boolean => counts[i]! > 0 || earlier[i]! > 0;
  const first = counts.findIndex((_, i) => used(i));
  if (first === -1) return null;
  const last = counts.findLastIndex((_, i) => used(i));
  const [start] = drawnBounds(histogram, first, unitNs);
  const [, end] = drawnBounds(histogram, last, unitNs);
  const x = (ns: number): number =>
    ((Math.log(ns) - Math.log(start)) / (Math.log(end) - Math.log(start))) * WIDE;
  const most = Math.max(...counts, ...earlier);
  const shown = counts.slice(first, last + 1).map((count, i) => {
    const [low, high] = drawnBounds(histogram, first + i, unitNs);
    return { count, before: earlier[first + i]!, left: x(low), right: x(high), bucket: first + i };
  });
  const high = (count: number): number => (count / most) * (HIGH - 2);
  const ticks = percentiles(histogram).map(({ share, between }) => {
    const bucket = between.upTo === null ? counts.length - 1 : histogram.bounds.indexOf(between.upTo);
    const [low, high] = drawnBounds(histogram, bucket, unitNs);
    return { share, left: x(low), right: x(high) };
  });
  return (
    <div class="histogram" role="img" aria-label={label}>
      <svg viewBox={`0 0 ${WIDE} ${HIGH + 20}`} preserveAspectRatio="none" aria-hidden="true">
        {shown.map(({ count, left, right, bucket }) => (
          <rect
            key={bucket}
            class="histogram-bar"
            x={round(left + 0.8)}
            y={round(HIGH - high(count))}
            width={round(Math.max(1, right - left - 1.6))}
            height={round(high(count))}
          />
        ))}
        {shown
          .filter(({ before }) => before > 0)
          .map(({ before, left, right, bucket }) => (
            <path
              key={bucket}
              class="histogram-ghost"
              d={`M${round(left)} ${HIGH}V${round(HIGH - high(before))}H${round(right)}V${HIGH}`}
            />
          ))}
        <path class="histogram-axis" d={`M0 ${HIGH}H${WIDE}`} />
        {ticks.map(({ share, left, right }, i) => (
          <path
            key={share}
            class={`histogram-tick tick-${i}`}
            d={`M${round(left + 1)} ${HIGH + 4 + i * 5}H${round(right - 1)}`}
          />
        ))}
      </svg>
      <div class="histogram-ends numeric">
        <span>
          {betweenText(
            { above: histogram.bounds[first - 1] ?? null, upTo: histogram.bounds[first] ?? null },
            unitNs,
          )}
        </span>
        <span>
          {betweenText(
            { above: histogram.bounds[last - 1] ?? null, upTo: histogram.bounds[last] ?? null },
            unitNs,
          )}
        </span>
      </div>
    </div>
  );
}
