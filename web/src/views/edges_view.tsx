// Edges as a map or as a table; one key goes from one to the other.

import { useEffect } from "preact/hooks";
import type { EdgeTable } from "../api/types";
import { inTextField, sequencePending } from "../state/keys";
import { singleKeys } from "../state/preferences";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";
import { EdgeTableView } from "./edge_table";
import { TopologyView } from "./topology";

/** Where edges come from, for links to the page of one. */
export interface EdgeOrigin {
  /** Task; empty for the always-on collection. */
  readonly id: string;
  readonly live: boolean;
  /** Since counting began, until now or the end. */
  readonly seconds: number;
}

function useTwinKey(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "t" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
        return;
      if (!singleKeys.value || inTextField(event.target) || sequencePending()) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      patchRoute({ net: route.peek().net === "map" ? "table" : "map" });
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

export function EdgesView(props: { table: EdgeTable; empty: string; origin: EdgeOrigin }) {
  useTwinKey();
  const twin = (
    <Choice
      label="How edges are shown"
      value={route.value.net}
      choices={[
        ["map", "Map"],
        ["table", "Table"],
      ]}
      set={(net) => patchRoute({ net })}
    />
  );
  return route.value.net === "map" ? (
    <TopologyView {...props} twin={twin} />
  ) : (
    <EdgeTableView {...props} twin={twin} />
  );
}
