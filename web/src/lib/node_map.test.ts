import { expect, test } from "vitest";
import type { Edge, EdgeEnd, OverviewRow, Process } from "../api/types";
import { edgeEnd, edgeOf, edgeSide, untimed } from "./edges_testing";
import { nodeMapOf, waysThrough } from "./node_map";

const [SHOP, BANK, HOST] = [101, 102, 100];

const inPod = (pid: number, comm: string, network_namespace: number): EdgeEnd =>
  edgeEnd({ pid, comm, network_namespace, address: `10.0.0.${pid}`, port: 8080 });
const outside = (address: string): EdgeEnd => edgeEnd({ address });

function link(client: EdgeEnd, server: EdgeEnd, change: Partial<Edge> = {}): Edge {
  const side = edgeSide({ connections: { count: 1, open: 1 }, write: untimed(3, 100) });
  const id = `${client.address}>${server.address}${server.port ?? ""}`;
  return edgeOf(client, server, { client: side, server: null }, { id, ...change });
}

const row = (network_namespace: number, kind: OverviewRow["kind"], title: string): OverviewRow =>
  ({ network_namespace, kind, title }) as OverviewRow;

const mapOf = (edges: readonly Edge[], rows: readonly OverviewRow[] = []) =>
  nodeMapOf({ edges, processes: new Map<string, Process>(), named: {}, rows, live: true });

test("what goes between two pods is one flow with its ports, and what stays inside is none", () => {
  const [app, sidecar] = [inPod(1, "app", SHOP), inPod(2, "envoy", SHOP)];
  const bank = inPod(3, "bank", BANK);
  const { nodes, flows } = mapOf([
    link(app, sidecar),
    link(sidecar, bank),
    link(app, { ...bank, port: 9090 }),
  ]);
  expect(nodes.map(({ key, kind }) => [key, kind])).toEqual([
    ["!101", "pod"],
    ["!102", "pod"],
  ]);
  expect(flows).toHaveLength(1);
  expect(flows[0]).toMatchObject({ key: "!101>!102", client: "!101", server: "!102", ports: [8080, 9090] });
  expect(flows[0]!.edges).toHaveLength(2);
});

test("the node and its pods are called as on the overview", () => {
  const { nodes } = mapOf(
    [link(inPod(1, "kubelet", HOST), inPod(2, "envoy", SHOP))],
    [row(HOST, "service", "kubelet.service"), row(SHOP, "pod", "default/shop-1")],
  );
  expect(nodes.map(({ key, kind, title }) => [key, kind, title])).toEqual([
    ["!100", "host", "this node"],
    ["!101", "pod", "default/shop-1"],
  ]);
  expect(nodes[1]!.row?.title).toBe("default/shop-1");
});

test("pods that are called the same have their network namespace in their title", () => {
  const { nodes } = mapOf(
    [
      link(inPod(1, "envoy", SHOP), inPod(2, "envoy", BANK)),
      link(inPod(1, "envoy", SHOP), inPod(3, "app", HOST)),
    ],
    [row(SHOP, "pod", "envoy + app"), row(BANK, "pod", "envoy + app")],
  );
  expect(nodes.map(({ title }) => title)).toEqual(["app", "envoy + app (net 101)", "envoy + app (net 102)"]);
});

test("many addresses that only call one pod share a box, one that also calls another does not", () => {
  const [shop, bank] = [inPod(1, "envoy", SHOP), inPod(2, "envoy", BANK)];
  const callers = [1, 2, 3, 4, 5].map((i) => outside(`192.0.2.${i}`));
  const { nodes, flows } = mapOf([
    ...callers.map((caller) => link(caller, shop)),
    link(callers[0]!, bank),
    link(bank, outside("198.51.100.7")),
  ]);
  const titles = nodes.filter(({ kind }) => kind === "outside").map(({ title }) => title);
  expect(titles.sort()).toEqual(["192.0.2.1", "198.51.100.7", "4 addresses"]);
  const shared = nodes.find(({ title }) => title === "4 addresses")!;
  expect(shared.addresses).toEqual(["192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"]);
  expect(flows.find(({ client }) => client === shared.key)!.edges).toHaveLength(4);
});

test("clients of several replicas share a box, and no more is made than can be drawn", () => {
  const replicas = [inPod(1, "envoy", SHOP), inPod(2, "envoy", BANK)];
  const clients = Array.from({ length: 1_000 }, (_, i) => outside(`198.51.${i >> 8}.${i & 255}`));
  const all = mapOf(clients.flatMap((client) => replicas.map((replica) => link(client, replica))));
  expect(all.nodes.map(({ title }) => title).sort()).toContain("1000 addresses");
  expect([all.nodes.length, all.flows.length, all.leftOut]).toEqual([3, 2, 0]);
  const pods = Array.from({ length: 120 }, (_, i) => inPod(i + 1, "envoy", 1_000 + i));
  const edges = pods.flatMap((pod, i) => pods.slice(i + 1, i + 5).map((other) => link(pod, other)));
  const cut = mapOf(edges);
  expect([cut.nodes.length, cut.flows.length]).toEqual([100, 250]);
  expect(cut.leftOut).toBe(20 + edges.length - 250);
});

test("of a measurement that has ended nothing of now is said", () => {
  const rows = [row(HOST, "service", "kubelet.service"), row(SHOP, "pod", "default/shop-1")];
  const edges = [link(inPod(1, "kubelet", HOST), inPod(2, "envoy", SHOP))];
  const { nodes } = nodeMapOf({ edges, processes: new Map(), named: {}, rows, live: false });
  expect(nodes.map(({ kind, row: known }) => [kind, known])).toEqual([
    ["host", null],
    ["pod", null],
  ]);
});

test("ends of this node whose process was not seen make no box", () => {
  const shop = inPod(1, "envoy", SHOP);
  const { nodes, flows } = mapOf([
    link(outside("127.0.0.1"), shop),
    link(shop, outside("::1")),
    link(shop, outside("/run/agent.sock"), { protocol: "unix" }),
  ]);
  expect(nodes.map(({ key }) => key)).toEqual(["!101"]);
  expect(flows).toEqual([]);
});

test("ways go on from what is picked to both sides, and not back", () => {
  const nodes = ["a", "b", "c", "d", "e"].map((key) => ({ key }) as never);
  const flow = (client: string, server: string) => ({ key: `${client}>${server}`, client, server });
  const flows = [flow("a", "b"), flow("b", "c"), flow("d", "c"), flow("c", "e"), flow("c", "a")];
  const of = (picked: string) => [...(waysThrough({ nodes, flows: flows.slice(0, 4) }, picked) ?? [])].sort();
  expect(of("b")).toEqual(["a", "a>b", "b", "b>c", "c", "c>e", "e"]);
  expect(of("b>c")).toEqual(["a", "a>b", "b", "b>c", "c", "c>e", "e"]);
  expect(of("e")).toEqual(["a", "a>b", "b", "b>c", "c", "c>e", "d", "d>c", "e"]);
  expect(waysThrough({ nodes, flows }, "gone")).toBeNull();
  // Around in a circle it ends.
  expect(waysThrough({ nodes, flows }, "b")!.size).toBe(10);
});
