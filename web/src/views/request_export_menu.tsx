// Downloads of everything that a task of requests found.

import { taskRequests } from "../api/requests";
import { operationsCsv } from "../lib/request_export";
import { TableExportMenu } from "./table_export_menu";

export function RequestExportMenu({ id }: { id: string }) {
  return (
    <TableExportMenu
      name={`task-${id}-requests`}
      fetch={() => taskRequests(id)}
      csv={operationsCsv}
      whatJson="everything, as the API gives it"
      whatCsv="a line for each operation, for spreadsheets"
    />
  );
}
