// Tables as text for spreadsheets.

export type Cell = string | number | null;

/** Text in quotes; what a spreadsheet would take for a formula is told apart by an apostrophe. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function written(value: Cell): string {
  if (value === null) return "";
  return typeof value === "number" ? String(value) : quoted(value);
}

/** A line for each row, after the names of the columns; what is null is empty. */
export function csv<Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, Cell>>[],
): string {
  const lines = rows.map((row) => columns.map((column) => written(row[column])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}
