// Links of the maps with what was counted on them.

import type { EdgeTable } from "../api/types";
import { edgesById } from "./edge_activity";
import { type Counters, countersOf, countersSince } from "./edge_signals";
import { endName } from "./edges";
import type { TopologyLink } from "./topology";

/** A link with its numbers. */
export interface Line extends TopologyLink {
  /** Since counting began. */
  readonly counters: Counters;
  /** In the window of the rates. */
  readonly recent: Counters;
  /** In the window in which trouble is marked. */
  readonly trouble: Counters;
  readonly protocol: string;
  readonly tls: boolean;
  /** Destinations that were asked for, where the connection was redirected. */
  readonly asked: readonly string[];
  readonly clientName: string;
  readonly serverName: string;
}

/** Rates count from the table `before`, trouble from `troubleBefore`; null: from the beginning. */
export function linesOf<T extends TopologyLink>(
  links: readonly T[],
  before: EdgeTable | null,
  troubleBefore: EdgeTable | null,
): (T & Line)[] {
  const since = (table: EdgeTable | null): ((all: Counters, link: TopologyLink) => Counters) => {
    const earlier = edgesById(table);
    if (earlier === null) return (all) => all;
    return (all, { edges }) =>
      countersSince(all, countersOf(edges.flatMap((edge) => earlier.get(edge.id) ?? [])));
  };
  const [recent, marked] = [since(before), since(troubleBefore)];
  return links.map((link) => {
    const all = countersOf(link.edges);
    const first = link.edges[0]!;
    return {
      ...link,
      counters: all,
      recent: recent(all, link),
      trouble: marked(all, link),
      protocol: first.protocol.toUpperCase(),
      tls: link.edges.some((edge) => edge.tls === true),
      asked: [...new Set(link.edges.flatMap((edge) => edge.original_destination ?? []))].sort(),
      clientName: endName(first.client),
      serverName: endName(first.server),
    };
  });
}
