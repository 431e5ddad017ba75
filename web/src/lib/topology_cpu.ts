// The CPU of a pod, by process, for the rings of the map.

import type { Process } from "../api/types";
import type { Topology } from "./topology";

export interface CpuShare {
  /** Of one core, in percent. */
  readonly percent: number;
  /** Of what all processes of the pod use, 0 to 1. */
  readonly share: number;
}

export interface PodUse {
  /** Of one core, in percent; null while nothing is known. */
  readonly total: number | null;
  /** By node. */
  readonly shares: ReadonlyMap<string, CpuShare>;
}

/** Below this (percent of one core) shares are noise of the clock's ticks. */
const LEAST_PERCENT = 0.5;

/** Where the namespace is known all its processes count, else those of the map. */
export function podUse(topology: Topology, processes: ReadonlyMap<string, Process>): PodUse {
  const key = topology.pod?.key ?? "";
  const namespace = key.startsWith("!") ? Number(key.slice(1)) : null;
  const drawn = topology.nodes.flatMap((node) => {
    const process = node.key.startsWith("p:") ? processes.get(node.key.slice(2)) : undefined;
    const outside = node.role === "caller" || node.role === "dependency" || node.role === "control";
    return process === undefined || outside ? [] : [{ key: node.key, process }];
  });
  const all =
    namespace === null
      ? drawn.map(({ process }) => process)
      : [...processes.values()].filter(({ network_namespace }) => network_namespace === namespace);
  const known = all.flatMap(({ cpu_percent }) => (cpu_percent === null ? [] : [cpu_percent]));
  if (known.length === 0) return { total: null, shares: new Map() };
  const total = known.reduce((sum, percent) => sum + percent, 0);
  if (total < LEAST_PERCENT) return { total, shares: new Map() };
  return {
    total,
    shares: new Map(
      drawn.flatMap(({ key: node, process: { cpu_percent } }) =>
        cpu_percent === null ? [] : [[node, { percent: cpu_percent, share: cpu_percent / total }] as const],
      ),
    ),
  };
}
