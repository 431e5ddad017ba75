// Single requests: a table of all, and everything that is known of one.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { EdgeEnd, RequestBody, RequestSample, RequestSource, Task, TaskRequests } from "../api/types";
import { bytes, count, duration, moment, visible } from "../lib/format";
import { namesSource, sourceHelp, sourceTitle } from "../lib/request_source";
import {
  compareSamples,
  edgeName,
  hasFailed,
  outcomeText,
  pathText,
  protocolTitle,
  type SampleRow,
  statusText,
  timingParts,
  timingText,
} from "../lib/requests";
import { patchRoute, route } from "../state/route";
import { ContainerLine, useContainerOf } from "./container_name";
import { Icon } from "./icons";
import { PageLink } from "./page_link";
import { AgainstMedian } from "./request_median";
import { RequestWay } from "./request_way";
import { Empty } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const DEFAULT_SORT = "-duration";

export function ProtocolChip({
  protocol,
  tls,
  source = tls ? "tls" : "sockets",
}: {
  protocol: string;
  tls: boolean;
  source?: RequestSource;
}) {
  return (
    <span class="protocol" title={source === "sockets" ? undefined : sourceHelp(source)}>
      {`${visible(protocolTitle(protocol))}${tls ? " · TLS" : ""}`}
    </span>
  );
}

/** Text that is marked when the request failed. */
export function Status({ sample }: { sample: RequestSample }) {
  const failed = hasFailed(sample.outcome);
  return (
    <span
      class={failed ? "bad" : sample.outcome === "unknown" ? "muted" : ""}
      title={outcomeText(sample.outcome)}
    >
      {failed && <span aria-hidden="true">▲ </span>}
      {visible(statusText(sample))}
    </span>
  );
}

export function TimingBar({ sample }: { sample: RequestSample }) {
  const parts = timingParts(sample);
  const whole = Math.max(1, sample.duration_ns);
  return (
    <div class="timing-bar" role="img" aria-label={timingText(parts)} title={timingText(parts)}>
      {parts.map(({ kind, from_ns, to_ns }) => (
        <span
          key={from_ns}
          class={`timing-${kind}`}
          style={{ left: `${(from_ns / whole) * 100}%`, width: `${((to_ns - from_ns) / whole) * 100}%` }}
        />
      ))}
    </div>
  );
}

const KEPT: Readonly<Record<RequestSample["kept_as"], string>> = {
  slow: "slowest",
  failed: "failed",
  rule: "rule",
  all: "all are kept",
};

/** Of the column that is there where access logs are a source. */
export const SOURCE_HELP = "Where the request was seen: in an access log, at sockets, or at a TLS library";

export function Source({ source }: { source: RequestSource }) {
  return <span title={sourceHelp(source)}>{visible(sourceTitle(source))}</span>;
}

const or = <T,>(value: T | null, show: (value: T) => string): string => (value === null ? "–" : show(value));

const COLUMNS: readonly Column<SampleRow>[] = [
  {
    key: "begin",
    title: "Began",
    numeric: true,
    sortable: true,
    cell: ({ sample }) => moment(sample.begin_ns),
  },
  {
    key: "edge",
    title: "Client → server",
    sortable: true,
    cell: ({ sample }) => (
      <span title={visible(edgeName(sample.edge))}>{visible(edgeName(sample.edge))}</span>
    ),
  },
  {
    key: "protocol",
    title: "Protocol",
    sortable: true,
    cell: ({ sample }) => <ProtocolChip protocol={sample.protocol} tls={sample.tls} source={sample.source} />,
  },
  {
    key: "source",
    title: "Source",
    help: SOURCE_HELP,
    sortable: true,
    cell: ({ sample }) => <Source source={sample.source} />,
  },
  { key: "method", title: "Method", sortable: true, cell: ({ sample }) => visible(sample.method ?? "–") },
  {
    key: "path",
    title: "Path or route",
    help: "The path as it was sent where the task was asked for it, else the route",
    sortable: true,
    cell: ({ sample }) => (
      <span class="mono" title={visible(pathText(sample))}>
        {visible(pathText(sample))}
      </span>
    ),
  },
  {
    key: "status",
    title: "Status",
    sortable: true,
    cell: ({ sample }) => <Status sample={sample} />,
  },
  {
    key: "duration",
    title: "Duration",
    help: "From the first byte of the request to the last one of the response",
    numeric: true,
    sortable: true,
    cell: ({ sample }) => duration(sample.duration_ns),
  },
  { key: "parts", title: "In parts", cell: ({ sample }) => <TimingBar sample={sample} /> },
  {
    key: "first",
    title: "First byte",
    help: "From the first byte of the request to the first one of the response",
    numeric: true,
    sortable: true,
    cell: ({ sample }) => or(sample.first_byte_ns, duration),
  },
  {
    key: "received",
    title: "Response",
    help: "Bytes of the response's body or message",
    numeric: true,
    sortable: true,
    cell: ({ sample }) => or(sample.response_bytes, bytes),
  },
  { key: "kept", title: "Kept as", sortable: true, cell: ({ sample }) => KEPT[sample.kept_as] },
];

const COLUMNS_WITHOUT_SOURCE = COLUMNS.filter(({ key }) => key !== "source");

export function SampleTable({
  rows,
  all,
  answer,
  task,
  empty,
}: {
  rows: readonly SampleRow[];
  /** Those too that the filter leaves out. */
  all: readonly SampleRow[];
  answer: TaskRequests;
  task: Task;
  empty: string;
}) {
  const { sort: wanted, sample: picked, q, speaks, failing, edge } = route.value;
  const sort = wanted || DEFAULT_SORT;
  const sorted = useMemo(() => rows.toSorted(compareSamples(sort)), [rows, sort]);
  const hasSource = useMemo(() => namesSource(answer.samples), [answer]);
  const open = picked === "" ? undefined : all.find(({ key }) => key === picked);
  if (rows.length === 0) {
    const filtered = q !== "" || speaks !== "" || failing || edge !== "";
    return (
      <Empty title={filtered ? "No sample matches the filter" : empty}>
        {filtered && (
          <button
            type="button"
            onClick={() => patchRoute({ q: "", speaks: "", failing: false, edge: "" }, "replace")}
          >
            Clear the filter
          </button>
        )}
      </Empty>
    );
  }
  return (
    <>
      <div class="table-box">
        <VirtualTable
          label="Single requests"
          class={hasSource ? "sample-table with-source" : "sample-table"}
          rows={sorted}
          columns={hasSource ? COLUMNS : COLUMNS_WITHOUT_SOURCE}
          rowKey={({ key }) => key}
          sort={sort}
          picked={picked}
          onSort={(next) => patchRoute({ sort: next }, "replace")}
          onOpen={({ key }) => patchRoute({ sample: key === picked ? "" : key }, "replace")}
        />
      </div>
      {open !== undefined && <SamplePanel row={open} rows={all} answer={answer} task={task} />}
    </>
  );
}

function Pair({ title, help, children }: { title: string; help?: string; children: ComponentChildren }) {
  return (
    <div>
      <dt title={help}>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function EndContainer({ title, end }: { title: string; end: EdgeEnd }) {
  const container = useContainerOf(end);
  if (container === null) return null;
  return (
    <Pair title={title}>
      <ContainerLine container={container} />
    </Pair>
  );
}

/** Ids that other programs know the request by. */
function Trace({ trace }: Pick<RequestSample, "trace">) {
  const ids = [
    ["Request id", trace.request_id],
    ["Trace id", trace.trace_id],
    ["Span id", trace.span_id],
  ] as const;
  return (
    <>
      {ids.map(([title, id]) => (
        <Pair key={title} title={title}>
          {id === null ? <span class="muted">none seen</span> : <code>{visible(id)}</code>}
        </Pair>
      ))}
    </>
  );
}

/** Shown as it came, with what cannot be printed made visible. */
function BodyPart({ title, body }: { title: string; body: RequestBody | null }) {
  if (body === null) return null;
  const lines = body.data.split("\n");
  const kept = body.encoding === "base64" ? "no text: in base64" : "as it was sent";
  return (
    <>
      <h3>{title}</h3>
      <p class="muted small">{body.cut ? `${kept}; only the beginning is kept` : kept}</p>
      <textarea
        class="body-text mono"
        readOnly
        rows={Math.min(12, lines.length + 1)}
        aria-label={title}
        value={lines.map(visible).join("\n")}
      />
    </>
  );
}

function SamplePanel(props: {
  row: SampleRow;
  rows: readonly SampleRow[];
  answer: TaskRequests;
  task: Task;
}) {
  const { sample } = props.row;
  const { edge, method, authority, path, messages } = sample;
  return (
    <aside class="edge-panel request-panel" aria-label="One request">
      <header>
        <h2 class="sample-name">
          {visible(method ?? "method not seen")} <span class="mono">{visible(pathText(sample))}</span>
        </h2>
        <button
          type="button"
          class="icon-button"
          aria-label="Close the request"
          onClick={() => patchRoute({ sample: "" }, "replace")}
        >
          <Icon name="close" />
        </button>
      </header>
      <div class="request-cards">
        <RequestWay {...props} />
        <AgainstMedian {...props} />
        <section class="row-card" aria-label="What is known of it">
          <h3>Request and response</h3>
          <dl class="pairs">
            <Pair title="Status">
              <Status sample={sample} />
            </Pair>
            <Pair title="From, to">
              {edge === null ? (
                visible(edgeName(edge))
              ) : (
                <PageLink to={{ view: "edge", id: props.task.id, edge: edge.id }}>
                  {visible(edgeName(edge))}
                </PageLink>
              )}
            </Pair>
            {edge !== null && <EndContainer title="Client's container" end={edge.client} />}
            {edge !== null && <EndContainer title="Server's container" end={edge.server} />}
            <Pair title="Client's end" help="As it was seen">
              <code>{visible(sample.client)}</code>
            </Pair>
            {sample.source === "access_log" ? (
              <Pair title="Source">{sourceHelp(sample.source)}</Pair>
            ) : (
              <Pair title="Seen by" help="Who moved its first byte">
                {`the ${sample.seen_by}: pid ${sample.pid}${sample.tid === null ? "" : `, thread ${sample.tid}`}`}
              </Pair>
            )}
            <Pair title="Authority">{visible(authority ?? "not seen")}</Pair>
            <Pair title="Path">
              {path === null ? (
                <span class="muted">not kept: the route is shown</span>
              ) : (
                <code>{visible(path)}</code>
              )}
            </Pair>
            <Pair title="Route">
              <code>{visible(sample.route ?? "not seen")}</code>
            </Pair>
            <Pair title="Began">{moment(sample.begin_ns)}</Pair>
            <Pair title="Sizes">
              {sample.request_bytes === null || sample.response_bytes === null
                ? "not known"
                : `request ${bytes(sample.request_bytes)}, response ${bytes(sample.response_bytes)}`}
            </Pair>
            {messages !== null && (
              <Pair title="Messages">{`${count(messages[0])} to the server, ${count(messages[1])} to the client`}</Pair>
            )}
            {sample.source !== "access_log" && (
              <Pair title="Place" help="With HTTP/2 the number of its stream">
                {`Request no. ${count(sample.stream)} on its connection`}
              </Pair>
            )}
            <Pair title="Kept as">
              {`${KEPT[sample.kept_as]}${sample.rule === null ? "" : ` ${sample.rule}`}`}
            </Pair>
          </dl>
        </section>
        <section class="row-card" aria-label="Ids and headers">
          <h3>Ids</h3>
          <dl class="pairs">
            <Trace trace={sample.trace} />
          </dl>
          <h3>Chosen headers</h3>
          {sample.headers.length === 0 ? (
            <p class="muted small">None was seen.</p>
          ) : (
            <dl class="pairs request-headers">
              {sample.headers.map(([name, value], i) => (
                <div key={`${i} ${name}`}>
                  <dt class="mono">{visible(name)}</dt>
                  <dd class="mono">{visible(value)}</dd>
                </div>
              ))}
            </dl>
          )}
        </section>
        {(sample.request_body !== null || sample.response_body !== null) && (
          <section class="row-card" aria-label="Bodies">
            <BodyPart title="Body of the request" body={sample.request_body} />
            <BodyPart title="Body of the response" body={sample.response_body} />
          </section>
        )}
      </div>
    </aside>
  );
}
