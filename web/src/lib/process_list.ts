// Filtering, sorting and grouping of the process list.

import type { Container, Process } from "../api/types";
import { containerTitle, nameText, workloadTitle } from "./container_names";

export type ProcessRow =
  | { readonly kind: "process"; readonly process: Process }
  | {
      readonly kind: "group";
      readonly container: Container | null;
      readonly count: number;
      readonly cpu: number;
      readonly rss: number;
    };

/** The words of a filter, any case. */
export function wordsOf(filter: string): string[] {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

// New readings of CPU and memory make new objects every two seconds, which share the list of arguments with
// the old ones: what is searched does not change with them.
const searchTexts = new WeakMap<readonly string[], string>();

/** What a filter looks through. */
export function searchText(process: Process): string {
  const known = searchTexts.get(process.arguments);
  if (known !== undefined) return known;
  const text = [
    process.pid,
    process.comm,
    process.exe ?? "",
    process.arguments.join(" "),
    process.user ?? process.uid,
    process.container?.id ?? "",
    process.container?.runtime ?? "",
    nameText(process.container?.names),
  ]
    .join(" ")
    .toLowerCase();
  searchTexts.set(process.arguments, text);
  return text;
}

/** Whether a process has every word of the filter somewhere in what its row shows. */
export function filterOf(filter: string): (process: Process) => boolean {
  const words = wordsOf(filter);
  if (words.length === 0) return () => true;
  return (process) => {
    const text = searchText(process);
    return words.every((word) => text.includes(word));
  };
}

type Value = (process: Process) => number | string;

const VALUES: Readonly<Record<string, Value>> = {
  pid: (process) => process.pid,
  name: (process) => process.comm.toLowerCase(),
  cpu: (process) => process.cpu_percent ?? -1,
  rss: (process) => process.rss_bytes,
  threads: (process) => process.threads,
  user: (process) => process.user ?? String(process.uid),
  container: ({ container }) => (container === null ? "\uffff" : containerTitle(container)),
  workload: ({ container }) => {
    const workload = container?.names?.workload ?? null;
    return workload === null ? "\uffff" : workloadTitle(workload);
  },
  exe: (process) => process.exe ?? "\uffff",
};

/** Compares by `sort` (`cpu`, `-cpu`, …), then by pid, so that equal rows never swap places. */
export function compareBy(sort: string): (a: Process, b: Process) => number {
  const descending = sort.startsWith("-");
  const value = VALUES[descending ? sort.slice(1) : sort] ?? VALUES.pid!;
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const left = value(a);
    const right = value(b);
    if (left < right) return -sign;
    if (left > right) return sign;
    return a.pid - b.pid;
  };
}

/** Rows with a heading for each container; the busiest container first, the host's own last. */
export function groupByContainer(sorted: readonly Process[]): ProcessRow[] {
  const groups = new Map<
    string,
    { container: Container | null; members: Process[]; cpu: number; rss: number }
  >();
  for (const process of sorted) {
    const key = process.container?.id ?? "";
    let group = groups.get(key);
    if (group === undefined) {
      group = { container: process.container, members: [], cpu: 0, rss: 0 };
      groups.set(key, group);
    }
    group.members.push(process);
    group.cpu += process.cpu_percent ?? 0;
    group.rss += process.rss_bytes;
  }
  const order = [...groups.values()].sort((a, b) => {
    if ((a.container === null) !== (b.container === null)) return a.container === null ? 1 : -1;
    return b.cpu - a.cpu;
  });
  return order.flatMap(({ container, members, cpu, rss }) => [
    { kind: "group" as const, container, count: members.length, cpu, rss },
    ...members.map((process) => ({ kind: "process" as const, process })),
  ]);
}
