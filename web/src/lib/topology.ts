// Pods, their processes and their peers, made of edges: what the map draws, without positions.
// A pod is a network namespace, as the sockets' own or the processes' says. Processes of which neither is
// known are one group of their own: an address tells nothing, because others may have had it before.

import type { Edge, EdgeEnd, NamedContainers, Process } from "../api/types";
import { commonPod, containerOf, type KnownContainer, podTitle } from "./container_names";
import { edgeOpen } from "./edge_activity";
import { grouped } from "./grouped";

/** What a place on the map is for. */
export type Role = "sidecar" | "center" | "app" | "helper" | "caller" | "dependency" | "control" | "unknown";

export interface TopologyNode {
  /** The same for the same process or address in every table. */
  readonly key: string;
  readonly role: Role;
  /** Untrusted. */
  readonly name: string;
  readonly pid: number | null;
  readonly container: KnownContainer | null;
  /** Null while the process list does not have it. */
  readonly cpuPercent: number | null;
  /** Addresses of the node's ends, sorted. */
  readonly addresses: readonly string[];
  /** Ports on which it answers, in numbers; sorted. */
  readonly ports: readonly number[];
  readonly bytes: number;
  readonly edges: number;
  /** Why it has its place, where that is not obvious. */
  readonly why: string | null;
  /** What its port is known for; empty when it is not. */
  readonly purpose: string;
}

/** One or more edges between two nodes, in one direction, to one port. */
export interface TopologyLink {
  readonly key: string;
  readonly client: string;
  readonly server: string;
  readonly edges: readonly Edge[];
  readonly port: number | null;
}

export interface Pod {
  readonly key: string;
  /** Untrusted. */
  readonly name: string;
  /** How the processes were found to be together. */
  readonly why: string;
  readonly processes: number;
  readonly bytes: number;
  readonly hasSidecar: boolean;
  /** Some of its connections are open. */
  readonly isActive: boolean;
  /** None is, and its processes are not on the node any more. */
  readonly hasEnded: boolean;
}

export interface Topology {
  readonly pods: readonly Pod[];
  /** The pod that is drawn; null without any. */
  readonly pod: Pod | null;
  readonly nodes: readonly TopologyNode[];
  readonly links: readonly TopologyLink[];
}

/** Ports on which a pod asks its control plane, name servers and collectors of telemetry. */
const CONTROL_ASKED: ReadonlyMap<number, string> = new Map([
  [53, "DNS"],
  [853, "DNS"],
  [15010, "control plane"],
  [15012, "control plane"],
  [15014, "control plane"],
  [15017, "control plane"],
  [4317, "telemetry"],
  [4318, "telemetry"],
  [8125, "telemetry"],
  [8126, "telemetry"],
  [9411, "tracing"],
  [14250, "tracing"],
  [14268, "tracing"],
  [11800, "tracing"],
  [12800, "tracing"],
]);
/** Ports on which a sidecar is asked for its metrics and health. */
const CONTROL_ANSWERED: ReadonlyMap<number, string> = new Map([
  [15000, "Envoy admin"],
  [9901, "Envoy admin"],
  [15020, "metrics scrape"],
  [15090, "metrics scrape"],
  [15021, "health checks"],
]);

export function isLoopback(address: string): boolean {
  return /^127\./.test(address) || address === "::1" || /^::ffff:127\./.test(address);
}

/** Id of the process as the process list has it; null for an end without one. */
export function processId(end: EdgeEnd): string | null {
  return end.pid === null ? null : `${end.pid}-${end.start_ticks ?? "?"}`;
}

export function edgeBytes(edge: Edge): number {
  const sides = [edge.metrics.client, edge.metrics.server];
  return Math.max(0, ...sides.map((side) => (side?.write?.bytes ?? 0) + (side?.read?.bytes ?? 0)));
}

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Processes whose network namespace is unknown. */
const UNKNOWN_POD = "?";
/** Where a key begins with the inode of a namespace. */
const KNOWN_POD = "!";
/** Where it ends, when the namespace has gone since and its inode was given to another. */
const EARLIER_POD = " earlier";

/**
 * Since when each namespace is there at least, in ticks of its oldest process that still lives: it is listed, or has
 * an open connection. The kernel gives the inode of a namespace to another as soon as it is gone, and what had
 * ended before is of the earlier one, or of a process that was replaced.
 */
function namespaceStarts(
  members: Iterable<Member>,
  processes: ReadonlyMap<string, Process>,
): ReadonlyMap<number, number> {
  const starts = new Map<number, number>();
  const note = (namespace: number | null, ticks: number | null): void => {
    if (namespace === null || ticks === null) return;
    starts.set(namespace, Math.min(ticks, starts.get(namespace) ?? ticks));
  };
  for (const { id, network_namespace } of processes.values())
    note(network_namespace, Number(id.slice(id.indexOf("-") + 1)));
  for (const { end, open } of members) if (open > 0) note(end.network_namespace, end.start_ticks);
  return starts;
}

/** The pod of each process, by process id: the namespace of its sockets, or of the process while it runs. */
function podsOf(
  edges: readonly Edge[],
  processes: ReadonlyMap<string, Process>,
  members: ReadonlyMap<string, Member>,
): Map<string, string> {
  const starts = namespaceStarts(members.values(), processes);
  const seen = new Map<string, Set<number>>();
  for (const end of edges.flatMap((edge) => [edge.client, edge.server])) {
    const id = processId(end);
    if (id === null) continue;
    const namespaces = seen.get(id) ?? new Set();
    if (end.network_namespace !== null) namespaces.add(end.network_namespace);
    seen.set(id, namespaces);
  }
  const places = new Map(
    [...seen].map(([id, namespaces]) => {
      const own = processes.get(id)?.network_namespace ?? null;
      const [first, ...others] = namespaces;
      // Sockets that were opened elsewhere do not move the process.
      const namespace = own ?? (others.length === 0 ? (first ?? null) : null);
      const member = members.get(`p:${id}`);
      const lives = own !== null || (member !== undefined && isActive(member));
      const start = namespace === null ? undefined : starts.get(namespace);
      const ticks = member?.end.start_ticks ?? null;
      const isEarlier = !lives && start !== undefined && ticks !== null && ticks < start;
      return [id, { namespace, isEarlier }];
    }),
  );
  joinConnected(edges, places);
  return new Map(
    [...places].map(([id, { namespace, isEarlier }]) => [
      id,
      namespace === null ? UNKNOWN_POD : `${KNOWN_POD}${namespace}${isEarlier ? EARLIER_POD : ""}`,
    ]),
  );
}

interface Place {
  readonly namespace: number | null;
  isEarlier: boolean;
}

/** Two processes that were connected inside of a namespace were there at once: if one is of the later, both are. */
function joinConnected(edges: readonly Edge[], places: ReadonlyMap<string, Place>): void {
  const placeOf = (end: EdgeEnd): Place | undefined => places.get(processId(end) ?? "");
  for (let isChanged = true; isChanged; ) {
    isChanged = false;
    for (const { client, server } of edges) {
      const [from, to] = [placeOf(client), placeOf(server)];
      if (from === undefined || to === undefined || from.isEarlier === to.isEarlier) continue;
      if (from.namespace === null || from.namespace !== to.namespace) continue;
      [from.isEarlier, to.isEarlier] = [false, false];
      isChanged = true;
    }
  }
}

export interface Member {
  readonly end: EdgeEnd;
  bytes: number;
  edges: number;
  asClient: number;
  asServer: number;
  /** Connections that are open now. */
  open: number;
  readonly addresses: Set<string>;
  readonly ports: Set<number>;
}

/** The pods to choose from: those that have ended stand aside, unless nothing else is there. */
export function splitEnded(pods: readonly Pod[], shown: string): { listed: Pod[]; ended: Pod[] } {
  const ended = pods.filter((pod) => pod.hasEnded && pod.key !== shown);
  if (pods.every(({ hasEnded }) => hasEnded)) return { listed: [...pods], ended: [] };
  return { listed: pods.filter((pod) => !ended.includes(pod)), ended };
}

const isActive = (member: Member): boolean => member.open > 0;
const isProxy = (member: Member): boolean => member.end.program_kind === "proxy";

/** Key of the node that an end belongs to. Ends without a process are one node for each address. */
export function nodeKey(end: EdgeEnd): string {
  const id = processId(end);
  return id === null ? `a:${end.address}` : `p:${id}`;
}

function membersOf(edges: readonly Edge[]): Map<string, Member> {
  const members = new Map<string, Member>();
  for (const edge of edges) {
    const bytes = edgeBytes(edge);
    const ends = [
      [edge.client, false],
      [edge.server, true],
    ] as const;
    for (const [end, isServer] of ends) {
      const key = nodeKey(end);
      const member = members.get(key) ?? {
        end,
        bytes: 0,
        edges: 0,
        asClient: 0,
        asServer: 0,
        open: 0,
        addresses: new Set<string>(),
        ports: new Set<number>(),
      };
      members.set(key, member);
      member.bytes += bytes;
      member.open += edgeOpen(edge);
      member.edges += 1;
      member.addresses.add(end.address);
      if (isServer) member.asServer += 1;
      else member.asClient += 1;
      if (isServer && end.port !== null) member.ports.add(end.port);
    }
  }
  return members;
}

interface Center {
  readonly key: string;
  readonly why: string;
  readonly isSidecar: boolean;
}

/** The process in the middle: the sidecar, or the one that most edges go through. */
function centerOf(keys: readonly string[], members: ReadonlyMap<string, Member>): Center | null {
  const rank = (a: string, b: string): number => members.get(b)!.edges - members.get(a)!.edges || text(a, b);
  const named = keys.filter((key) => isProxy(members.get(key)!)).sort(rank);
  if (named[0] !== undefined) {
    const name = members.get(named[0])!.end.comm;
    const more = named.length > 1 ? `, the one of ${named.length} with most edges` : "";
    return { key: named[0], why: `in the centre: ${name} is a sidecar proxy${more}`, isSidecar: true };
  }
  const busiest = [...keys].sort(rank)[0];
  if (busiest === undefined) return null;
  const why = keys.length === 1 ? "the only process here" : "in the centre: most edges go through it";
  return { key: busiest, why, isSidecar: false };
}

function podName(
  keys: readonly string[],
  members: ReadonlyMap<string, Member>,
  named: NamedContainers,
): string {
  const pod = commonPod(keys.map((key) => named[members.get(key)!.end.container ?? ""]))?.pod ?? null;
  return pod === null ? programNames(keys, members) : podTitle(pod);
}

function programNames(keys: readonly string[], members: ReadonlyMap<string, Member>): string {
  const all = keys
    .map((key) => members.get(key)!)
    .sort((a, b) => b.bytes - a.bytes || text(a.end.comm ?? "", b.end.comm ?? ""));
  const apps = all.filter(({ end }) => end.program_kind === null);
  const comms = [...new Set((apps.length > 0 ? apps : all).map(({ end }) => end.comm ?? end.address))];
  const more = comms.length > 2 ? ` and ${comms.length - 2} more` : "";
  return comms.slice(0, 2).join(", ") + more;
}

/** What an edge of control plane, names or telemetry is for, seen from the pod; null for any other. */
function controlPurpose(edge: Edge, inward: boolean): string | null {
  const port = edge.server.port ?? -1;
  if (inward) return CONTROL_ANSWERED.get(port) ?? null;
  const asked = Number(edge.original_destination?.match(/:(\d+)$/)?.[1] ?? -1);
  return CONTROL_ASKED.get(port) ?? CONTROL_ASKED.get(asked) ?? null;
}

/** Names of pods by their keys: of those that are called the same with the inode of their network namespace. */
export function distinctNames(pods: readonly (readonly [key: string, name: string])[]): string[] {
  const called = grouped(pods, ([, name]) => name);
  return pods.map(([key, name]) =>
    called.get(name)!.length > 1 && key.startsWith(KNOWN_POD)
      ? `${name} (net ${key.slice(KNOWN_POD.length)})`
      : name,
  );
}

/** All processes of some edges in their pods. */
export interface Grouped {
  /** Ends by the key of their node. */
  readonly members: ReadonlyMap<string, Member>;
  /** Keys of the nodes in each pod. */
  readonly inside: ReadonlyMap<string, readonly string[]>;
  /** In no order. */
  readonly pods: readonly Pod[];
}

/** `named`: names of the containers of the ends. */
export function groupPods(
  edges: readonly Edge[],
  processes: ReadonlyMap<string, Process>,
  named: NamedContainers,
): Grouped {
  const members = membersOf(edges);
  const podOfProcess = podsOf(edges, processes, members);
  const inside = new Map<string, string[]>();
  for (const key of [...members.keys()].sort()) {
    const pod = key.startsWith("p:") ? podOfProcess.get(key.slice(2)) : undefined;
    if (pod !== undefined) inside.set(pod, [...(inside.get(pod) ?? []), key]);
  }
  const names = distinctNames([...inside].map(([key, keys]) => [key, podName(keys, members, named)]));
  const pods = [...inside].map(([key, keys], at): Pod => {
    const known = key.startsWith(KNOWN_POD);
    return {
      key,
      name: known ? names[at]! : "pod not known",
      why: key.endsWith(EARLIER_POD)
        ? `network namespace ${key.slice(1, -EARLIER_POD.length)}: they had ended before the oldest process there began`
        : known
          ? `network namespace ${key.slice(1)}`
          : "their network namespace is not known: they had ended",
      isActive: keys.some((member) => isActive(members.get(member)!)),
      hasEnded: keys.every(
        (member) => !isActive(members.get(member)!) && !processes.has(member.slice("p:".length)),
      ),
      processes: keys.length,
      bytes: keys.reduce((sum, member) => sum + members.get(member)!.bytes, 0),
      hasSidecar: keys.some((member) => isProxy(members.get(member)!)),
    };
  });
  return { members, inside, pods };
}

/**
 * The map of one pod: `wanted`, or without it one that is active now, with a sidecar, and most bytes. The
 * order of the edges does not matter.
 */
export function topologyOf(
  edges: readonly Edge[],
  processes: ReadonlyMap<string, Process>,
  wanted: string,
  named: NamedContainers = {},
): Topology {
  const grouped = groupPods(edges, processes, named);
  const { inside } = grouped;
  const pods = [...grouped.pods];
  pods.sort(
    (a, b) => Number(b.hasSidecar) - Number(a.hasSidecar) || text(a.name, b.name) || text(a.key, b.key),
  );
  const byBytes = [...pods].sort(
    (a, b) =>
      Number(b.isActive) - Number(a.isActive) ||
      Number(b.key !== UNKNOWN_POD) - Number(a.key !== UNKNOWN_POD) ||
      Number(b.hasSidecar) - Number(a.hasSidecar) ||
      b.bytes - a.bytes ||
      text(a.key, b.key),
  );
  const pod = pods.find(({ key }) => key === wanted) ?? byBytes[0] ?? null;
  if (pod === null) return { pods, pod, nodes: [], links: [] };

  const own = new Set(inside.get(pod.key) ?? []);
  const shown = edges.filter((edge) => own.has(nodeKey(edge.client)) || own.has(nodeKey(edge.server)));
  const seen = membersOf(shown);
  const center = centerOf(
    [...own].filter((key) => seen.has(key)),
    seen,
  );
  const nodes: TopologyNode[] = [];
  for (const [key, member] of seen) {
    const process = key.startsWith("p:") ? processes.get(key.slice(2)) : undefined;
    const [role, why, purpose = ""] = own.has(key)
      ? insideRole(key, member, center)
      : outsideRole(key, member, shown);
    nodes.push({
      key,
      role,
      why,
      purpose,
      name: member.end.comm ?? member.end.name ?? member.end.address,
      pid: member.end.pid,
      container: containerOf(member.end.container, named),
      cpuPercent: process?.cpu_percent ?? null,
      addresses: [...member.addresses].sort(),
      ports: [...member.ports].sort((a, b) => a - b),
      bytes: member.bytes,
      edges: member.edges,
    });
  }
  nodes.sort((a, b) => text(a.key, b.key));
  return { pods, pod, nodes, links: linksOf(shown) };
}

function insideRole(key: string, member: Member, center: Center | null): [Role, string | null] {
  if (center?.key === key) return [center.isSidecar ? "sidecar" : "center", center.why];
  if (member.end.program_kind === "proxy_agent" || member.end.program_kind === "keeper")
    return ["helper", "at the rim: a helper of the sidecar or the container"];
  return ["app", null];
}

function outsideRole(key: string, member: Member, shown: readonly Edge[]): [Role, string | null, string?] {
  const local = [...member.addresses].some(isLoopback);
  if (member.end.pid === null && local)
    return ["unknown", "it is on this node, and its process was not seen"];
  const its = shown.filter((edge) => nodeKey(edge.client) === key || nodeKey(edge.server) === key);
  const calls = its.some((edge) => nodeKey(edge.client) === key);
  const purposes = its.map((edge) => controlPurpose(edge, nodeKey(edge.client) === key));
  if (purposes.every((purpose) => purpose !== null))
    return [
      "control",
      "at the bottom: only ports that are known for control planes, names and telemetry",
      [...new Set(purposes)].sort().join(", "),
    ];
  const both = calls && its.some((edge) => nodeKey(edge.server) === key);
  return [calls ? "caller" : "dependency", both ? "it calls this pod and is called by it" : null];
}

function linksOf(edges: readonly Edge[]): TopologyLink[] {
  const links = new Map<string, Edge[]>();
  for (const edge of edges) {
    const key = `${nodeKey(edge.client)}>${nodeKey(edge.server)}:${edge.server.port ?? ""}`;
    links.set(key, [...(links.get(key) ?? []), edge]);
  }
  const made = [...links].map(([key, found]): TopologyLink => {
    const sorted = [...found].sort((a, b) => text(a.id, b.id));
    const { client, server } = sorted[0]!;
    return { key, client: nodeKey(client), server: nodeKey(server), edges: sorted, port: server.port };
  });
  return made.sort((a, b) => text(a.key, b.key));
}
