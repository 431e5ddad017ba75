import { describe, expect, test } from "vitest";
import type { Edge, EdgeSide, Process } from "../api/types";
import { containerNames } from "./containers_testing";
import { edgeEnd, edgeOf, edgeSide, untimed } from "./edges_testing";
import { splitEnded, topologyOf } from "./topology";
import {
  drawLinks,
  extentOf,
  layoutOf,
  lineWidth,
  MAP_HEIGHT,
  MAP_WIDTH,
  nextInDirection,
  nodeSize,
  ROOM,
} from "./topology_layout";

const side = (bytes: number): EdgeSide =>
  edgeSide({ connections: { count: 1, open: 1 }, write: untimed(1, bytes) });

type End = readonly [pid: number | null, comm: string | null, address: string, namespace?: number];

function edge(client: End, server: End, port: number, bytes = 100, asked: string | null = null): Edge {
  const end = ([pid, comm, address, namespace]: End, at: number | null) =>
    edgeEnd({ pid, comm, address, network_namespace: namespace ?? null, port: at });
  return edgeOf(
    end(client, null),
    end(server, port),
    { client: side(bytes), server: null },
    { id: `${client.join()}>${server.join()}:${port}`, original_destination: asked },
  );
}

function process(pid: number, namespace: number | null): Process {
  return {
    id: `${pid}-${pid}`,
    pid,
    parent_pid: 1,
    comm: "",
    program: "",
    exe: null,
    arguments: [],
    uid: 0,
    user: null,
    cgroup: "",
    container: null,
    network_namespace: namespace,
    threads: 1,
    rss_bytes: 0,
    cpu_percent: null,
    kernel_thread: false,
  };
}

const list = (...all: Process[]) => new Map(all.map((one) => [one.id, one]));
const NOBODY = list();

/** The two hops of a mesh: app, sidecar, sidecar of another pod, its app. */
const ENVOY: End = [10, "envoy", "10.1.0.4"];
const MESH = [
  edge([11, "shop", "10.1.0.4"], [10, "envoy", "127.0.0.1"], 15001, 900, "10.96.0.1:80"),
  edge(ENVOY, [20, "envoy", "10.1.0.9"], 15006, 800),
  edge([20, "envoy", "127.0.0.6"], [21, "httpbin", "10.1.0.9"], 8080, 700),
  edge([null, null, "192.0.2.7"], ENVOY, 15006, 300),
  edge(ENVOY, [null, null, "10.96.0.10"], 53, 10),
  edge([12, "pilot-agent", "127.0.0.1"], [10, "envoy", "127.0.0.1"], 15000, 5),
  edge(ENVOY, [null, null, "127.0.0.1"], 9000, 5),
];
const PROCESSES = list(process(10, 1), process(11, 1), process(12, 1), process(20, 2), process(21, 2));

const roles = (edges: readonly Edge[], processes = PROCESSES, pod = ""): Record<string, string> =>
  Object.fromEntries(topologyOf(edges, processes, pod).nodes.map(({ key, role }) => [key, role]));

describe("a pod", () => {
  test("has its sidecar in the centre, callers and dependencies beside it", () => {
    expect(roles(MESH)).toEqual({
      "p:10-10": "sidecar",
      "p:11-11": "app",
      "p:12-12": "helper",
      "p:20-20": "dependency",
      "a:192.0.2.7": "caller",
      "a:10.96.0.10": "control",
      "a:127.0.0.1": "unknown",
    });
    const { pod, pods } = topologyOf(MESH, PROCESSES, "");
    expect([pod?.name, pod?.why, pods.length]).toEqual(["shop", "network namespace 1", 2]);
  });

  test("is called as its containers' pod, where they are of one", () => {
    const inside = (pid: number | null, container: string | null) => (end: Edge["client"]) =>
      end.pid === pid ? { ...end, container } : end;
    const edges = MESH.map((one) => {
      const [proxy, shop] = [inside(10, "c10"), inside(11, "c11")];
      return { ...one, client: shop(proxy(one.client)), server: shop(proxy(one.server)) };
    });
    const named = {
      c10: containerNames("shop", "web-0", "istio-proxy"),
      c11: containerNames("shop", "web-0", "shop"),
    };
    const { pod, nodes } = topologyOf(edges, PROCESSES, "!1", named);
    expect(pod?.name).toBe("shop/web-0");
    expect(nodes.find(({ key }) => key === "p:10-10")?.container).toEqual({ id: "c10", names: named.c10 });
    expect(nodes.find(({ key }) => key === "p:12-12")?.container).toBeNull();
    const other = { ...named, c11: containerNames("shop", "web-1", "shop") };
    expect(topologyOf(edges, PROCESSES, "!1", other).pod?.name).toBe("shop");
  });

  test("is the one that is asked for", () => {
    const other = topologyOf(MESH, PROCESSES, "!2");
    expect(other.pod?.name).toBe("httpbin");
    expect(other.nodes.find(({ key }) => key === "p:10-10")?.role).toBe("caller");
  });

  test("is that of the sockets once the processes have ended", () => {
    const edges = [
      edge([1, "a", "10.0.0.1", 7], [2, "b", "10.0.0.1", 7], 80),
      edge([3, "a", "10.0.0.1", 8], [4, "b", "10.0.0.1", 8], 80),
    ];
    const { pods } = topologyOf(edges, NOBODY, "");
    expect(pods.map(({ key, processes }) => [key, processes])).toEqual([
      ["!7", 2],
      ["!8", 2],
    ]);
    // A socket that was opened elsewhere does not move a process that runs.
    expect(topologyOf(edges, list(process(1, 9)), "").pods.map(({ key }) => key)).toContain("!9");
  });

  test("is not guessed from addresses: strangers may have had them before", () => {
    const { pods } = topologyOf(MESH, NOBODY, "");
    expect(pods.map(({ key, name }) => [key, name])).toEqual([["?", "pod not known"]]);
    expect(pods[0]?.why).toMatch(/not known/);
  });

  test("has no dead processes of another pod that had the same namespace inode", () => {
    const closed = (found: Edge): Edge => ({
      ...found,
      metrics: { client: { ...side(100), connections: { count: 1, open: 0 } }, server: null },
    });
    const edges = [
      closed(edge([10, "zipkin-sink", "10.0.0.1", 7], [null, null, "10.0.0.9"], 80, 900)),
      closed(edge([30, "job", "10.0.0.1", 7], [null, null, "10.0.0.9"], 81)),
      edge([21, "mesh-server", "10.0.0.1", 7], [null, null, "10.0.0.9"], 82),
    ];
    // Before the process list is there, open connections tell who lives.
    for (const processes of [new Map(), new Map([["20-20", process(20, 7)]])]) {
      const found = topologyOf(edges, processes, "");
      expect([found.pod?.key, found.pod?.name, found.pod?.processes]).toEqual(["!7", "job, mesh-server", 2]);
      expect(found.nodes.some(({ name }) => name === "zipkin-sink")).toBe(false);
      const { ended } = splitEnded(found.pods, "!7");
      expect(ended.map(({ key, name }) => [key, name])).toEqual([["!7 earlier", "zipkin-sink"]]);
    }
    // Two that were connected there were there at once.
    const both = [
      ...edges,
      closed(edge([10, "zipkin-sink", "10.0.0.1", 7], [21, "mesh-server", "10.0.0.1", 7], 83)),
    ];
    expect(topologyOf(both, new Map(), "").pods.map(({ key }) => key)).toEqual(["!7"]);
    // Nothing says that the one before was another pod when nothing of it lives.
    expect(topologyOf(edges.slice(0, 2), new Map(), "").pods.length).toBe(1);
  });

  test("is one that is active now, and those that have ended stand aside", () => {
    const closed = { ...side(1e9), connections: { count: 1, open: 0 } };
    const before = edge([1, "old", "10.0.0.1", 7], [2, "b", "10.0.0.1", 7], 80);
    const edges = [
      { ...before, metrics: { client: closed, server: null } },
      edge([3, "new", "10.0.0.2", 8], [4, "b", "10.0.0.2", 8], 80, 1),
    ];
    const { pod, pods } = topologyOf(edges, NOBODY, "");
    expect(pod?.key).toBe("!8");
    const { listed, ended } = splitEnded(pods, "!8");
    expect([listed.map(({ key }) => key), ended.map(({ key }) => key)]).toEqual([["!8"], ["!7"]]);
    // The one that is shown is listed, and a process that lives has not ended.
    expect(splitEnded(pods, "!7").ended).toEqual([]);
    expect(topologyOf(edges, list(process(1, 7)), "").pods.some(({ hasEnded }) => hasEnded)).toBe(false);
  });

  test("without a sidecar has the process with most edges in the centre, and does not call it one", () => {
    const edges = [
      edge([1, "a", "10.0.0.1"], [2, "hub", "10.0.0.1"], 80),
      edge([3, "b", "10.0.0.1"], [2, "hub", "10.0.0.1"], 80),
    ];
    const { nodes } = topologyOf(edges, NOBODY, "");
    const center = nodes.find(({ role }) => role === "center");
    expect([center?.name, center?.why]).toEqual(["hub", "in the centre: most edges go through it"]);
    expect(nodes.some(({ role }) => role === "sidecar")).toBe(false);
    expect(layoutOf(topologyOf(edges, NOBODY, ""), null).places.get(center!.key)?.area).toBe("center");
  });

  test("keeps the direction and the port of each link", () => {
    const links = topologyOf(MESH, PROCESSES, "").links;
    expect(links.map(({ key }) => key)).toContain("p:10-10>p:20-20:15006");
    expect(links.map(({ key }) => key)).toContain("p:11-11>p:10-10:15001");
    expect(links.every(({ edges, port }) => edges.every((one) => one.server.port === port))).toBe(true);
  });

  test("nothing is nothing", () => {
    expect(topologyOf([], NOBODY, "")).toEqual({ pods: [], pod: null, nodes: [], links: [] });
  });
});

/** A busy pod: this many callers, the first with most bytes. */
const busy = (callers: number): Edge[] => [
  ...MESH,
  ...Array.from({ length: callers }, (_, i) => edge([null, null, `10.9.0.${i}`], ENVOY, 15006, 1000 - i)),
];

describe("the layout", () => {
  const places = (edges: readonly Edge[]) => layoutOf(topologyOf(edges, PROCESSES, ""), null).places;

  test("does not depend on the order of the edges", () => {
    const edges = busy(9);
    const shuffled = [...edges].sort(
      (a, b) => ((a.id.length * 7 + a.id.charCodeAt(9)) % 5) - ((b.id.length * 7 + b.id.charCodeAt(9)) % 5),
    );
    expect(new Map([...places(shuffled)].sort())).toEqual(new Map([...places(edges)].sort()));
    expect(new Map([...places([...edges].reverse())].sort())).toEqual(new Map([...places(edges)].sort()));
  });

  test("keeps every place when a node comes, when one goes, and when numbers change", () => {
    let layout = layoutOf(topologyOf(busy(5), PROCESSES, ""), null);
    const check = (edges: readonly Edge[], gone: readonly string[] = []): void => {
      const next = layoutOf(topologyOf(edges, PROCESSES, ""), layout);
      for (const [key, place] of layout.places)
        if (!gone.includes(key)) expect(next.places.get(key), key).toEqual(place);
      layout = next;
    };
    check(busy(6));
    // The traffic turns round.
    check(busy(6).map((one, i) => ({ ...one, metrics: { client: side(i * 5000), server: null } })));
    check(
      busy(6).filter(({ client }) => client.address !== "10.9.0.2"),
      ["a:10.9.0.2"],
    );
    // Who comes next takes the place that is free.
    check(busy(7));
    expect(layout.places.get("a:10.9.0.6")).toBeDefined();
  });

  test("collapses what has no room, those with the fewest bytes", () => {
    const layout = layoutOf(topologyOf(busy(20), PROCESSES, ""), null);
    const shown = [...layout.places].filter(([, { area }]) => area === "left");
    expect(shown.length).toBe(ROOM.left);
    // 20 callers, and the one of the mesh, which has less than all of them.
    expect(layout.hidden.get("left")?.length).toBe(21 - ROOM.left);
    expect(layout.hidden.get("left")).toContain("a:192.0.2.7");
    expect(layout.places.has("a:10.9.0.0")).toBe(true);
  });

  test("lets no two nodes stand on each other, and none outside of the map", () => {
    const edges = [
      ...busy(30),
      ...Array.from({ length: 20 }, (_, i) => edge(ENVOY, [null, null, `10.8.0.${i}`], 3306 + i)),
      ...Array.from({ length: 9 }, (_, i) => edge(ENVOY, [null, null, `10.7.0.${i}`], 4317)),
      ...Array.from({ length: 20 }, (_, i) => edge(ENVOY, [100 + i, "worker", "10.1.0.4", 1], 9000 + i)),
    ];
    const layout = layoutOf(topologyOf(edges, list(process(10, 1)), ""), null);
    const all = [...layout.places];
    expect(all.length).toBeGreaterThan(40);
    const { y, height } = extentOf(layout);
    for (const [i, [key, place]] of all.entries()) {
      const own = nodeSize(place.area);
      expect(place.x - own.x >= 0 && place.x + own.x <= MAP_WIDTH, key).toBe(true);
      expect(place.y - own.y >= y && place.y + own.y <= Math.min(MAP_HEIGHT, y + height), key).toBe(true);
      for (const [other, found] of all.slice(i + 1)) {
        const size = nodeSize(found.area);
        const apart =
          Math.abs(place.x - found.x) >= own.x + size.x || Math.abs(place.y - found.y) >= own.y + size.y;
        const far =
          own.round && size.round && Math.hypot(place.x - found.x, place.y - found.y) >= own.x + size.x;
        expect(apart || far, `${key} and ${other}`).toBe(true);
      }
    }
  });
});

describe("lines", () => {
  test("end at the callee, and those to one port meet there", () => {
    const topology = topologyOf(busy(8), PROCESSES, "");
    const layout = layoutOf(topology, null);
    const { curves, ports } = drawLinks(topology.links, layout);
    expect(curves.size).toBe(topology.links.length);
    expect(ports.map(({ port }) => port)).toEqual([15006]);
    const center = layout.places.get("p:10-10")!;
    const tip = (points: string): number[] => points.split(" ")[0]!.split(",").map(Number);
    const [x, y] = tip(ports[0]!.head);
    expect(Math.hypot(x! - center.x, y! - center.y)).toBeLessThan(nodeSize("center").x + 5);
    const out = curves.get("p:10-10>p:20-20:15006")!;
    const peer = layout.places.get("p:20-20")!;
    const [tipX] = tip(out.head);
    expect(Math.abs(tipX! - (peer.x - nodeSize("right").x))).toBeLessThan(8);
  });

  test("both directions between two nodes are told apart", () => {
    const edges = [...MESH, edge(ENVOY, [11, "shop", "10.1.0.4"], 8080)];
    const topology = topologyOf(edges, PROCESSES, "");
    const { curves } = drawLinks(topology.links, layoutOf(topology, null));
    const [there, back] = [curves.get("p:11-11>p:10-10:15001")!, curves.get("p:10-10>p:11-11:8080")!];
    expect(Math.hypot(there.middle.x - back.middle.x, there.middle.y - back.middle.y)).toBeGreaterThan(18);
  });

  test("are wider with more bytes, to a limit", () => {
    expect(lineWidth(0)).toBeLessThan(lineWidth(1e6));
    expect(lineWidth(1e6)).toBeLessThan(lineWidth(1e9));
    expect(lineWidth(1e18)).toBe(5);
  });
});

describe("arrow keys", () => {
  const items = [
    { key: "middle", x: 0, y: 0 },
    { key: "right", x: 100, y: 10 },
    { key: "far", x: 200, y: 0 },
    { key: "below", x: 5, y: 90 },
  ];
  test.each([
    ["middle", "ArrowRight", "right"],
    ["right", "ArrowRight", "far"],
    ["right", "ArrowLeft", "middle"],
    ["middle", "ArrowDown", "below"],
    ["below", "ArrowUp", "middle"],
    ["middle", "ArrowLeft", null],
    ["nobody", "ArrowLeft", "middle"],
  ] as const)("from %s with %s to %s", (from, arrow, expected) => {
    expect(nextInDirection(items, from, arrow)).toBe(expected);
  });
});
