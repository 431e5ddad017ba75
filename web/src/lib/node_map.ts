// All pods of the node in one picture: what is drawn, without positions. A flow is everything that goes from
// one pod, or address outside, to another; what stays inside a pod is on the pod's own map.

import type { Edge, EdgeEnd, NamedContainers, OverviewRow, Process } from "../api/types";
import { grouped } from "./grouped";
import {
  distinctNames,
  edgeBytes,
  groupPods,
  isLoopback,
  nodeKey,
  type Pod,
  type TopologyLink,
} from "./topology";

export type MapNodeKind = "pod" | "host" | "outside";

export interface MapNode {
  /** Of a pod the same as on its own map. */
  readonly key: string;
  readonly kind: MapNodeKind;
  /** Untrusted. */
  readonly title: string;
  /** Null outside of this node. */
  readonly pod: Pod | null;
  /** What the overview has of it. */
  readonly row: OverviewRow | null;
  /** Of what is outside; sorted. */
  readonly addresses: readonly string[];
}

/** Its port is null: it has all of them. */
export interface MapFlow extends TopologyLink {
  /** Ports that are asked, in numbers; sorted. */
  readonly ports: readonly number[];
}

export interface NodeMap {
  readonly nodes: readonly MapNode[];
  readonly flows: readonly MapFlow[];
  /** Boxes and flows that there was no room for. */
  readonly leftOut: number;
}

/** Addresses that talk with the same pods in the same directions share a box when they are more. */
const ADDRESSES_APART = 3;
/** What is drawn at most: pods first, then what moved most bytes. */
const MAX_NODES = 100;
const MAX_FLOWS = 250;

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Rows of the overview by their network namespace, and the node's own namespace. */
function rowsByNamespace(rows: readonly OverviewRow[]): {
  readonly pods: ReadonlyMap<number, OverviewRow>;
  readonly host: number | null;
} {
  const pods = new Map<number, OverviewRow>();
  let host: number | null = null;
  for (const row of rows) {
    if (row.network_namespace === null) continue;
    if (row.kind === "pod") pods.set(row.network_namespace, row);
    else host = row.network_namespace;
  }
  return { pods, host };
}

export interface NodeMapInput {
  readonly edges: readonly Edge[];
  readonly processes: ReadonlyMap<string, Process>;
  readonly named: NamedContainers;
  /** Rows of the overview; none where it is off. */
  readonly rows: readonly OverviewRow[];
  /** The edges are those of now, as the rows are. */
  readonly live: boolean;
}

export function nodeMapOf({ edges, processes, named, rows, live }: NodeMapInput): NodeMap {
  const { inside, pods } = groupPods(edges, processes, named);
  const podOfNode = new Map([...inside].flatMap(([pod, keys]) => keys.map((key) => [key, pod] as const)));
  const outside = new Map<string, EdgeEnd>();
  const placeOf = (end: EdgeEnd, protocol: string): string | null => {
    const pod = podOfNode.get(nodeKey(end));
    if (pod !== undefined) return pod;
    // Such an end is on this node, where its process was not seen.
    if (protocol === "unix" || isLoopback(end.address)) return null;
    outside.set(nodeKey(end), end);
    return nodeKey(end);
  };
  const between = new Map<string, { client: string; server: string; edges: Edge[] }>();
  for (const edge of edges) {
    const client = placeOf(edge.client, edge.protocol);
    const server = placeOf(edge.server, edge.protocol);
    if (client === null || server === null || client === server) continue;
    const key = `${client}>${server}`;
    const found = between.get(key) ?? { client, server, edges: [] };
    found.edges.push(edge);
    between.set(key, found);
  }
  const shared = sharedBoxes([...between.values()], outside);
  const joined = new Map<string, { client: string; server: string; edges: Edge[] }>();
  for (const { client, server, edges: its } of between.values()) {
    const ends = { client: shared.get(client) ?? client, server: shared.get(server) ?? server };
    const key = `${ends.client}>${ends.server}`;
    const found = joined.get(key) ?? { ...ends, edges: [] };
    for (const edge of its) found.edges.push(edge);
    joined.set(key, found);
  }
  const flows = [...joined].map(([key, { client, server, edges: its }]): MapFlow => {
    const ports = [...new Set(its.flatMap((edge) => edge.server.port ?? []))].sort((a, b) => a - b);
    const sorted = its.toSorted((a, b) => text(a.id, b.id));
    return { key, client, server, edges: sorted, port: null, ports };
  });
  flows.sort((a, b) => text(a.key, b.key));
  const known = rowsByNamespace(rows);
  const nodes = pods.map((pod): MapNode => {
    const namespace = /^!(\d+)$/.exec(pod.key)?.[1];
    const isHost = namespace !== undefined && Number(namespace) === known.host;
    const row = namespace === undefined || !live ? null : (known.pods.get(Number(namespace)) ?? null);
    return {
      key: pod.key,
      kind: isHost ? "host" : "pod",
      title: isHost ? "this node" : (row?.title ?? pod.name),
      pod,
      row,
      addresses: [],
    };
  });
  const titles = distinctNames(nodes.map(({ key, title }) => [key, title]));
  const distinct = nodes.map((node, at) => ({ ...node, title: titles[at]! }));
  const all = [...distinct, ...outsideNodes(outside, shared)];
  all.sort((a, b) => text(a.key, b.key));
  return bounded(all, flows);
}

interface Between {
  readonly client: string;
  readonly server: string;
}

/** For addresses that share a box its key. */
function sharedBoxes(
  flows: readonly Between[],
  outside: ReadonlyMap<string, EdgeEnd>,
): ReadonlyMap<string, string> {
  const uses = flows.flatMap(({ client, server }) => [
    { address: client, way: `in>${server}` },
    { address: server, way: `out>${client}` },
  ]);
  const ofAddress = grouped(uses, ({ address }) => (outside.has(address) ? address : null));
  const alike = grouped(ofAddress, ([, its]) =>
    its
      .map(({ way }) => way)
      .sort()
      .join(" "),
  );
  return new Map(
    [...alike].flatMap(([ways, its]) =>
      its.length > ADDRESSES_APART ? its.map(([address]) => [address, `s:${ways}`] as const) : [],
    ),
  );
}

/** As much as can be drawn and read. */
function bounded(nodes: readonly MapNode[], flows: readonly MapFlow[]): NodeMap {
  const bytes = new Map<string, number>();
  const moved = new Map(
    flows.map(({ key, edges }) => [key, edges.reduce((sum, edge) => sum + edgeBytes(edge), 0)]),
  );
  for (const { key, client, server } of flows)
    for (const end of [client, server]) bytes.set(end, (bytes.get(end) ?? 0) + moved.get(key)!);
  const largest = nodes.toSorted(
    (a, b) =>
      Number(b.pod !== null) - Number(a.pod !== null) ||
      (bytes.get(b.key) ?? 0) - (bytes.get(a.key) ?? 0) ||
      text(a.key, b.key),
  );
  const kept = new Set(largest.slice(0, MAX_NODES).map(({ key }) => key));
  const between = flows.filter(({ client, server }) => kept.has(client) && kept.has(server));
  const drawn = new Set(
    between
      .toSorted((a, b) => moved.get(b.key)! - moved.get(a.key)! || text(a.key, b.key))
      .slice(0, MAX_FLOWS)
      .map(({ key }) => key),
  );
  return {
    nodes: nodes.filter(({ key }) => kept.has(key)),
    flows: flows.filter(({ key }) => drawn.has(key)),
    leftOut: nodes.length - kept.size + flows.length - drawn.size,
  };
}

function outsideNodes(outside: ReadonlyMap<string, EdgeEnd>, shared: ReadonlyMap<string, string>): MapNode[] {
  const boxes = grouped(outside, ([key]) => shared.get(key) ?? key);
  return [...boxes].map(([key, found]): MapNode => {
    const ends = found.map(([, end]) => end);
    const names = [...new Set(ends.map(({ name, address }) => name ?? address))];
    return {
      key,
      kind: "outside",
      title: names.length === 1 ? names[0]! : `${ends.length} addresses`,
      pod: null,
      row: null,
      addresses: ends.map(({ address }) => address).sort(),
    };
  });
}

/** Everything on the ways to what is picked and on from it; null: nothing is. */
export function waysThrough(
  {
    nodes,
    flows,
  }: { readonly nodes: readonly MapNode[]; readonly flows: readonly (Between & { readonly key: string })[] },
  picked: string,
): ReadonlySet<string> | null {
  const flow = flows.find(({ key }) => key === picked);
  if (flow === undefined && !nodes.some(({ key }) => key === picked)) return null;
  const found = new Set<string>([picked]);
  const walk = (start: string, near: "client" | "server"): void => {
    const far = near === "client" ? "server" : "client";
    const seen = new Set([start]);
    const waiting = [start];
    found.add(start);
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      for (const each of flows) {
        if (each[near] !== at) continue;
        found.add(each.key).add(each[far]);
        if (!seen.has(each[far])) {
          seen.add(each[far]);
          waiting.push(each[far]);
        }
      }
    }
  };
  walk(flow?.client ?? picked, "server");
  walk(flow?.server ?? picked, "client");
  return found;
}
