import { describe, expect, test } from "vitest";
import type { Edge, EdgeEnd } from "../api/types";
import type { Topology, TopologyLink, TopologyNode } from "./topology";
import { CROWDED_LINES, foldLocal } from "./topology_fold";

const node = (key: string, role: TopologyNode["role"]): TopologyNode => ({
  key,
  role,
  name: key,
  pid: 1,
  container: null,
  cpuPercent: null,
  addresses: [],
  ports: [],
  bytes: 0,
  edges: 1,
  why: null,
  purpose: "",
});

const END = { pid: 1, address: "unnamed", port: null } as unknown as EdgeEnd;

function link(client: string, server: string, protocol = "unix"): TopologyLink {
  const edge = { id: `${client}${server}`, protocol, client: END, server: END } as unknown as Edge;
  return { key: `${client}>${server}:`, client, server, edges: [edge], port: null };
}

const WORKERS = Array.from({ length: CROWDED_LINES }, (_, i) => `w${i}`);
const CROWD: Topology = {
  pods: [],
  pod: null,
  nodes: [
    node("envoy", "sidecar"),
    node("shop", "app"),
    node("db", "dependency"),
    ...WORKERS.map((key) => node(key, "app")),
  ],
  links: [
    link("shop", "envoy", "tcp"),
    link("envoy", "db", "unix"),
    ...WORKERS.map((key, i) => link(key, WORKERS[i + 1] ?? "shop")),
  ],
};
const nothing = () => false;

describe("a crowded map", () => {
  test("leaves out Unix edges inside the pod, and the processes that have no others", () => {
    const { topology, links, nodes } = foldLocal(CROWD, nothing, "");
    expect([links, nodes]).toEqual([CROWDED_LINES, CROWDED_LINES]);
    expect(topology.links.map(({ key }) => key)).toEqual(["shop>envoy:", "envoy>db:"]);
    expect(topology.nodes.map(({ key }) => key)).toEqual(["envoy", "shop", "db"]);
  });

  test("keeps what is bad and what is picked", () => {
    const bad = foldLocal(CROWD, ({ key }) => key === "w0>w1:", "");
    expect(bad.topology.links.map(({ key }) => key)).toContain("w0>w1:");
    expect(bad.topology.nodes.map(({ key }) => key)).toContain("w1");
    expect(foldLocal(CROWD, nothing, "w3>w4:").topology.links.map(({ key }) => key)).toContain("w3>w4:");
    const picked = foldLocal(CROWD, nothing, "w3").topology.links.map(({ key }) => key);
    expect(picked.filter((key) => key.includes("w3"))).toEqual(["w2>w3:", "w3>w4:"]);
  });

  test("is left alone with fewer lines, or when all are wanted", () => {
    const few = { ...CROWD, links: CROWD.links.slice(0, CROWDED_LINES) };
    expect(foldLocal(few, nothing, "").topology).toBe(few);
    expect(foldLocal(CROWD, () => true, "")).toEqual({ topology: CROWD, links: 0, nodes: 0 });
  });
});
