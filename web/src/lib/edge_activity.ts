// Which edges are in use now, and how much moves on them.

import type { Edge, EdgeTable } from "../api/types";
import type { NetProtocol } from "./query_state";

/** Connections of an edge that are open now, by the end that sees more of them. */
export function edgeOpen(edge: Edge): number {
  return Math.max(edge.metrics.client?.connections.open ?? 0, edge.metrics.server?.connections.open ?? 0);
}

/** Bytes in both directions, by the end that saw more; null when neither measured them. */
function moved(edge: Edge): number | null {
  const sides = [edge.metrics.client, edge.metrics.server].flatMap((side) =>
    side === null || (side.write === null && side.read === null)
      ? []
      : [(side.write?.bytes ?? 0) + (side.read?.bytes ?? 0)],
  );
  return sides.length === 0 ? null : Math.max(...sides);
}

/** Connections ever and calls: what grows with every use. */
function uses(edge: Edge): number {
  const sides = [edge.metrics.client, edge.metrics.server].map((side) =>
    side === null ? 0 : side.connections.count + (side.write?.count ?? 0) + (side.read?.count ?? 0),
  );
  return Math.max(...sides);
}

/** Edges of some seconds ago by id; null when counting began within these seconds. */
export type Before = ReadonlyMap<string, Edge> | null;

/** The edges of a table by id; null without one. */
export function edgesById(table: EdgeTable | null): Before {
  return table === null ? null : new Map(table.edges.map((edge) => [edge.id, edge]));
}

/** Open now, or used within the last seconds. */
export function isActiveEdge(edge: Edge, before: Before): boolean {
  if (edgeOpen(edge) > 0 || before === null) return true;
  const earlier = before.get(edge.id);
  return earlier === undefined || uses(edge) > uses(earlier);
}

/** Bytes per second in both directions since `before`; null when they were not measured. */
export function edgeRate(edge: Edge, before: Before, seconds: number): number | null {
  const now = moved(edge);
  if (now === null || seconds <= 0) return null;
  const earlier = before?.get(edge.id);
  return Math.max(0, now - ((earlier && moved(earlier)) ?? 0)) / seconds;
}

export interface EdgeFilter {
  readonly activeOnly: boolean;
  readonly protocol: NetProtocol;
  /** Stays whatever it does: it is being looked at. */
  readonly picked: string;
}

export function shownEdges(edges: readonly Edge[], before: Before, filter: EdgeFilter): readonly Edge[] {
  return edges.filter(
    (edge) =>
      (filter.protocol === "all" || edge.protocol === filter.protocol) &&
      (!filter.activeOnly || edge.id === filter.picked || isActiveEdge(edge, before)),
  );
}
