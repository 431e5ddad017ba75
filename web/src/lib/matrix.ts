// The cells of a diagnosis as a table: one row for each feature, one column for each mechanism.

import type { Matrix, MatrixCell, MatrixFeature } from "../api/types";
import { interval, share } from "./diagnosis";
import { count } from "./format";

export interface Sum {
  readonly share_percent: number;
  readonly samples: number;
  readonly ns: number;
}

export interface MatrixRow {
  readonly feature: MatrixFeature;
  /** One for each column; null where nothing was sampled. */
  readonly cells: readonly (MatrixCell | null)[];
  readonly sum: Sum;
}

export interface MatrixColumn {
  readonly id: string;
  readonly title: string;
  readonly sum: Sum;
}

export interface MatrixTable {
  readonly rows: readonly MatrixRow[];
  readonly columns: readonly MatrixColumn[];
  readonly total: Sum;
  /** Largest share of one cell. */
  readonly most: number;
  /** Titles of what had no sample at all. */
  readonly empty: { readonly features: readonly string[]; readonly mechanisms: readonly string[] };
}

/** What nothing is known about stands below everything else. */
const LAST: readonly string[] = ["unattributed", "no_symbols"];

function sumOf(cells: readonly (MatrixCell | null)[]): Sum {
  let [share_percent, samples, ns] = [0, 0, 0];
  for (const cell of cells) {
    if (cell === null) continue;
    share_percent += cell.share_percent;
    samples += cell.samples;
    ns += cell.ns;
  }
  return { share_percent, samples, ns };
}

/** A cell whose feature or mechanism is not listed gets a row or column of its own: nothing is left out. */
function listed<T extends { readonly id: string }>(
  known: readonly T[],
  used: readonly string[],
  made: (id: string) => T,
): readonly T[] {
  const missing = [...new Set(used)].filter((id) => !known.some((each) => each.id === id));
  return [...known, ...missing.map(made)];
}

export function matrixTable({ features, mechanisms, cells }: Matrix): MatrixTable {
  const byPlace = new Map(cells.map((cell) => [`${cell.feature}\n${cell.mechanism}`, cell]));
  const allFeatures = listed(
    features,
    cells.map(({ feature }) => feature),
    (id) => ({ id, title: id, about: "", settings: false }),
  );
  const allMechanisms = listed(
    mechanisms,
    cells.map(({ mechanism }) => mechanism),
    (id) => ({ id, title: id }),
  );
  const used = allMechanisms.filter(({ id }) => cells.some(({ mechanism }) => mechanism === id));
  const rows = allFeatures
    .map((feature) => {
      const row = used.map(({ id }) => byPlace.get(`${feature.id}\n${id}`) ?? null);
      return { feature, cells: row, sum: sumOf(row) };
    })
    .filter((row) => row.cells.some((cell) => cell !== null))
    .sort(
      (a, b) =>
        LAST.indexOf(a.feature.id) - LAST.indexOf(b.feature.id) || b.sum.share_percent - a.sum.share_percent,
    );
  const shown = new Set(rows.map(({ feature }) => feature.id));
  return {
    rows,
    columns: used.map(({ id, title }, i) => ({
      id,
      title,
      sum: sumOf(rows.map((row) => row.cells[i] ?? null)),
    })),
    total: sumOf(cells),
    most: Math.max(0, ...cells.map(({ share_percent }) => share_percent)),
    empty: {
      features: allFeatures.filter(({ id }) => !shown.has(id)).map(({ title }) => title),
      mechanisms: allMechanisms
        .filter(({ id }) => !used.some((each) => each.id === id))
        .map(({ title }) => title),
    },
  };
}

export const HEAT_LEVELS = 6;

/** How dark a cell is, from 0; by the square root, so that small shares differ visibly from none. */
export function heatLevel(percent: number, most: number): number {
  if (!(percent > 0) || !(most > 0)) return 0;
  return Math.max(1, Math.min(HEAT_LEVELS, Math.ceil(Math.sqrt(percent / most) * HEAT_LEVELS)));
}

/** Rows and columns add to 100 % up to what rounding does; a different sum is reported. */
export function sumsTo100(total: Sum): boolean {
  return Math.abs(total.share_percent - 100) < 0.05;
}

/** A cell with its interval and the rules that put samples there, the largest first. */
export function cellWords(cell: MatrixCell, feature: string, mechanism: string): string {
  const rules = cell.rules
    .toSorted((a, b) => b.samples - a.samples)
    .map(({ rule, samples }) => `${rule} (${count(samples)})`);
  const by = rules.length === 0 ? "" : `; rules: ${rules.join(", ")}`;
  return `${feature} × ${mechanism}: ${share(cell.share_percent)} (${interval(cell.low, cell.high)}), ${count(cell.samples)} samples${by}`;
}

/** The place after a key: arrows, Home and End in the row, with Ctrl the corners. Null for other keys. */
export function stepCell(
  at: { readonly row: number; readonly column: number },
  key: string,
  ctrl: boolean,
  rows: number,
  columns: number,
): { readonly row: number; readonly column: number } | null {
  const inside = (row: number, column: number) => ({
    row: Math.max(0, Math.min(rows - 1, row)),
    column: Math.max(0, Math.min(columns - 1, column)),
  });
  switch (key) {
    case "ArrowUp":
      return inside(at.row - 1, at.column);
    case "ArrowDown":
      return inside(at.row + 1, at.column);
    case "ArrowLeft":
      return inside(at.row, at.column - 1);
    case "ArrowRight":
      return inside(at.row, at.column + 1);
    case "Home":
      return inside(ctrl ? 0 : at.row, 0);
    case "End":
      return inside(ctrl ? rows - 1 : at.row, columns - 1);
    default:
      return null;
  }
}
