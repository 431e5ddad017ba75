// Finds what the reader means among everything that has a page.

import type { Container, ContainerNames, Process } from "../api/types";
import { containerTitle, workloadTitle } from "./container_names";
import type { Pod } from "./pods";

export type PaletteKind = "page" | "action" | "pod" | "container" | "process" | "task" | "frames";

export interface PaletteEntry {
  readonly kind: PaletteKind;
  readonly title: string;
  /** What tells it from others of its name. */
  readonly detail: string;
  /** More is better, among entries that match equally well: CPU, or how new a task is. */
  readonly weight: number;
  /** Names the thing for whoever opens it. */
  readonly id: string;
}

const MOST_FOUND = 50;
const KIND_RANK: Readonly<Record<PaletteKind, number>> = {
  page: 0,
  action: 1,
  pod: 2,
  container: 3,
  process: 4,
  task: 5,
  frames: 6,
};

/** How well one word fits: at the start of the title, inside it, or in the detail; 0 does not. */
function likeness(entry: PaletteEntry, word: string): number {
  const title = entry.title.toLowerCase();
  if (title === word) return 4;
  if (title.startsWith(word)) return 3;
  if (title.includes(word)) return 2;
  return entry.detail.toLowerCase().includes(word) || entry.kind === word ? 1 : 0;
}

/** The entries that have every word, best first. Without words: pages and actions, then the rest. */
export function find(entries: readonly PaletteEntry[], query: string): PaletteEntry[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found: { entry: PaletteEntry; score: number }[] = [];
  for (const entry of entries) {
    if (entry.kind === "frames" && words.length === 0) continue;
    // The whole name typed is meant, whatever else has its words.
    let score = words.length > 0 && entry.title.toLowerCase() === words.join(" ") ? 10 : 0;
    let all = true;
    for (const word of words) {
      const points = entry.kind === "frames" ? 0.1 : likeness(entry, word);
      if (points === 0) {
        all = false;
        break;
      }
      score += points;
    }
    if (all) found.push({ entry, score });
  }
  found.sort(
    (a, b) =>
      b.score - a.score ||
      KIND_RANK[a.entry.kind] - KIND_RANK[b.entry.kind] ||
      b.entry.weight - a.entry.weight ||
      (a.entry.title < b.entry.title ? -1 : 1),
  );
  return found.slice(0, MOST_FOUND).map(({ entry }) => entry);
}

function workloadOf(names: Pick<ContainerNames, "workload"> | null): string {
  return names === null || names.workload === null ? "" : workloadTitle(names.workload);
}

/** Pods, processes and containers; the pid is the first word of a process's detail. */
export function processEntries(all: readonly Process[], pods: readonly Pod[]): PaletteEntry[] {
  const list: PaletteEntry[] = [];
  for (const pod of pods) {
    if (pod.kind === "pod")
      list.push({
        kind: "pod",
        id: pod.key,
        title: pod.title,
        detail: [workloadOf(pod), `net ${pod.key}`].filter((part) => part !== "").join(" · "),
        weight: (pod.cpu_percent ?? 0) / 100,
      });
  }
  const containers = new Map<string, { container: Container; weight: number }>();
  for (const process of all) {
    const { container } = process;
    if (container !== null) {
      const weight = (containers.get(container.id)?.weight ?? 0) + (process.cpu_percent ?? 0);
      containers.set(container.id, { container, weight });
    }
    list.push({
      kind: "process",
      id: process.id,
      title: process.comm,
      detail: [process.pid, container?.names?.title ?? "", process.exe ?? process.program]
        .filter((part) => part !== "")
        .join(" · "),
      weight: process.cpu_percent ?? 0,
    });
  }
  for (const [id, { container, weight }] of containers)
    list.push({
      kind: "container",
      id,
      title: containerTitle(container),
      detail: [workloadOf(container.names), id, container.names?.image ?? ""]
        .filter((part) => part !== "")
        .join(" · "),
      weight,
    });
  return list;
}
