// How an edge of the map went over time: a small line for each number, with its highest value.

import { useMemo } from "preact/hooks";
import { rateText } from "../lib/edge_signals";
import { type Trend, trendsOf } from "../lib/edge_trend";
import { bytes, duration } from "../lib/format";
import type { Line } from "../lib/map_lines";
import { edgeBytes } from "../lib/topology";
import { useEdgeSeries } from "../state/edge_series";
import type { EdgeOrigin } from "./edges_view";
import { Sparkline } from "./sparkline";

/** Columns of a small line. */
const COLUMNS = 28;

function mostText({ key, values }: Trend): string {
  if (values === null) return "not measured";
  const most = Math.max(0, ...values);
  if (most === 0) return key === "rtt" ? "no value" : "none";
  if (key === "rtt") return `at most ${duration(most * 1000)}`;
  return `at most ${key === "bytes" ? `${bytes(most)}/s` : rateText(most)}`;
}

export function LineTrend({ line, origin }: { line: Line; origin: EdgeOrigin }) {
  const edge = line.edges.reduce((best, next) => (edgeBytes(next) > edgeBytes(best) ? next : best));
  const base = origin.id === "" ? "/network" : `/tasks/${encodeURIComponent(origin.id)}`;
  const { series, error } = useEdgeSeries(`${base}/edges/${edge.id}`, null, null, origin.live);
  const trends = useMemo(() => (series === null ? [] : trendsOf(series, COLUMNS)), [series]);
  if (trends.length === 0) return error === null ? null : <p class="small muted">{error}</p>;
  return (
    <>
      <h3 class="trend-title">
        Over time{line.edges.length > 1 && <span class="muted small"> (of its largest edge)</span>}
      </h3>
      <ul class="trends" data-trends>
        {trends.map((trend) => (
          <li key={trend.key}>
            <span class="muted">{trend.title}</span>
            <Sparkline
              values={trend.values ?? []}
              top={1e-9}
              slots={Math.max(2, trend.values?.length ?? 0)}
            />
            <span class="numeric">{mostText(trend)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
