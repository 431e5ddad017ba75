// The table twin of the flame graph: one row for each function, with self and total samples.

import type { FlameIndex } from "./flame_index";
import type { Label } from "./flamegraph";

export interface FunctionRow {
  readonly name: string;
  readonly module: string;
  readonly kind: number;
  /** One of its labels. */
  readonly label: Label;
  self: number;
  /** Samples with this function anywhere in the stack; recursion counts once. */
  total: number;
}

/** Sums the functions below `root`. */
export function functionTable(index: FlameIndex, root: number): FunctionRow[] {
  const { labels, label, self } = index.graph;
  const rowOfLabel = new Int32Array(labels.length).fill(-1);
  const rowByKey = new Map<string, number>();
  const rows: FunctionRow[] = [];
  /** End of the outermost open occurrence of each row: inside it, further ones add no total. */
  const openUntil: number[] = [];
  for (let i = root; i < index.end[root]!; i += 1) {
    const labelId = label[i]!;
    let row = rowOfLabel[labelId]!;
    if (row === -1) {
      const { name, module, kind } = labels[labelId]!;
      const key = `${kind}\0${name}\0${module}`;
      row = rowByKey.get(key) ?? -1;
      if (row === -1) {
        row = rows.push({ name, module, kind, label: labels[labelId]!, self: 0, total: 0 }) - 1;
        openUntil.push(0);
        rowByKey.set(key, row);
      }
      rowOfLabel[labelId] = row;
    }
    const target = rows[row]!;
    target.self += self[i]!;
    if (i >= openUntil[row]!) {
      target.total += index.total[i]!;
      openUntil[row] = index.end[i]!;
    }
  }
  return rows;
}
