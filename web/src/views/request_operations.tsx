// Operations of requests as a table that can be sorted and filtered.

import { useMemo } from "preact/hooks";
import type { RequestEdge, RequestOperation } from "../api/types";
import { endName } from "../lib/edges";
import { bytes, count, duration, visible } from "../lib/format";
import { namesSource } from "../lib/request_source";
import { boundsText, meanText, type Percentile, percentileText } from "../lib/request_values";
import { compareOperations, countText, errorsText, firstByte, type OperationRow } from "../lib/requests";
import { patchRoute, route } from "../state/route";
import { ContainerChip } from "./container_name";
import { ProtocolChip, SOURCE_HELP, Source } from "./request_sample";
import { type Column, VirtualTable } from "./virtual_table";

const DEFAULT_SORT = "-count";

/** Requests per second: three digits. */
export function rateText(rate: number): string {
  return `${rate < 10 ? rate.toFixed(2) : rate < 100 ? rate.toFixed(1) : count(rate)}/s`;
}

export function End({ edge, side }: { edge: RequestEdge | null; side: "client" | "server" }) {
  if (edge === null)
    return <span class="muted">{side === "client" ? "other edges (limit reached)" : "–"}</span>;
  const end = edge[side];
  const port = side === "server" && end.port !== null ? `:${end.port}` : "";
  return (
    <span class="edge-end" title={visible(`${endName(end)} ${end.pid ?? ""} ${end.address}${port}`)}>
      <span class={end.comm === null ? "mono" : "name"}>{visible(endName(end))}</span>
      {port !== "" && <span class="muted numeric">{port}</span>}
      <ContainerChip end={end} />
    </span>
  );
}

function NotSeen() {
  return <span class="muted">not seen</span>;
}

/** How many there were, and how sure that is. */
function Count({ operation }: { operation: RequestOperation }) {
  const text = countText(operation);
  return text === null ? count(operation.count) : <span title={text}>≈ {count(operation.count)}</span>;
}

type ErrorClass = keyof RequestOperation["errors_by_class"];

/** How many went wrong in this way; said in words when the pointer rests on it. */
function errorColumn(which: ErrorClass, title: string, help: string): Column<OperationRow> {
  return {
    key: `errors_${which}`,
    title,
    help,
    numeric: true,
    sortable: true,
    cell: ({ operation }) => {
      const number = operation.errors_by_class[which];
      return (
        <span class={number > 0 ? "bad" : "muted"} title={errorsText(operation)}>
          {count(number)}
        </span>
      );
    },
  };
}

function Latency({ operation, which }: { operation: RequestOperation; which: Percentile }) {
  const values = operation.latency_ns;
  const bounds = boundsText(values.bounds[which], duration);
  return (
    <span
      title={
        bounds === null
          ? "no response was seen whole"
          : `${bounds}, of ${count(values.count)} requests, as the ${operation.latency_from} saw them`
      }
    >
      {percentileText(values, which, duration)}
    </span>
  );
}

const HELP = "The upper bound of the bucket that it is in; both bounds when the pointer rests on it";

function latencyColumn(key: string, which: Percentile): Column<OperationRow> {
  return {
    key,
    title: which,
    help: `${which} of the time from the first byte of the request to the last one of the response. ${HELP}`,
    numeric: true,
    sortable: true,
    cell: ({ operation }) => <Latency operation={operation} which={which} />,
  };
}

const COLUMNS: readonly Column<OperationRow>[] = [
  {
    key: "client",
    title: "Client",
    sortable: true,
    cell: ({ operation }) => <End edge={operation.edge} side="client" />,
  },
  {
    key: "server",
    title: "Server",
    sortable: true,
    cell: ({ operation }) => <End edge={operation.edge} side="server" />,
  },
  {
    key: "protocol",
    title: "Protocol",
    sortable: true,
    cell: ({ operation }) => (
      <ProtocolChip protocol={operation.protocol} tls={operation.tls} source={operation.source} />
    ),
  },
  {
    key: "source",
    title: "Source",
    help: SOURCE_HELP,
    sortable: true,
    cell: ({ operation }) => <Source source={operation.source} />,
  },
  {
    key: "method",
    title: "Method",
    sortable: true,
    cell: ({ operation }) =>
      operation.other ? "" : operation.method === null ? <NotSeen /> : visible(operation.method),
  },
  {
    key: "route",
    title: "Route",
    help: "Numbers and ids are folded; statements and commands are without their values",
    sortable: true,
    cell: ({ operation }) =>
      operation.other ? (
        <span class="muted" title="Operations of this edge for which there was no room">
          other operations
        </span>
      ) : operation.route === null ? (
        <NotSeen />
      ) : (
        <span class="mono" title={visible(operation.route)}>
          {visible(operation.route)}
        </span>
      ),
  },
  {
    key: "count",
    title: "Requests",
    help: "Each once, whichever ends saw it",
    numeric: true,
    sortable: true,
    cell: ({ operation }) => <Count operation={operation} />,
  },
  {
    key: "rate",
    title: "Rate",
    help: "Per second, over the whole time",
    numeric: true,
    sortable: true,
    cell: ({ rate }) => (rate === null ? "–" : rateText(rate)),
  },
  latencyColumn("p_fifty", "p50"),
  latencyColumn("p_ninety", "p90"),
  latencyColumn("p_last", "p99"),
  errorColumn("client", "4xx", "The response says that the request was wrong: HTTP 4xx, a syntax error"),
  errorColumn("server", "5xx", "The response says that the server failed: HTTP 5xx"),
  errorColumn("broken", "Aborted", "The connection or stream ended before the response was complete"),
  {
    key: "unknown",
    title: "Incomplete",
    help: "Requests whose end was not seen whole; they are not errors",
    numeric: true,
    sortable: true,
    cell: ({ operation }) => (
      <span class={operation.unknown > 0 ? "warn" : "muted"}>{count(operation.unknown)}</span>
    ),
  },
  {
    key: "first",
    title: "First byte",
    help: `p50 of the time from the first byte of the request to the first one of the response. ${HELP}`,
    numeric: true,
    sortable: true,
    cell: ({ operation }) => {
      const values = firstByte(operation);
      return values === null ? "–" : percentileText(values, "p50", duration);
    },
  },
  {
    key: "sent",
    title: "Sent",
    help: "Mean bytes of a request's body or message, of those whose size is known: (3 of 10) when others are not",
    numeric: true,
    sortable: true,
    cell: ({ operation: { request_bytes, request_sizes_unknown } }) =>
      meanText(request_bytes, request_sizes_unknown, bytes),
  },
  {
    key: "received",
    title: "Received",
    help: "Mean bytes of a response's body or message, of those whose size is known: (3 of 10) when others are not",
    numeric: true,
    sortable: true,
    cell: ({ operation: { response_bytes, response_sizes_unknown } }) =>
      meanText(response_bytes, response_sizes_unknown, bytes),
  },
];

const COLUMNS_WITHOUT_SOURCE = COLUMNS.filter(({ key }) => key !== "source");

export function OperationTable({
  rows,
  all,
  picked,
}: {
  rows: readonly OperationRow[];
  /** Those too that the filter leaves out. */
  all: readonly OperationRow[];
  picked: string;
}) {
  const sort = route.value.sort || DEFAULT_SORT;
  const hasSource = useMemo(() => namesSource(all.map(({ operation }) => operation)), [all]);
  const sorted = useMemo(() => rows.toSorted(compareOperations(sort)), [rows, sort]);
  return (
    <div class="table-box">
      <VirtualTable
        label="Operations"
        class={hasSource ? "operation-table with-source" : "operation-table"}
        rows={sorted}
        columns={hasSource ? COLUMNS : COLUMNS_WITHOUT_SOURCE}
        rowKey={({ key }) => key}
        sort={sort}
        picked={picked}
        onSort={(next) => patchRoute({ sort: next }, "replace")}
        onOpen={({ key }) => patchRoute({ operation: key === picked ? "" : key, sample: "" }, "replace")}
      />
    </div>
  );
}
