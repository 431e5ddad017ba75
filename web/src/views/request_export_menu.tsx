// Downloads of everything that a task of requests found.

import { useState } from "preact/hooks";
import { type TaskRequests, taskRequests } from "../api/requests";
import { visible } from "../lib/format";
import { operationsCsv } from "../lib/request_export";
import { save } from "../lib/save";
import { Menu } from "./menu";

const FORMATS = [
  {
    suffix: "json",
    title: "JSON",
    what: "everything, as the API gives it",
    type: "application/json",
    write: (answer: TaskRequests) => JSON.stringify(answer, null, 1),
  },
  {
    suffix: "csv",
    title: "CSV",
    what: "a line for each operation, for spreadsheets",
    type: "text/csv",
    write: operationsCsv,
  },
] as const;

export function RequestExportMenu({ id }: { id: string }) {
  const [error, setError] = useState<string | null>(null);
  const run = async ({ suffix, type, write }: (typeof FORMATS)[number]): Promise<void> => {
    setError(null);
    try {
      save(new Blob([write(await taskRequests(id))], { type }), `task-${id}-requests.${suffix}`);
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
              {visible(error)}
            </p>
          )}
        </>
      )}
    </Menu>
  );
}
