// Which kinds of task are possible on this node, from the states of the probes.

import type { Probe, TaskKind } from "../api/types";

export type KindState = "ok" | "degraded" | "impossible" | "unknown";

export interface KindStatus {
  readonly kind: TaskKind;
  readonly title: string;
  readonly state: KindState;
  /** Empty where there is nothing to say. */
  readonly reason: string;
}

export const KIND_TITLES: Readonly<Record<TaskKind, string>> = {
  on_cpu: "On-CPU",
  off_cpu: "Off-CPU",
  wall: "Wall clock",
  network: "Network",
  requests: "Requests",
};

const works = (probe: Probe): boolean => probe.state === "attached" || probe.state === "available";

function statusOf(kind: TaskKind, probes: readonly Probe[]): Omit<KindStatus, "kind" | "title"> {
  if (kind !== "network" && kind !== "requests") {
    const probe = probes.find(({ name }) => name === kind);
    if (probe === undefined)
      return { state: "unknown", reason: `the agent says nothing of the probe ${kind}` };
    return works(probe)
      ? { state: "ok", reason: "" }
      : { state: "impossible", reason: probe.reason ?? `the probe is ${probe.state}` };
  }
  // The node's own collection is an addition, not what a task needs.
  const needed = probes.filter(({ name }) => name.startsWith("network_") && name !== "network_always");
  if (needed.length === 0) return { state: "unknown", reason: "the agent says nothing of network probes" };
  const missing = needed.filter((probe) => !works(probe));
  if (missing.length === 0) return { state: "ok", reason: "" };
  const first = missing[0];
  const why = `${first?.name}: ${first?.reason ?? first?.state}`;
  if (missing.length === needed.length) return { state: "impossible", reason: why };
  return { state: "degraded", reason: `${missing.length} of ${needed.length} probes are missing; ${why}` };
}

/** All kinds, in the order of the dialog. */
export function kindStatuses(probes: readonly Probe[]): KindStatus[] {
  const kinds: readonly TaskKind[] = ["on_cpu", "off_cpu", "wall", "network", "requests"];
  return kinds.map((kind) => ({ kind, title: KIND_TITLES[kind], ...statusOf(kind, probes) }));
}

/** All kinds in a few words. */
export function kindsText(statuses: readonly KindStatus[]): string {
  const possible = statuses.filter(({ state }) => state === "ok" || state === "degraded").length;
  const degraded = statuses.some(({ state }) => state === "degraded");
  if (possible === statuses.length) return degraded ? "all, one with less" : "all profile types";
  if (statuses.every(({ state }) => state === "unknown")) return "unknown";
  return `${possible} of ${statuses.length} kinds`;
}
