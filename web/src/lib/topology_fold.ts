// What a crowded map leaves out until it is asked for: quiet talk over Unix sockets inside the pod, and the
// processes that have nothing else.

import type { Topology, TopologyLink } from "./topology";

/** Maps with more lines are crowded. */
export const CROWDED_LINES = 24;

export interface Folded {
  readonly topology: Topology;
  /** Lines and processes that are left out. */
  readonly links: number;
  readonly nodes: number;
}

const INSIDE: ReadonlySet<string> = new Set(["sidecar", "center", "app", "helper"]);

/** `keep` tells lines that stay: bad ones, and what is picked. */
export function foldLocal(topology: Topology, keep: (link: TopologyLink) => boolean, picked: string): Folded {
  if (topology.links.length <= CROWDED_LINES) return { topology, links: 0, nodes: 0 };
  const inside = new Set(topology.nodes.filter(({ role }) => INSIDE.has(role)).map(({ key }) => key));
  const isLocal = (link: TopologyLink): boolean =>
    inside.has(link.client) &&
    inside.has(link.server) &&
    link.edges.every(({ protocol }) => protocol === "unix") &&
    ![link.key, link.client, link.server].includes(picked) &&
    !keep(link);
  const links = topology.links.filter((link) => !isLocal(link));
  if (links.length === topology.links.length) return { topology, links: 0, nodes: 0 };
  const seen = new Set(links.flatMap(({ client, server }) => [client, server]));
  const nodes = topology.nodes.filter(
    ({ key, role }) => seen.has(key) || role === "sidecar" || role === "center",
  );
  return {
    topology: { ...topology, nodes, links },
    links: topology.links.length - links.length,
    nodes: topology.nodes.length - nodes.length,
  };
}
