// Edges as a map or as a table; one key goes from one to the other.

import { useEffect, useMemo } from "preact/hooks";
import type { EdgeTable, Task, TaskRequests } from "../api/types";
import { edgesById, shownEdges } from "../lib/edge_activity";
import { countedRequests } from "../lib/node_map_requests";
import type { NetView } from "../lib/query_state";
import { type RateWindow, useMapWindow, useRateWindows } from "../state/edge_window";
import { inTextField, sequencePending } from "../state/keys";
import { singleKeys } from "../state/preferences";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";
import { Named } from "./container_name";
import { EdgeQuality } from "./edge_quality";
import { EdgeTableView } from "./edge_table";
import { NodeMapView } from "./node_map_view";
import { TopologyView } from "./topology";

/** Where edges come from, for links to the page of one. */
export interface EdgeOrigin {
  /** Task; empty for the always-on collection. */
  readonly id: string;
  readonly live: boolean;
  /** Since counting began, until now or the end. */
  readonly seconds: number;
}

/** The map that the page begins with, and that comes back after the table. */
function useTwinKey(first: NetView): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "t" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
        return;
      if (!singleKeys.value || inTextField(event.target) || sequencePending()) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      patchRoute({ net: (route.peek().net || first) === "table" ? first : "table" });
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [first]);
}

/** The table without what is not asked for, and how many edges are not active now. */
function useShown(table: EdgeTable, window: RateWindow, live: boolean): { shown: EdgeTable; hidden: number } {
  const { silent, protocol, edge } = route.value;
  return useMemo(() => {
    const before = edgesById(window.before);
    const filter = { activeOnly: live && !silent, protocol, picked: edge };
    const edges = shownEdges(table.edges, before, filter);
    const whole = shownEdges(table.edges, before, { ...filter, activeOnly: false });
    return {
      shown: edges.length === table.edges.length ? table : { ...table, edges },
      hidden: whole.length - edges.length,
    };
  }, [table, window.before, live, silent, protocol, edge]);
}

interface Props {
  table: EdgeTable;
  empty: string;
  origin: EdgeOrigin;
  /** The form that the page is for. */
  first: NetView;
  /** Requests of the edges; null where they are not looked at. */
  requests: TaskRequests | null;
  /** Whose remarks stand behind the quality; null where they stand elsewhere, or there is no task. */
  task: Task | null;
}

export function EdgesView(props: Props) {
  const { table, origin, first } = props;
  useTwinKey(first);
  const { silent, protocol } = route.value;
  const net = route.value.net || first;
  const windows = useRateWindows(table, origin.live, origin.seconds);
  const window = net === "pods" ? windows.map : windows.lines;
  const counted = useMemo(
    () => (props.requests === null ? null : countedRequests(props.requests)),
    [props.requests],
  );
  const { before, text } = useMapWindow(counted, origin.live);
  const requests = counted === null ? null : { counted, before, text };
  const { shown, hidden } = useShown(table, windows.lines, origin.live);
  const twin = (
    <>
      <Choice
        label="How edges are shown"
        value={net}
        choices={[
          ["pods", "All pods"],
          ["map", "One pod"],
          ["table", "Table"],
        ]}
        set={(next) => patchRoute({ net: next })}
      />
      <Choice
        label="Protocol"
        value={protocol}
        choices={[
          ["all", "All"],
          ["tcp", "TCP"],
          ["unix", "Unix"],
        ]}
        set={(next) => patchRoute({ protocol: next }, "replace")}
      />
      {origin.live && (
        <label
          class="check"
          title="Edges with open connections, and those that were used within the last seconds"
        >
          <input
            type="checkbox"
            checked={!silent}
            onChange={(event) => patchRoute({ silent: !event.currentTarget.checked }, "replace")}
          />
          active now
        </label>
      )}
    </>
  );
  const name = props.requests === null ? "Quality" : "Connections";
  const quality = <EdgeQuality table={table} task={props.task} name={name} />;
  const view = { ...props, table: shown, twin, quality, window, hidden };
  return (
    <Named.Provider value={table.containers}>
      {net === "pods" ? (
        <NodeMapView {...view} requests={requests} />
      ) : net === "map" ? (
        <TopologyView {...view} />
      ) : (
        <EdgeTableView {...view} />
      )}
    </Named.Provider>
  );
}
