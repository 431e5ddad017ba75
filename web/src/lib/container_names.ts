// What a container is called wherever it is shown. Nothing here is safe to look at but what `containerTip`
// gives: names are chosen by the container's owner.

import type { ContainerNames, NamedContainers, PodNames, Workload } from "../api/types";
import { shortId, visible } from "./format";

/** A container as processes have it, or as an end of an edge does, of which the runtime is not known. */
export interface KnownContainer {
  readonly id: string;
  readonly names: ContainerNames | null;
  readonly runtime?: string;
}

/** The container of an end; null where it is in none. */
export function containerOf(id: string | null, named: NamedContainers): KnownContainer | null {
  return id === null ? null : { id, names: named[id] ?? null };
}

/** Its name if known, else the beginning of its id. */
export function containerTitle({ id, names }: KnownContainer): string {
  return names === null ? shortId(id) : names.title;
}

/** The title in two parts, of which the second tells it from its neighbours: it is cut last. */
export function titleParts(container: KnownContainer): readonly [string, string] {
  const { names } = container;
  return names === null || names.pod === null || names.name === null
    ? [containerTitle(container), ""]
    : [podTitle(names.pod), `/${names.name}`];
}

/** Where its pod is named already: the name in the pod. */
export function nameInPod(container: KnownContainer): string {
  return container.names?.name ?? containerTitle(container);
}

/** What fits beside other text: its pod, else as everywhere. */
export function podOrContainer(container: KnownContainer): string {
  return container.names?.pod?.name ?? containerTitle(container);
}

export function podTitle({ namespace, name }: PodNames): string {
  return `${namespace}/${name}`;
}

export function workloadTitle({ kind, name }: Workload): string {
  return `${kind} ${name}`;
}

const SOURCES: Readonly<Record<ContainerNames["named_by"], string>> = {
  kubernetes: "Kubernetes API",
  cri: "container runtime (CRI)",
  docker: "Docker engine",
};

export function sourceTitle(source: ContainerNames["named_by"]): string {
  return SOURCES[source] ?? source;
}

/** Everything that tells it from others, a line each, for a title; safe to look at. */
export function containerTip({ id, names, runtime }: KnownContainer): string {
  const lines = [
    names === null ? null : names.title,
    `container ${id}`,
    runtime === undefined ? null : `runtime ${runtime}`,
    names === null || names.image === null ? null : `image ${names.image}`,
    names === null || names.workload === null ? null : `workload ${workloadTitle(names.workload)}`,
    names === null ? "no name known" : `named by the ${sourceTitle(names.named_by)}`,
  ];
  return lines.flatMap((line) => (line === null ? [] : [visible(line)])).join("\n");
}

/** Names by the id of the container, of all that run. `before` is given back while it still holds. */
export function namesOf(
  all: Iterable<{ readonly container: KnownContainer | null }>,
  before: NamedContainers,
): NamedContainers {
  const found: Record<string, ContainerNames> = {};
  for (const { container } of all)
    if (container !== null && container.names !== null) found[container.id] ??= container.names;
  const ids = Object.keys(found);
  const isSame = ids.length === Object.keys(before).length && ids.every((id) => found[id] === before[id]);
  return isSame ? before : found;
}

/** What a filter looks through beside the id. */
export function nameText(names: ContainerNames | null | undefined): string {
  if (names === null || names === undefined) return "";
  const { title, image, workload } = names;
  return [title, image ?? "", workload === null ? "" : workloadTitle(workload)].join(" ");
}

/** Labels as a selector of all of them: `app=web,tier=front`. */
export function labelList({ labels }: Pick<ContainerNames, "labels">): string[] {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

/** The names of the pod that all of these belong to; null for several pods, or where one has no known name. */
export function commonPod(all: Iterable<ContainerNames | null | undefined>): ContainerNames | null {
  let found: ContainerNames | null = null;
  for (const names of all) {
    if (names === null || names === undefined || names.pod === null) continue;
    if (found !== null && found.pod?.uid !== names.pod.uid) return null;
    found ??= names;
  }
  return found;
}
