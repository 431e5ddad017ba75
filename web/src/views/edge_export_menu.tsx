// Downloads of all edges of a network task.

import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { EdgeTable } from "../api/types";
import { edgesCsv } from "../lib/edge_export";
import { save } from "../lib/save";
import { Menu } from "./menu";

const FORMATS = [
  {
    suffix: "json",
    title: "JSON",
    what: "everything that was counted, as the API gives it",
    type: "application/json",
    write: (table: EdgeTable) => JSON.stringify(table, null, 1),
  },
  {
    suffix: "csv",
    title: "CSV",
    what: "a line for each edge, for spreadsheets",
    type: "text/csv",
    write: edgesCsv,
  },
] as const;

export function EdgeExportMenu({ id }: { id: string }) {
  const [error, setError] = useState<string | null>(null);
  const run = async ({ suffix, type, write }: (typeof FORMATS)[number]): Promise<void> => {
    setError(null);
    try {
      const table = await api.edges<EdgeTable>(`/tasks/${encodeURIComponent(id)}/edges`);
      save(new Blob([write(table)], { type }), `task-${id}-edges.${suffix}`);
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
  };
  return (
    <Menu title="Export" class="menu-right">
      {() => (
        <>
          {FORMATS.map((format) => (
            <button key={format.suffix} type="button" class="menu-item" onClick={() => void run(format)}>
              <b>{format.title}</b>
              <span class="muted">{format.what}</span>
            </button>
          ))}
          {error !== null && (
            <p class="field-error" role="alert">
              {error}
            </p>
          )}
        </>
      )}
    </Menu>
  );
}
