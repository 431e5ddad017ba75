// The edges of a result as files for other programs.

import type { Edge, EdgeTable, NamedContainers } from "../api/types";
import { NAME_COLUMNS, nameCells } from "./container_columns";
import { type Cell, csv } from "./csv";
import { edgeRow } from "./edges";

const COLUMNS = [
  "id",
  "protocol",
  "client",
  "client_pid",
  "client_address",
  "client_container",
  "server",
  "server_pid",
  "server_address",
  "server_port",
  "server_container",
  "original_destination",
  "connections",
  "open",
  "sent_bytes",
  "received_bytes",
  "calls",
  "retransmits",
  "drops",
  "resets",
  "errors",
  ...NAME_COLUMNS,
] as const;

function cells(edge: Edge, named: NamedContainers): Record<(typeof COLUMNS)[number], Cell> {
  const row = edgeRow(edge);
  const { client, server } = edge;
  return {
    id: edge.id,
    protocol: edge.protocol,
    client: client.comm ?? client.name,
    client_pid: client.pid,
    client_address: client.address,
    client_container: client.container,
    server: server.comm ?? server.name,
    server_pid: server.pid,
    server_address: server.address,
    server_port: server.port,
    server_container: server.container,
    original_destination: edge.original_destination,
    connections: row.connections,
    open: row.open,
    sent_bytes: row.sent,
    received_bytes: row.received,
    calls: row.calls,
    retransmits: row.retransmits,
    drops: row.drops,
    resets: row.resets,
    errors: row.errors,
    ...nameCells(client, server, named),
  };
}

/** One line for each edge; what was not measured is empty. */
export function edgesCsv(table: EdgeTable): string {
  return csv(
    COLUMNS,
    table.edges.map((edge) => cells(edge, table.containers)),
  );
}
