import { describe, expect, test } from "vitest";
import type { Process } from "../api/types";
import type { Topology, TopologyNode } from "./topology";
import { podUse } from "./topology_cpu";

const process = (pid: number, namespace: number | null, cpu_percent: number | null) =>
  ({ id: `${pid}-1`, pid, network_namespace: namespace, cpu_percent }) as unknown as Process;
const node = (pid: number, role: TopologyNode["role"]) =>
  ({ key: `p:${pid}-1`, role }) as unknown as TopologyNode;
const topology = (key: string, nodes: readonly TopologyNode[]): Topology =>
  ({ pods: [], pod: { key }, nodes, links: [] }) as unknown as Topology;
const list = (...all: Process[]) => new Map(all.map((one) => [one.id, one]));

describe("the CPU of a pod", () => {
  test("is divided among all its processes, also those without connections", () => {
    const processes = list(process(1, 7, 60), process(2, 7, 20), process(3, 7, 20), process(4, 8, 90));
    const use = podUse(topology("!7", [node(1, "sidecar"), node(2, "app"), node(4, "caller")]), processes);
    expect(use.total).toBe(100);
    expect([...use.shares]).toEqual([
      ["p:1-1", { percent: 60, share: 0.6 }],
      ["p:2-1", { percent: 20, share: 0.2 }],
    ]);
  });

  test("where the namespace is not known, is that of the processes on the map", () => {
    const processes = list(process(1, null, 30), process(2, null, 10), process(3, null, 50));
    const use = podUse(topology("@10.0.0.1", [node(1, "sidecar"), node(2, "app")]), processes);
    expect(use.total).toBe(40);
    expect(use.shares.get("p:1-1")?.share).toBe(0.75);
  });

  test("is unknown without a reading, and has no shares while the pod is idle", () => {
    const nodes = [node(1, "sidecar")];
    expect(podUse(topology("!7", nodes), list(process(1, 7, null)))).toEqual({
      total: null,
      shares: new Map(),
    });
    expect(podUse(topology("!7", nodes), list(process(1, 7, 0.1)))).toEqual({
      total: 0.1,
      shares: new Map(),
    });
    expect(podUse(topology("!7", nodes), list()).total).toBeNull();
  });
});
