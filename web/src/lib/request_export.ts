// The operations of a result as a file for spreadsheets.

import type { RequestOperation, TaskRequests } from "../api/types";
import { NAME_COLUMNS, nameCells } from "./container_columns";
import { type Cell, csv } from "./csv";
import { operationSeconds } from "./requests";

const COLUMNS = [
  "edge",
  "client",
  "client_pid",
  "client_address",
  "server",
  "server_pid",
  "server_address",
  "server_port",
  "protocol",
  "tls",
  "source",
  "method",
  "route",
  "other",
  "count",
  "per_second",
  "errors",
  "errors_client",
  "errors_server",
  "errors_broken",
  "unknown",
  "counted_from",
  "latency_from",
  "latency_count",
  "latency_mean_ns",
  "latency_p50_at_most_ns",
  "latency_p90_at_most_ns",
  "latency_p99_at_most_ns",
  "latency_max_ns",
  "first_byte_p50_at_most_ns",
  "request_mean_bytes",
  "response_mean_bytes",
  "client_container",
  "server_container",
  ...NAME_COLUMNS,
] as const;

function cells(
  operation: RequestOperation,
  { containers, ...answer }: TaskRequests,
): Record<(typeof COLUMNS)[number], Cell> {
  const seconds = operationSeconds(answer, operation);
  const { edge, latency_ns: latency, errors_by_class: errors } = operation;
  const own = operation[operation.latency_from];
  return {
    edge: edge?.id ?? null,
    client: edge?.client.comm ?? edge?.client.name ?? null,
    client_pid: edge?.client.pid ?? null,
    client_address: edge?.client.address ?? null,
    server: edge?.server.comm ?? edge?.server.name ?? null,
    server_pid: edge?.server.pid ?? null,
    server_address: edge?.server.address ?? null,
    server_port: edge?.server.port ?? null,
    protocol: operation.protocol,
    tls: String(operation.tls),
    source: operation.source,
    method: operation.method,
    route: operation.route,
    other: String(operation.other),
    count: operation.count,
    per_second: seconds === null ? null : Number((operation.count / seconds).toFixed(3)),
    errors: operation.errors,
    errors_client: errors.client,
    errors_server: errors.server,
    errors_broken: errors.broken,
    unknown: operation.unknown,
    counted_from: operation.counted_from,
    latency_from: operation.latency_from,
    latency_count: latency.count,
    latency_mean_ns: latency.mean,
    latency_p50_at_most_ns: latency.p50,
    latency_p90_at_most_ns: latency.p90,
    latency_p99_at_most_ns: latency.p99,
    latency_max_ns: latency.max,
    first_byte_p50_at_most_ns: own?.first_byte_ns.p50 ?? null,
    request_mean_bytes: operation.request_bytes.mean,
    response_mean_bytes: operation.response_bytes.mean,
    client_container: edge?.client.container ?? null,
    server_container: edge?.server.container ?? null,
    ...nameCells(edge?.client, edge?.server, containers),
  };
}

/** One line for each operation; what is not known is empty. */
export function operationsCsv(answer: TaskRequests): string {
  return csv(
    COLUMNS,
    answer.operations.map((operation) => cells(operation, answer)),
  );
}
