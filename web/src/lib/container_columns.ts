// Names of the containers of both ends as columns of a file. They stand behind the columns that were there before
// containers had names.

import type { EdgeEnd, NamedContainers } from "../api/types";
import type { Cell } from "./csv";

const OF_END = ["namespace", "pod", "container_name", "workload_kind", "workload", "image"] as const;

type Column = `${"client" | "server"}_${(typeof OF_END)[number]}`;

export const NAME_COLUMNS: readonly Column[] = (["client", "server"] as const).flatMap((side) =>
  OF_END.map((column) => `${side}_${column}` as const),
);

function ofEnd(
  end: EdgeEnd | null | undefined,
  named: NamedContainers,
): Record<(typeof OF_END)[number], Cell> {
  const names = named[end?.container ?? ""];
  return {
    namespace: names?.pod?.namespace ?? null,
    pod: names?.pod?.name ?? null,
    container_name: names?.name ?? null,
    workload_kind: names?.workload?.kind ?? null,
    workload: names?.workload?.name ?? null,
    image: names?.image ?? null,
  };
}

/** What is not named is empty. */
export function nameCells(
  client: EdgeEnd | null | undefined,
  server: EdgeEnd | null | undefined,
  named: NamedContainers,
): Record<Column, Cell> {
  const cells = (side: "client" | "server", end: EdgeEnd | null | undefined) =>
    Object.entries(ofEnd(end, named)).map(([column, cell]) => [`${side}_${column}`, cell]);
  return Object.fromEntries([...cells("client", client), ...cells("server", server)]);
}
