// Downloads of a whole table, as the API gives it and for spreadsheets.

import { useState } from "preact/hooks";
import { visible } from "../lib/format";
import { save } from "../lib/save";
import { Menu } from "./menu";

interface Props<T> {
  /** Beginning of the files' names. */
  readonly name: string;
  readonly fetch: () => Promise<T>;
  readonly csv: (table: T) => string;
  /** What is in the JSON, and in the CSV. */
  readonly whatJson: string;
  readonly whatCsv: string;
}

export function TableExportMenu<T>({ name, fetch, csv, whatJson, whatCsv }: Props<T>) {
  const [error, setError] = useState<string | null>(null);
  const formats = [
    {
      suffix: "json",
      title: "JSON",
      what: whatJson,
      type: "application/json",
      write: (table: T) => JSON.stringify(table, null, 1),
    },
    { suffix: "csv", title: "CSV", what: whatCsv, type: "text/csv", write: csv },
  ];
  const run = async ({ suffix, type, write }: (typeof formats)[number]): Promise<void> => {
    setError(null);
    try {
      save(new Blob([write(await fetch())], { type }), `${name}.${suffix}`);
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
  };
  return (
    <Menu title="Export" class="menu-right">
      {() => (
        <>
          {formats.map((format) => (
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
