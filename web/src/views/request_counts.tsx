// Requests that the kernel counted, by edge: shown where operations are estimates.

import type { RequestCount, TaskRequests } from "../api/types";
import { count, duration, plural } from "../lib/format";
import { countedSum, failedText, rowsOf } from "../lib/request_counts";
import { percentileText } from "../lib/request_values";
import { errorsText } from "../lib/requests";
import { route } from "../state/route";
import { End } from "./request_operations";
import { ProtocolChip } from "./request_sample";

function Row({ counted }: { counted: RequestCount }) {
  const { edge, latency_ns: latency } = counted;
  const more = counted.exact ? "" : " or more";
  return (
    <tr>
      <td class="bounded">
        <End edge={edge} side="client" />
      </td>
      <td class="bounded">
        <End edge={edge} side="server" />
      </td>
      <td>
        <ProtocolChip protocol={counted.protocol} tls={false} />
      </td>
      <td class="numeric">{`${count(counted.count)}${more}`}</td>
      <td class={`numeric ${counted.errors > 0 ? "bad" : "muted"}`} title={errorsText(counted)}>
        {failedText(counted)}
      </td>
      <td class="numeric">{percentileText(latency, "p50", duration)}</td>
      <td class="numeric">{percentileText(latency, "p90", duration)}</td>
      <td class="numeric">{percentileText(latency, "p99", duration)}</td>
    </tr>
  );
}

export function RequestCounts({ answer }: { answer: TaskRequests }) {
  const rows = rowsOf(answer, route.value.edge);
  if (rows.length === 0) return null;
  const { requests, errors, unknown, exact } = countedSum(rows);
  const failed =
    unknown === 0
      ? plural(errors, "error")
      : `${plural(errors, "known error")}, status of ${count(unknown)} unknown`;
  return (
    <details class="remarks edge-remarks tls-hellos" data-counted>
      <summary>
        Counted in the kernel{" "}
        <span class="muted">{`${plural(requests, "request")} of HTTP${exact ? "" : " or more"}, ${failed}, whether captured or not`}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Requests by edge">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Client</th>
              <th scope="col">Server</th>
              <th scope="col">Protocol</th>
              <th scope="col">Requests</th>
              <th scope="col">Errors</th>
              <th scope="col">p50</th>
              <th scope="col">p90</th>
              <th scope="col">p99</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((counted) => (
              <Row key={`${counted.edge.id} ${counted.protocol}`} counted={counted} />
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
