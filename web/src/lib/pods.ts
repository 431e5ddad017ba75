// Processes put into pods. A pod is a network namespace; whoever names containers names it.

import type { ContainerNames, Process } from "../api/types";
import { commonPod, podTitle } from "./container_names";
import { compareBy, searchText, wordsOf } from "./process_list";
import { programOf, type Role, type RoleOf, rolesInPod } from "./roles";

export type PodKind = "pod" | "host" | "unknown";

export interface Member extends RoleOf {
  readonly process: Process;
}

/** CPU as cores; null before there is any reading. */
export interface PodCpu {
  readonly total: number | null;
  readonly sidecar: number | null;
  /** Processes that have no reading yet: their time is not in the sums. */
  readonly unread: number;
}

export interface Pod {
  /** The namespace's inode number as text; `host` and `unknown` for the two other groups. */
  readonly key: string;
  readonly kind: PodKind;
  readonly namespace: number | null;
  /** `NAMESPACE/NAME` where its containers are named as those of one pod, else made of its programs' names. */
  readonly title: string;
  /** Of one of its containers; null where the pod has no known name. */
  readonly names: ContainerNames | null;
  readonly members: readonly Member[];
  readonly containers: number;
  readonly cpu: PodCpu;
  readonly rss: number;
}

const HOST_REASON = "it is in the network namespace of the node, not in a pod";
const UNKNOWN_REASON = "its network namespace cannot be read: it has just ended, or the agent may not look";

/** Names in a title; more are counted. */
const TITLE_NAMES = 3;

function sum(processes: readonly Process[]): number | null {
  const known = processes.flatMap(({ cpu_percent }) => (cpu_percent === null ? [] : [cpu_percent]));
  return known.length === 0 ? null : known.reduce((total, share) => total + share, 0) / 100;
}

function cpuOf(members: readonly Member[]): PodCpu {
  const all = members.map(({ process }) => process);
  const sidecars = members.filter(({ role }) => role === "sidecar").map(({ process }) => process);
  return {
    total: sum(all),
    sidecar: sum(sidecars),
    unread: all.filter(({ cpu_percent }) => cpu_percent === null).length,
  };
}

function titleOf(kind: PodKind, members: readonly Member[]): string {
  if (kind === "host") return "Network of the node";
  if (kind === "unknown") return "Network namespace not known";
  const order: readonly Role[] = ["app", "sidecar", "other"];
  const names = order.flatMap((wanted) =>
    members
      .filter(({ role }) => role === wanted)
      .sort((a, b) => a.process.pid - b.process.pid)
      .map(({ process }) => programOf(process)),
  );
  const unique = [...new Set(names)];
  const more = unique.length - TITLE_NAMES;
  return unique.slice(0, TITLE_NAMES).join(" + ") + (more > 0 ? ` + ${more} more` : "");
}

function podOf(kind: PodKind, namespace: number | null, processes: readonly Process[]): Pod {
  const roles = kind === "pod" ? rolesInPod(processes) : null;
  const elsewhere: RoleOf = { role: "other", reason: kind === "host" ? HOST_REASON : UNKNOWN_REASON };
  const members = processes.map((process) => ({ process, ...(roles?.get(process.id) ?? elsewhere) }));
  const names = kind === "pod" ? commonPod(processes.map(({ container }) => container?.names)) : null;
  const pod = names?.pod ?? null;
  return {
    key: kind === "pod" ? String(namespace) : kind,
    kind,
    namespace,
    title: pod === null ? titleOf(kind, members) : podTitle(pod),
    names: pod === null ? null : names,
    members,
    containers: new Set(processes.flatMap(({ container }) => (container === null ? [] : [container.id])))
      .size,
    cpu: cpuOf(members),
    rss: processes.reduce((total, process) => total + process.rss_bytes, 0),
  };
}

/** What Linux 6.18 and newer number the node's own namespace with. */
const INITIAL_NAMESPACE = 0xeffffff9;

/** The node's own: that of the first process, or of the kernel's threads, or the number that it always has. */
function hostNamespace(all: readonly Process[]): number {
  const of = (wanted: (process: Process) => boolean): number | null =>
    all.find((process) => wanted(process) && process.network_namespace !== null)?.network_namespace ?? null;
  return of(({ pid }) => pid === 1) ?? of(({ kernel_thread }) => kernel_thread) ?? INITIAL_NAMESPACE;
}

/** All pods, busiest first; then the node's own namespace, then processes of which it is not known. */
export function podsOf(all: Iterable<Process>): Pod[] {
  const byNamespace = new Map<number | null, Process[]>();
  const processes = [...all];
  const host = hostNamespace(processes);
  for (const process of processes) {
    if (process.kernel_thread) continue;
    const known = byNamespace.get(process.network_namespace);
    if (known === undefined) byNamespace.set(process.network_namespace, [process]);
    else known.push(process);
  }
  const pods = [...byNamespace].map(([namespace, members]) =>
    podOf(namespace === null ? "unknown" : namespace === host ? "host" : "pod", namespace, members),
  );
  const rank: Readonly<Record<PodKind, number>> = { pod: 0, host: 1, unknown: 2 };
  return pods.sort(
    (a, b) =>
      rank[a.kind] - rank[b.kind] ||
      (b.cpu.total ?? -1) - (a.cpu.total ?? -1) ||
      (a.namespace ?? 0) - (b.namespace ?? 0),
  );
}

export type PodRow =
  | { readonly kind: "pod"; readonly pod: Pod }
  | { readonly kind: "member"; readonly pod: Pod; readonly member: Member };

/** Every word must be in the row, in its role, or in the title of its pod. */
function wanted(title: string, member: Member, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = searchText(member.process);
  return words.every((word) => member.role === word || title.includes(word) || text.includes(word));
}

/** Rows of the table: a heading for each pod, then those of its processes that the filter wants. */
export function podRows(pods: readonly Pod[], filter: string, sort: string): PodRow[] {
  const words = wordsOf(filter);
  const compare = compareBy(sort);
  const direction = sort.startsWith("-") ? -1 : 1;
  const order = (a: Member, b: Member): number =>
    sort.endsWith("role") && a.role !== b.role
      ? direction * (a.role < b.role ? -1 : 1)
      : compare(a.process, b.process);
  return pods.flatMap((pod) => {
    const title = `${pod.title} ${pod.key}`.toLowerCase();
    const members = pod.members.filter((member) => wanted(title, member, words)).sort(order);
    if (members.length === 0) return [];
    return [
      { kind: "pod" as const, pod },
      ...members.map((member) => ({ kind: "member" as const, pod, member })),
    ];
  });
}

/** Cores with two digits, as people count them. */
export function cores(value: number | null): string {
  return value === null ? "unknown" : value.toFixed(2);
}

/** The sidecar's share of its pod, as a sentence; has the reason where it is unknown. */
export function sidecarLine({ kind, members, cpu }: Pod): string {
  if (kind !== "pod") return cpu.total === null ? "CPU not known yet" : `${cores(cpu.total)} cores`;
  const unread = cpu.unread === 0 ? "" : `, without ${cpu.unread} not read yet`;
  if (!members.some(({ role }) => role === "sidecar"))
    return cpu.total === null
      ? "no sidecar; CPU not known yet"
      : `no sidecar; ${cores(cpu.total)} cores${unread}`;
  if (cpu.total === null || cpu.sidecar === null) return "sidecar's share unknown: no CPU reading yet";
  const of = `sidecar uses ${cores(cpu.sidecar)} of ${cores(cpu.total)} cores`;
  // Below half a percent of a core the share is noise of the clock's ticks.
  if (cpu.total < 0.005) return `${of}${unread}: the pod is idle`;
  return `${of} (${Math.round((cpu.sidecar / cpu.total) * 100)} %)${unread}`;
}
