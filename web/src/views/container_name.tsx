// A container by its name, where one is shown.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Container, EdgeEnd, NamedContainers } from "../api/types";
import { containerOf, containerTip, type KnownContainer, titleParts } from "../lib/container_names";
import { shortId, visible } from "../lib/format";

/** Names of the containers in the answer that is shown below it. */
export const Named = createContext<NamedContainers>({});

/** The container of an end with its names; null where it is in none. */
export function useContainerOf(end: EdgeEnd | null): KnownContainer | null {
  return containerOf(end?.container ?? null, useContext(Named));
}

/** Text in a place that may be too small: the first part is cut before the second. */
export function Cut({ parts: [first, second] }: { parts: readonly [string, string] }) {
  return (
    <span class="cut-text">
      <span>{visible(first)}</span>
      {second !== "" && <span>{visible(second)}</span>}
    </span>
  );
}

/** In a row of a table: what does not fit is in the title. */
export function ContainerName({
  container,
  text,
}: {
  container: KnownContainer;
  /** Instead of the whole name. */
  text?: (container: KnownContainer) => string;
}) {
  return (
    <span class={container.names === null ? "mono" : undefined} title={containerTip(container)}>
      <Cut parts={text === undefined ? titleParts(container) : [text(container), ""]} />
    </span>
  );
}

/** Where there is room: the name, and the beginning of the id behind it. */
export function ContainerLine({ container }: { container: KnownContainer }) {
  return (
    <span title={containerTip(container)}>
      {container.names !== null && `${visible(container.names.title)} `}
      <span class={container.names === null ? "mono" : "mono muted"}>{visible(shortId(container.id))}</span>
    </span>
  );
}

/** Small, beside the process that it is of. */
export function ContainerChip({ end }: { end: EdgeEnd }) {
  const container = useContainerOf(end);
  if (container === null) return null;
  return (
    <span class={container.names === null ? "chip-small mono" : "chip-small"} title={containerTip(container)}>
      <Cut parts={titleParts(container)} />
    </span>
  );
}

/** What manages the container; a dash where unknown. */
export function WorkloadName({ container }: { container: Container | null }) {
  const workload = container?.names?.workload ?? null;
  if (workload === null) return <span class="muted">–</span>;
  return (
    <span title={visible(`${workload.kind} ${workload.name}`)}>
      {visible(workload.name)} <span class="muted">{visible(workload.kind)}</span>
    </span>
  );
}
