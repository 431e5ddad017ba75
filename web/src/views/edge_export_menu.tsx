// Downloads of all edges of a network task.

import { api } from "../api/client";
import type { EdgeTable } from "../api/types";
import { edgesCsv } from "../lib/edge_export";
import { TableExportMenu } from "./table_export_menu";

export function EdgeExportMenu({ id }: { id: string }) {
  return (
    <TableExportMenu
      name={`task-${id}-edges`}
      fetch={() => api.edges<EdgeTable>(`/tasks/${encodeURIComponent(id)}/edges`)}
      csv={edgesCsv}
      whatJson="everything that was counted, as the API gives it"
      whatCsv="a line for each edge, for spreadsheets"
    />
  );
}
