// Connections of the whole node, and the result of a network task.

import type { NetworkEdges, Task, TaskRequests } from "../api/types";
import { count, moment, visible } from "../lib/format";
import { useEdges } from "../state/edges";
import { EdgesView } from "./edges_view";
import { ErrorBox, Loading } from "./states";

/** Until now, when it has not ended. */
function secondsBetween(from: number | null, to: number | null): number {
  return from === null ? 0 : Math.max(0, (to ?? Date.now() * 1e6) - from) / 1e9;
}

/** The always-on collection. */
export function NetworkPage() {
  const { table, error } = useEdges<NetworkEdges>("/network/edges", true);
  if (table === null) {
    return error === null ? (
      <Loading what="the connections of the node" />
    ) : (
      <ErrorBox title="No connections to show" detail={error} />
    );
  }
  const since = table.since_ns === null ? "" : `since ${moment(table.since_ns)}`;
  return (
    <section class="network-page">
      <header class="network-head">
        <h1>Network</h1>
        <span class="muted">connections of the whole node {since}</span>
        {table.restarts > 0 && <span class="muted">{`started again ${count(table.restarts)} times`}</span>}
      </header>
      {table.state === "waiting" && (
        <p class="banner" role="alert">
          <b>Not watching now:</b> {visible(table.reason ?? "")}. It is tried again.
        </p>
      )}
      {error !== null && (
        <p class="banner" role="alert">
          <b>This is the last known state:</b> {error}
        </p>
      )}
      <EdgesView
        table={table}
        empty="No connections were seen yet"
        origin={{ id: "", live: true, seconds: secondsBetween(table.since_ns, null) }}
        first="pods"
        requests={null}
        task={null}
      />
    </section>
  );
}

/** The edges of a task, with the requests that it saw on them. */
export function NetworkResult({ task, requests = null }: { task: Task; requests?: TaskRequests | null }) {
  const running = task.state === "running";
  const { table, error } = useEdges(`/tasks/${encodeURIComponent(task.id)}/edges`, running);
  if (task.state === "queued") return <Loading what="the first connections (the task waits for its turn)" />;
  if (table === null) {
    return error === null ? (
      <Loading what="the connections" />
    ) : (
      <ErrorBox title="No connections to show" detail={error} />
    );
  }
  return (
    <>
      {error !== null && (
        <p class="banner" role="alert">
          <b>This is the last known state:</b> {error}
        </p>
      )}
      <EdgesView
        table={table}
        empty={running ? "No connections were seen yet" : "No connections were seen"}
        origin={{ id: task.id, live: running, seconds: secondsBetween(task.started_at_ns, task.ended_at_ns) }}
        first={requests === null ? "map" : "pods"}
        requests={requests}
        task={requests === null ? task : null}
      />
    </>
  );
}
