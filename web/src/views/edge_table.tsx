// Edges as a table that can be sorted and filtered, and the two sides of the one that was picked.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Edge, EdgeEnd, EdgeTable } from "../api/types";
import { edgesById } from "../lib/edge_activity";
import { badness, type Counters, countersOf, countersSince } from "../lib/edge_signals";
import { betweenText, compareEdges, type EdgeRow, edgeRow, endName, matchesEdge } from "../lib/edges";
import { bytes, count, duration, plural, visible } from "../lib/format";
import type { RateWindow } from "../state/edge_window";
import { patchRoute, route } from "../state/route";
import { ContainerChip } from "./container_name";
import { EdgePanel } from "./edge_panel";
import type { EdgeOrigin } from "./edges_view";
import { Empty } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const DEFAULT_SORT = "-sent";

function End({ end }: { end: EdgeEnd }) {
  const known = end.comm !== null;
  const address = `${end.address}${end.port === null ? "" : `:${end.port}`}`;
  return (
    <span class="edge-end" title={visible(`${endName(end)} ${end.pid ?? ""} ${address}`)}>
      <span class={known ? "name" : "mono"}>{visible(endName(end))}</span>
      {end.pid !== null && <span class="muted numeric">{end.pid}</span>}
      <ContainerChip end={end} />
    </span>
  );
}

/** A dash where nothing was measured. */
function or<T>(value: T | null, show: (value: T) => string): string {
  return value === null ? "–" : show(value);
}

interface ShownRow extends EdgeRow {
  /** In the window in which trouble is marked. */
  readonly trouble: Counters;
}

/** A number since counting began, that stands out while there is trouble of its kind. */
function trouble(row: ShownRow, signal: "retransmits" | "drops" | "resets" | "errors") {
  const value = row[signal];
  if (value === null) return "–";
  return <span class={badness(signal, row.trouble) > 0 ? "warn" : "muted"}>{count(value)}</span>;
}

const COLUMNS: readonly Column<ShownRow>[] = [
  { key: "client", title: "Client", sortable: true, cell: (row) => <End end={row.edge.client} /> },
  { key: "server", title: "Server", sortable: true, cell: (row) => <End end={row.edge.server} /> },
  {
    key: "port",
    title: "Port",
    help: "Port of the server",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.edge.server.port, String),
  },
  {
    key: "protocol",
    title: "Protocol",
    sortable: true,
    cell: (row) => (
      <span class="protocol">{`${row.edge.protocol.toUpperCase()}${row.edge.tls === true ? " · TLS" : ""}`}</span>
    ),
  },
  {
    key: "connections",
    title: "Conns",
    help: "Connections",
    numeric: true,
    sortable: true,
    cell: (row) => count(row.connections),
  },
  {
    key: "open",
    title: "Open",
    help: "Connections that are open now; at the end of a result that has ended",
    numeric: true,
    sortable: true,
    cell: (row) => count(row.open),
  },
  {
    key: "rate",
    title: "Rate",
    help: "Bytes per second in both directions: of the last seconds while it is measured, else the mean",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.rate, (rate) => `${bytes(rate)}/s`),
  },
  {
    key: "retransmits",
    title: "Retr",
    help: "Segments that were retransmitted",
    numeric: true,
    sortable: true,
    cell: (row) => trouble(row, "retransmits"),
  },
  {
    key: "drops",
    title: "Drops",
    help: "Packets that the kernel dropped",
    numeric: true,
    sortable: true,
    cell: (row) => trouble(row, "drops"),
  },
  { key: "resets", title: "Resets", numeric: true, sortable: true, cell: (row) => trouble(row, "resets") },
  { key: "errors", title: "Errors", numeric: true, sortable: true, cell: (row) => trouble(row, "errors") },
  {
    key: "sent",
    title: "Sent",
    help: "Bytes from the client to the server",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.sent, bytes),
  },
  {
    key: "received",
    title: "Received",
    help: "Bytes from the server to the client",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.received, bytes),
  },
  {
    key: "calls",
    title: "Calls",
    help: "Reads and writes of the client",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.calls, count),
  },
  {
    key: "rtt",
    title: "Min RTT",
    help: "The smallest round trip that the client's kernel measured: what the network takes. The edge's page has the smoothed ones",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.rtt, (us) => duration(us * 1e3)),
  },
  {
    key: "wait",
    title: "Wait p99",
    help: "How long data waited until the process read it, at both ends: the bucket of the 99th percentile",
    numeric: true,
    sortable: true,
    cell: (row) => or(row.wait, (wait) => betweenText(wait, 1)),
  },
];

/** `empty` is said when there is no edge at all. */
export function EdgeTableView({
  table,
  empty,
  origin,
  twin,
  quality,
  window,
  hidden,
}: {
  table: EdgeTable;
  empty: string;
  origin: EdgeOrigin;
  twin: ComponentChildren;
  quality: ComponentChildren;
  window: RateWindow;
  hidden: number;
}) {
  const { q, sort: wanted, edge: picked } = route.value;
  const sort = wanted || DEFAULT_SORT;
  const before = useMemo(() => edgesById(window.before), [window.before]);
  const all = useMemo(() => {
    const earlier = edgesById(window.trouble.before);
    const since = (edge: Edge): Counters => {
      const now = countersOf([edge]);
      const then = earlier?.get(edge.id);
      return earlier === null ? now : countersSince(now, countersOf(then === undefined ? [] : [then]));
    };
    return table.edges.map(
      (edge): ShownRow => ({ ...edgeRow(edge, before, window.seconds), trouble: since(edge) }),
    );
  }, [table, before, window.seconds, window.trouble.before]);
  const rows = useMemo(
    () => all.filter((row) => matchesEdge(row.edge, q, table.containers)).sort(compareEdges(sort)),
    [all, q, sort, table.containers],
  );
  const open = picked === "" ? undefined : all.find((row) => row.key === picked);
  return (
    <div class="edges">
      <div class="toolbar">
        {twin}
        <input
          type="search"
          data-search
          class="filter"
          placeholder="Filter: process, pid, container, pod, address, port   /"
          aria-label="Filter edges"
          spellcheck={false}
          value={q}
          onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
        />
        <span class="muted push" aria-live="off">
          {plural(rows.length, "edge")}
          {rows.length === all.length ? "" : ` of ${count(all.length)}`}
          {hidden === 0 ? "" : ` · ${count(hidden)} not active now`}
          {table.other === null ? "" : ` · ${count(table.other.edges)} silent ones added up`}
          {` · marks: trouble ${window.trouble.text}`}
        </span>
        {quality}
      </div>
      {rows.length === 0 ? (
        <Empty title={q !== "" ? "No edge matches the filter" : hidden > 0 ? "Nothing is active now" : empty}>
          {q !== "" && (
            <button type="button" onClick={() => patchRoute({ q: "" }, "replace")}>
              Clear the filter
            </button>
          )}
        </Empty>
      ) : (
        <div class="table-box">
          <VirtualTable
            label="Edges"
            class="edge-table"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => row.key}
            sort={sort}
            picked={picked}
            onSort={(next) => patchRoute({ sort: next }, "replace")}
            onOpen={(row) => patchRoute({ edge: row.key === picked ? "" : row.key }, "replace")}
          />
        </div>
      )}
      {open !== undefined && <EdgePanel edge={open.edge} unavailable={table.unavailable} origin={origin} />}
    </div>
  );
}
