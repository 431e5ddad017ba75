// One edge: what both ends measured beside each other, over time, for the whole time or a range of it.

import { useContext, useEffect, useMemo } from "preact/hooks";
import type { Edge, EdgeEnd, EdgeSeries, NetworkEdges, SideSeries, Task, TaskEdges } from "../api/types";
import {
  ROWS,
  type Row,
  type RowKey,
  recentFrom,
  rowsOf,
  seconds,
  span,
  stepText,
  timeBefore,
} from "../lib/edge_series";
import { endName } from "../lib/edges";
import { count, duration, visible } from "../lib/format";
import { tableRemarks } from "../lib/kernel_table";
import { tasksWithRequests } from "../lib/requests";
import { useEdgeSeries } from "../state/edge_series";
import { useEdges } from "../state/edges";
import { tasks } from "../state/live";
import { openView, route } from "../state/route";
import { shownEdge } from "../state/title";
import { ContainerLine, Named, useContainerOf } from "./container_name";
import { LineChart, makeShared, type Shared, SharedCharts } from "./edge_charts";
import { EdgeConnectionList } from "./edge_connections";
import { reasonsOf } from "./edge_panel";
import { EdgeRange } from "./edge_range";
import { type Earlier, perSecond, RowCard } from "./edge_row";
import { PageLink } from "./page_link";
import { ErrorBox, Loading } from "./states";

const MOST_REQUEST_TASKS = 4;
const NOBODY = {};

function EndHead({ title, end, minRtt }: { title: string; end: EdgeEnd | null; minRtt: number | null }) {
  const container = useContainerOf(end);
  if (end === null) return <h2>{title}</h2>;
  const where = [
    end.pid === null ? "process not on this node, or not seen" : `pid ${end.pid}`,
    `${end.address}${end.port === null ? "" : ` port ${end.port}`}`,
    ...(minRtt === null ? [] : [`minimum RTT ${duration(minRtt * 1e3)}`]),
  ];
  return (
    <h2>
      {title} <span class="name">{visible(endName(end))}</span>{" "}
      <span class="muted small">
        {visible(where.join(" · "))}
        {container !== null && (
          <>
            {" · container "}
            <ContainerLine container={container} />
          </>
        )}
      </span>
    </h2>
  );
}

interface Column {
  readonly title: string;
  readonly end: EdgeEnd | null;
  /** The smallest round trip of the whole time, microseconds. */
  readonly minRtt: number | null;
  readonly rows: Readonly<Record<RowKey, Row>>;
}

function columnsOf(
  series: EdgeSeries,
  edge: Edge | null,
  reasons: Readonly<Record<string, string>>,
): Column[] {
  const column = (title: string, side: "client" | "server", found: SideSeries | null): Column[] =>
    found === null
      ? []
      : [
          {
            title,
            end: edge?.[side] ?? null,
            minRtt: edge?.metrics[side]?.min_rtt_us ?? null,
            rows: rowsOf(found, reasons, side),
          },
        ];
  return [...column("Client", "client", series.client), ...column("Server", "server", series.server)];
}

/** Why there is only one column. */
function missingSide(series: EdgeSeries, edge: Edge | null): string | null {
  if (series.client !== null && series.server !== null) return null;
  const [side, end] =
    series.client === null ? (["client", edge?.client] as const) : (["server", edge?.server] as const);
  if (end !== undefined && end !== null && end.pid === null)
    return `Only one column: the ${side} at ${end.address} is not on this node, or its process was not seen.`;
  return `Only one column: the ${side} was not watched by this measurement.`;
}

function Overview({ series, shared }: { series: EdgeSeries; shared: Shared }) {
  const side = series.client ?? series.server;
  const sent = side?.write?.bytes ?? [];
  const received = side?.read?.bytes ?? [];
  const both = series.steps_ms.map((_, i) => (sent[i] ?? 0) + (received[i] ?? 0));
  return (
    <SharedCharts.Provider value={shared}>
      <LineChart
        steps={series.steps_ms}
        numbers={both}
        text={perSecond}
        label="Bytes per second over the whole time"
      />
    </SharedCharts.Provider>
  );
}

function Remarks({ series }: { series: EdgeSeries }) {
  const remarks = [
    series.damaged > 0
      ? `${count(series.damaged)} stored parts are damaged: what they counted is missing here`
      : "",
    series.left_out > 0
      ? `${count(series.left_out)} counts of edges are in no step, because too many edges changed at once; the totals have them`
      : "",
    series.late_steps > 0
      ? `in ${count(series.late_steps)} steps so many edges changed that the counts of some came with a later step`
      : "",
  ].filter((text) => text !== "");
  if (remarks.length === 0) return null;
  return (
    <ul class="banner">
      {remarks.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}

type KnownTable = TaskEdges | NetworkEdges;

const STATE_TEXT: Readonly<Record<KnownTable["state"], string>> = {
  queued: "waits for its turn",
  starting: "starts",
  running: "is running",
  waiting: "is not watching now",
  finished: "has finished",
  failed: "failed",
  cancelled: "was stopped",
};

/** What became of the measurement, and what its kernel side went through. */
function Measurement({ table }: { table: KnownTable }) {
  const { state, reason } = table;
  const trouble = state === "failed" || state === "waiting";
  const remarks = tableRemarks(table.kernel_table);
  const again =
    "restarts" in table && table.restarts > 0 ? `, started again ${count(table.restarts)} times` : "";
  const missing = remarks.some(({ bad }) => bad);
  const said = `The measurement ${STATE_TEXT[state]}${again}${reason === null ? "" : `: ${visible(reason)}`}`;
  const parts = [said, ...(state === "waiting" ? ["it is tried again"] : [])];
  return (
    <p
      class={trouble || missing ? "banner" : "muted small edge-state"}
      role={trouble ? "alert" : undefined}
      data-state
    >
      {`${[...parts, ...remarks.map(({ text }) => visible(text))].join("; ")}.`}
    </p>
  );
}

/** The way to requests on this edge, where a task looks for them. */
function RequestLinks({ edge, task }: { edge: Edge; task: Task | null }) {
  const named = useContext(Named);
  const all = tasksWithRequests(edge, task?.target ?? null, tasks.value?.values() ?? [], named);
  if (all.length === 0) return null;
  // The one that the page was opened from comes first.
  const found = [...all.filter(({ id }) => id === task?.id), ...all.filter(({ id }) => id !== task?.id)];
  return (
    <p class="small edge-requests">
      Requests on this edge, with samples and the time of sidecars:{" "}
      {found.slice(0, MOST_REQUEST_TASKS).map(({ id, state }) => (
        <PageLink key={id} to={{ view: "task", id, edge: edge.id }}>
          {`task ${id}${state === "running" ? " (running)" : ""}`}
        </PageLink>
      ))}
    </p>
  );
}

function title(edge: Edge | null, id: string): string {
  if (edge === null) return `Edge ${id}`;
  const port = edge.server.port === null ? "" : ` :${edge.server.port}`;
  return `${visible(endName(edge.client))} → ${visible(endName(edge.server))}${port}`;
}

/** Which time the numbers are of; `zeroNs` is when counting began, where that is known. */
function coveredText(
  [from, to]: readonly [number, number],
  isRecent: boolean,
  zeroNs: number | null,
): string {
  const last = isRecent ? `the last ${(to - from) / 1000} s: ` : "";
  return `These numbers are of ${last}${stepText([from, to], zeroNs)}`;
}

/** `id`: the task; empty for the always-on collection. */
export function EdgePage({ id, edge: edgeId }: { id: string; edge: string }) {
  const base = id === "" ? "/network" : `/tasks/${encodeURIComponent(id)}`;
  const task = id === "" ? null : (tasks.value?.get(id) ?? null);
  const live = id === "" || task?.state === "running";
  const { from, to, earlier: withEarlier } = route.value;
  const path = `${base}/edges/${encodeURIComponent(edgeId)}`;
  const { table, error: tableError } = useEdges<KnownTable>(`${base}/edges`, live);
  const whole = useEdgeSeries(path, null, null, live);
  // What is always watched has no time of its own: its rates would be averages over days.
  const always = id === "";
  const picked = from !== null || to !== null;
  const recent = always && !picked ? recentFrom(whole.series?.steps_ms ?? []) : null;
  const ranged = picked || recent !== null;
  const cut = useEdgeSeries(ranged ? path : null, from ?? recent, to, live);
  const [, wholeEnd] = span(whole.series?.steps_ms ?? []) ?? [0, 0];
  const before = withEarlier && from !== null ? timeBefore(from, to ?? wholeEnd) : null;
  const past = useEdgeSeries(before === null ? null : path, before?.from ?? null, before?.to ?? null, live);
  // Until the range is there, what was shown before stays.
  const part = ranged && (cut.series !== null || cut.error !== null) ? cut : whole;
  const shared = useMemo(makeShared, []);
  const overview = useMemo(makeShared, []);
  const edge = table?.edges.find((found) => found.id === edgeId) ?? null;
  const name = edge === null ? null : title(edge, edgeId);
  useEffect(() => {
    shownEdge.value = name;
    return () => {
      shownEdge.value = null;
    };
  }, [name]);
  const series = part.series;
  if (series === null) {
    return part.error === null ? (
      <Loading what="the edge over time" />
    ) : (
      <ErrorBox
        title="No edge to show"
        detail={part.error}
        hint="It may have been silent for long and added up with others, or its results were removed."
      />
    );
  }
  const reasons = edge === null || table === null ? series.unavailable : reasonsOf(edge, table.unavailable);
  const columns = columnsOf(series, edge, reasons);
  const missing = missingSide(series, edge);
  const covered = span(series.steps_ms);
  // After a restart of the collection the steps do not count from the moment that is known.
  const collected = table !== null && "since_ns" in table && table.restarts === 0 ? table.since_ns : null;
  const zero = always ? collected : (task?.started_at_ns ?? null);
  const pastColumns = before === null || past.series === null ? [] : columnsOf(past.series, edge, reasons);
  const pastSeconds = seconds(past.series?.steps_ms ?? []);
  const earlierOf = (name: string, kind: RowKey): Earlier | null => {
    const column = pastColumns.find(({ title: other }) => other === name);
    return column === undefined ? null : { row: column.rows[kind], covered: pastSeconds };
  };
  return (
    <section class="edge-page">
      <header class="edge-page-head">
        <nav aria-label="Breadcrumb">
          <button
            type="button"
            class="link"
            onClick={() => openView(id === "" ? { view: "network" } : { view: "task", id })}
          >
            {id === "" ? "Network" : `Task ${id}`}
          </button>
          <span class="muted" aria-hidden="true">
            {" / "}
          </span>
          <span class="muted" aria-current="page">
            Edge
          </span>
        </nav>
        <h1>{title(edge, edgeId)}</h1>
        {edge !== null && (
          <span class="protocol">{`${edge.protocol.toUpperCase()}${edge.tls === true ? " · TLS" : ""}`}</span>
        )}
        {edge !== null && edge.original_destination !== null && (
          <span class="muted">{`original destination ${edge.original_destination}`}</span>
        )}
      </header>
      {(part.error ?? tableError) !== null && (
        <p class="banner" role="alert">
          <b>This is the last known state:</b> {part.error ?? tableError}
        </p>
      )}
      {table !== null && <Measurement table={table} />}
      {edge !== null && (
        <Named.Provider value={table?.containers ?? NOBODY}>
          <RequestLinks edge={edge} task={task} />
        </Named.Provider>
      )}
      <Remarks series={series} />
      {whole.series !== null && (
        <EdgeRange
          whole={span(whole.series.steps_ms)}
          from={from}
          to={to}
          recent={recent}
          always={always}
          zeroNs={zero}
        >
          <Overview series={whole.series} shared={overview} />
        </EdgeRange>
      )}
      <p class="muted small edge-covered">
        {covered === null
          ? "Nothing was counted in this time."
          : `${coveredText(covered, recent !== null, zero)}, in ${count(series.steps_ms.length)} steps; they are exact sums. Drag on a chart for a shorter time.`}
        {missing !== null && ` ${missing}`}
      </p>
      {covered !== null && (
        <SharedCharts.Provider value={shared}>
          <div class={columns.length === 1 ? "edge-columns single" : "edge-columns"}>
            <Named.Provider value={table?.containers ?? NOBODY}>
              {columns.map(({ title: name, end, minRtt }) => (
                <EndHead key={name} title={name} end={end} minRtt={minRtt} />
              ))}
            </Named.Provider>
            {ROWS.flatMap((kind) =>
              columns.map(({ title: name, rows }) => (
                <RowCard
                  key={`${name} ${kind}`}
                  side={name}
                  kind={kind}
                  row={rows[kind]}
                  earlier={earlierOf(name, kind)}
                  steps={series.steps_ms}
                  shared={shared}
                  zeroNs={zero}
                />
              )),
            )}
          </div>
        </SharedCharts.Provider>
      )}
      <EdgeConnectionList path={path} live={live} />
    </section>
  );
}
