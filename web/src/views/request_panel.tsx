// One operation: its times at both ends, its sizes, what became of its requests, and samples of them.

import type { RequestOperation, TaskRequests } from "../api/types";
import { bytes, count, duration, moment, percent, visible } from "../lib/format";
import {
  edgeName,
  errorsText,
  failing,
  operationName,
  pathText,
  type SampleRow,
  samplesOf,
  sidecarsOf,
  slowest,
} from "../lib/requests";
import { patchRoute, route } from "../state/route";
import { Icon } from "./icons";
import { PageLink } from "./page_link";
import { ProtocolChip, Status, TimingBar } from "./request_sample";
import { SidecarCard } from "./request_sidecar";
import { Spread } from "./request_spread";

function Outcomes({ operation }: { operation: RequestOperation }) {
  const { count: all, unknown, statuses, messages } = operation;
  const sorted = Object.entries(statuses).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const most = Math.max(1, ...sorted.map(([, number]) => number));
  const errors = errorsText(operation);
  return (
    <section class="row-card" aria-label="What became of them">
      <h3>What became of them</h3>
      <p class={errors === "" ? "muted small" : "bad small"}>
        {errors === "" ? "No request is known to have gone wrong." : `${errors}.`}
      </p>
      {sorted.length === 0 ? (
        <p class="muted small">No status was seen.</p>
      ) : (
        <ol class="bars status-bars">
          {sorted.map(([status, number]) => (
            <li key={status}>
              <span class="bar-bounds mono" title={visible(status)}>
                {visible(status)}
              </span>
              <span class="bar-track" aria-hidden="true">
                <span class="bar-fill" style={{ width: `${(number / most) * 100}%` }} />
              </span>
              <span class="bar-count numeric">{count(number)}</span>
            </li>
          ))}
        </ol>
      )}
      <p class={unknown > 0 ? "warn small" : "muted small"}>
        {unknown > 0
          ? `Of ${count(unknown)} (${percent(unknown, all)}) the end was not seen whole.`
          : "The end of each was seen."}
      </p>
      {messages !== null && (
        <p class="small">
          {`${count(messages.streams)} streams: ${count(messages.to_server)} messages to the server, ${count(messages.to_client)} to the client`}
        </p>
      )}
    </section>
  );
}

function SampleList({ title, rows, none }: { title: string; rows: readonly SampleRow[]; none: string }) {
  return (
    <section class="row-card" aria-label={title}>
      <h3>{title}</h3>
      {rows.length === 0 ? (
        <p class="muted small">{none}</p>
      ) : (
        <ul class="sample-list">
          {rows.map(({ key, sample }) => (
            <li key={key}>
              <button
                type="button"
                class="sample-item"
                title={visible(`${moment(sample.begin_ns)} ${pathText(sample)}`)}
                onClick={() => patchRoute({ requests: "samples", sample: key, sort: "" })}
              >
                <span class="numeric">{duration(sample.duration_ns)}</span>
                <TimingBar sample={sample} />
                <Status sample={sample} />
                <span class="mono sample-path">{visible(pathText(sample))}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** At which sockets its requests were counted. */
const COUNTED: Readonly<Record<RequestOperation["counted_from"], string>> = {
  client: "counted at the client's sockets",
  server: "counted at the server's sockets: the client's are not seen",
  both: "each counted at one of both ends",
  none: "counted as another operation, of which the other end knows more",
};

const LOGGED = "reported by an Envoy in its access log";

export function OperationPanel({
  operation,
  answer,
  rows,
  task,
}: {
  operation: RequestOperation;
  answer: TaskRequests;
  rows: readonly SampleRow[];
  task: string;
}) {
  const { edge, client, server } = operation;
  const own = samplesOf(operation, rows, answer.operations);
  const ends = (pick: (side: NonNullable<typeof client>) => (typeof operation)["latency_ns"]) => [
    { title: "Seen by the client", values: client === null ? null : pick(client) },
    { title: "Seen by the server", values: server === null ? null : pick(server) },
  ];
  const sidecars = sidecarsOf(edge, answer.sidecars);
  return (
    <aside class="edge-panel request-panel" aria-label="One operation">
      <header>
        <h2 class="sample-name">
          <ProtocolChip protocol={operation.protocol} tls={operation.tls} source={operation.source} />{" "}
          <span class="mono">{visible(operationName(operation))}</span>{" "}
          <span class="muted">{visible(edgeName(edge))}</span>
        </h2>
        {edge !== null && (
          <>
            <button
              type="button"
              aria-pressed={route.value.edge === edge.id}
              onClick={() => patchRoute({ edge: route.peek().edge === edge.id ? "" : edge.id }, "replace")}
            >
              Only this edge
            </button>
            <PageLink class="button-link" to={{ view: "edge", id: task, edge: edge.id }}>
              Open the edge
            </PageLink>
          </>
        )}
        <button
          type="button"
          class="icon-button"
          aria-label="Close the operation"
          onClick={() => patchRoute({ operation: "" }, "replace")}
        >
          <Icon name="close" />
        </button>
      </header>
      <p class="muted small request-counted">
        {`${count(operation.count)} requests, ${operation.source === "access_log" ? LOGGED : COUNTED[operation.counted_from]}.`}
        {edge !== null &&
          edge.original_destination !== null &&
          ` Original destination ${visible(edge.original_destination)}.`}
      </p>
      <div class="request-cards">
        <Spread
          title="Latency"
          help="From the first byte of the request to the last one of the response, of requests whose response was seen whole"
          sets={ends((side) => side.latency_ns)}
          show={duration}
          base={10}
        />
        <Spread
          title="First byte"
          help="From the first byte of the request to the first one of the response"
          sets={ends((side) => side.first_byte_ns)}
          show={duration}
          base={10}
        />
        <Spread
          title="Sizes"
          help="Bytes of bodies or messages, of requests whose sizes are known"
          sets={[
            { title: "Requests", values: operation.request_bytes },
            { title: "Responses", values: operation.response_bytes },
          ]}
          show={bytes}
          base={1024}
        />
        <Outcomes operation={operation} />
        <SampleList title="Slowest samples" rows={slowest(own)} none="No request of it was kept." />
        <SampleList title="Failing samples" rows={failing(own)} none="No failing request of it was kept." />
        {sidecars.map((sidecar) => (
          <SidecarCard key={`${sidecar.process.pid}-${sidecar.process.start_ticks}`} sidecar={sidecar} />
        ))}
      </div>
    </aside>
  );
}
