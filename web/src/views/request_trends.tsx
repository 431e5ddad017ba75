// Requests over the time of their task: small charts above the table.

import { useMemo, useState } from "preact/hooks";
import type { TaskRequests } from "../api/types";
import { clock } from "../lib/format";
import { chartText, stepPath, type TrendChart, type Trends, trendsOf } from "../lib/request_trends";
import { route } from "../state/route";

const BOX = [300, 40] as const;
/** Lower windows have no room for charts and a table. */
const ROOMY = "(min-width: 700px) and (min-height: 700px)";

function Chart({ chart, edges }: { chart: TrendChart; edges: Trends["edges"] }) {
  const { title, lines, most, text } = chart;
  return (
    <figure class="request-trend">
      <figcaption>
        <span>{title}</span>
        <span class="muted numeric">{most === 0 ? "none" : `at most ${text(most)}`}</span>
        {lines.length > 1 &&
          lines.map((line, i) => (
            <span key={line.title} class={`trend-key trend-${i}`}>
              {line.title}
            </span>
          ))}
      </figcaption>
      <svg
        viewBox={`0 0 ${BOX[0]} ${BOX[1]}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={chartText(chart)}
      >
        {lines.map(({ title: name, values }, i) => (
          <path key={name} class={`trend-line trend-${i}`} d={stepPath(values, edges, most, BOX)} />
        ))}
      </svg>
    </figure>
  );
}

export function RequestTrends({ answer }: { answer: TaskRequests }) {
  const { edge, q, speaks, failing } = route.value;
  const narrower = q !== "" || speaks !== "" || failing;
  const trends = useMemo(() => trendsOf(answer, { edge, narrower }), [answer, edge, narrower]);
  const [open, setOpen] = useState(() => matchMedia(ROOMY).matches);
  if (answer.over_time === null && answer.operations.length > 0)
    return <p class="muted small request-trends">Requests over time were not kept when this was recorded.</p>;
  if (trends === null) return null;
  const { charts, edges, seconds, instead } = trends;
  const estimated = answer.sampled_one_of > 1 ? " Counts are estimates." : "";
  const parted = (answer.plaintext?.attached_percent ?? 100) < 100 ? " TLS was read for a part of it." : "";
  const late = answer.state === "running" ? " The last seconds are still being counted." : "";
  return (
    <details
      class="request-trends"
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
      data-over-time
    >
      <summary>
        Over time{" "}
        <span class="muted">{`${clock(seconds)}.${instead === "" ? "" : ` ${instead}`}${estimated}${parted}${late}`}</span>
      </summary>
      <div class="request-trend-row">
        {charts.map((chart) => (
          <Chart key={chart.title} chart={chart} edges={edges} />
        ))}
      </div>
    </details>
  );
}
