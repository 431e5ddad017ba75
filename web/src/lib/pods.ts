// Pods and roles as the agent has them, with the processes of the page.

import type { Pod as ListedPod, PodProcess, PodReading, Process } from "../api/types";
import { compareBy, searchText, wordsOf } from "./process_list";

/** A process with its role, and why it has it. */
export interface Member extends Pick<PodProcess, "role" | "reason"> {
  readonly process: Process;
}

export interface Pod extends Omit<ListedPod, "processes"> {
  /** The namespace's inode number as text; `host` and `unknown` for the two other groups. */
  readonly key: string;
  readonly members: readonly Member[];
  readonly containers: number;
}

function keyOf({ kind, network_namespace }: PodReading): string {
  return kind === "pod" ? String(network_namespace) : kind;
}

/** The pods with those of their processes that still run; without any a pod has gone. */
export function podsOf(listed: readonly ListedPod[], processes: ReadonlyMap<string, Process>): Pod[] {
  return listed.flatMap(({ processes: found, ...pod }) => {
    const members = found.flatMap(({ id, role, reason }) => {
      const process = processes.get(id);
      return process === undefined ? [] : [{ process, role, reason }];
    });
    const containers = new Set(members.flatMap(({ process: { container } }) => container?.id ?? []));
    return members.length === 0 ? [] : [{ ...pod, key: keyOf(pod), members, containers: containers.size }];
  });
}

/** The list with new readings, in their order; what has none stays, at the end. */
export function withReadings(listed: readonly ListedPod[], readings: readonly PodReading[]): ListedPod[] {
  const known = new Map(listed.map((pod) => [keyOf(pod), pod]));
  const read = readings.flatMap((reading) => {
    const pod = known.get(keyOf(reading));
    known.delete(keyOf(reading));
    return pod === undefined ? [] : [{ ...pod, ...reading }];
  });
  return [...read, ...known.values()];
}

/** Whether a process shares a network namespace with others that may have their roles by it. */
export function isInPod(listed: readonly ListedPod[], id: string): boolean {
  return listed.some(
    ({ kind, processes }) => kind === "pod" && processes.some((process) => process.id === id),
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
