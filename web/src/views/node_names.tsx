// The sources of container names, and why one of them fails.

import { api } from "../api/client";
import type { ContainerList, NameSource } from "../api/types";
import { sourceTitle } from "../lib/container_names";
import { count, visible } from "../lib/format";
import { useRefetched } from "../state/refetch";

const REFETCH_MS = 5_000;

const STATE_TEXT: Readonly<Record<NameSource["state"], string>> = {
  off: "off",
  connecting: "connecting",
  connected: "connected",
  waiting: "failed, is tried again",
};
const STATE_CLASS: Readonly<Record<NameSource["state"], string>> = {
  off: "unknown",
  connecting: "degraded",
  connected: "ok",
  waiting: "impossible",
};

function SourceRow({ found }: { found: NameSource }) {
  const { source, state, reason, endpoint, containers } = found;
  return (
    <tr>
      <td class="source-name">{sourceTitle(source)}</td>
      <td>
        <span class={`kind-state kind-${STATE_CLASS[state]}`}>{STATE_TEXT[state]}</span>
      </td>
      <td class="numeric">{count(containers)}</td>
      <td class="mono wrap">{endpoint === null ? <span class="muted">–</span> : visible(endpoint)}</td>
      <td class="wrap">{reason === null ? <span class="muted">–</span> : visible(reason)}</td>
    </tr>
  );
}

/** "2 of 5 containers have a name." */
function Sum({ items }: Pick<ContainerList, "items">) {
  const named = items.filter(({ names }) => names !== null).length;
  return (
    <p class="muted small">
      {items.length === 0
        ? "No container is running on this node."
        : `${count(named)} of ${count(items.length)} running containers have a name. The first source that knows a container is believed.`}
    </p>
  );
}

export function NamesCard() {
  const answer = useRefetched<ContainerList | null>(
    null,
    (signal) => api.containers(signal),
    true,
    REFETCH_MS,
    [],
  );
  return (
    <section class="card wide" aria-label="Names of containers">
      <h2>Names of containers</h2>
      {answer === null ? (
        <p class="muted">Asking…</p>
      ) : answer.name_sources.length === 0 ? (
        <p class="muted">No name source is in use.</p>
      ) : (
        <>
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Source</th>
                <th scope="col">State</th>
                <th scope="col" class="numeric">
                  Containers
                </th>
                <th scope="col">Asked at</th>
                <th scope="col">Why</th>
              </tr>
            </thead>
            <tbody>
              {answer.name_sources.map((found) => (
                <SourceRow key={`${found.source} ${found.endpoint ?? ""}`} found={found} />
              ))}
            </tbody>
          </table>
          <Sum items={answer.items} />
        </>
      )}
    </section>
  );
}
