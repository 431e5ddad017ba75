// Draws a grid of cells whose darkness tells how much there is, and the picked part of it. The cells
// are drawn once into a picture of their own; what moves is drawn over it.

import { heatLevel, LEVELS } from "../lib/heat";
import { oklch } from "./oklch";

export interface HeatColours {
  /** Nothing measured, nothing there, and the levels from little to much. */
  readonly missing: string;
  readonly none: string;
  readonly levels: readonly string[];
  readonly shade: string;
  readonly edge: string;
  readonly cursor: string;
}

function ramp(from: number, to: number): string[] {
  return Array.from({ length: LEVELS }, (_, level) => {
    const part = level / (LEVELS - 1);
    return oklch({ l: from + (to - from) * part, c: 0.05 + 0.1 * part, h: 262 - 12 * part });
  });
}

export const LIGHT_HEAT: HeatColours = {
  missing: "#e3e6ec",
  none: "#f8f9fb",
  levels: ramp(0.88, 0.36),
  shade: "rgba(245, 246, 248, 0.72)",
  edge: "#3f51c4",
  cursor: "#14161a",
};

export const DARK_HEAT: HeatColours = {
  missing: "#24272e",
  none: "#14161a",
  levels: ramp(0.34, 0.9),
  shade: "rgba(17, 19, 23, 0.72)",
  edge: "#9aa8ff",
  cursor: "#ffffff",
};

export interface HeatCells {
  readonly columns: number;
  readonly rows: number;
  /** Column by column from the top; -1 where nothing was measured. */
  readonly cells: Float64Array;
  readonly top: number;
}

/** The rows of a column that are picked, `[from, to)`; null for none. */
export type PickedRows = (column: number) => readonly [number, number] | null;

export interface HeatOverlay {
  /** Null: nothing is picked, everything is shown. */
  readonly picked: PickedRows | null;
  /** Rows that are left out of what is shown elsewhere. */
  readonly dimmed: (row: number) => boolean;
  readonly cursor: { readonly column: number; readonly row: number } | null;
}

/** A picture of its own with nothing but its ground, in device pixels; without a context where the browser gives none. */
export function ground(
  width: number,
  height: number,
  colour: string,
): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D | null } {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, width);
  canvas.height = Math.max(1, height);
  const context = canvas.getContext("2d", { alpha: false });
  if (context !== null) {
    context.fillStyle = colour;
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  return { canvas, context };
}

/** Draws the cells alone, in device pixels. */
export function drawCells(
  heat: HeatCells,
  width: number,
  height: number,
  colours: HeatColours,
): HTMLCanvasElement {
  const { canvas, context } = ground(width, height, colours.none);
  if (context === null) return canvas;
  const { columns, rows, cells, top } = heat;
  for (let column = 0; column < columns; column += 1) {
    const left = edge(column, columns, width);
    const right = edge(column + 1, columns, width);
    for (let row = 0; row < rows; row += 1) {
      const value = cells[column * rows + row]!;
      if (value === 0) continue;
      context.fillStyle = value < 0 ? colours.missing : colours.levels[heatLevel(value, top) - 1]!;
      const above = edge(row, rows, height);
      // Wide cells keep a gap, so that neighbours of one level can be told apart.
      const gap = right - left > 6 ? 1 : 0;
      context.fillRect(left, above, right - left - gap, edge(row + 1, rows, height) - above);
    }
  }
  return canvas;
}

function edge(index: number, count: number, size: number): number {
  return Math.round((index * size) / count);
}

/** Draws `picture` and over it what is picked and where the cursor is. */
export function drawOverlay(
  context: CanvasRenderingContext2D,
  picture: HTMLCanvasElement,
  heat: HeatCells,
  overlay: HeatOverlay,
  colours: HeatColours,
): void {
  const { width, height } = picture;
  const { columns, rows } = heat;
  context.drawImage(picture, 0, 0);
  context.fillStyle = colours.shade;
  for (let row = 0; row < rows; row += 1) {
    if (!overlay.dimmed(row)) continue;
    const above = edge(row, rows, height);
    context.fillRect(0, above, width, edge(row + 1, rows, height) - above);
  }
  if (overlay.picked !== null) pickedArea(context, heat, overlay.picked, width, height, colours);
  if (overlay.cursor !== null) {
    const { column, row } = overlay.cursor;
    const left = edge(column, columns, width);
    const above = edge(row, rows, height);
    context.strokeStyle = colours.cursor;
    context.lineWidth = 2;
    context.strokeRect(
      left - 1,
      above - 1,
      Math.max(4, edge(column + 1, columns, width) - left + 2),
      Math.max(4, edge(row + 1, rows, height) - above + 2),
    );
  }
}

function pickedArea(
  context: CanvasRenderingContext2D,
  { columns, rows }: HeatCells,
  picked: PickedRows,
  width: number,
  height: number,
  colours: HeatColours,
): void {
  context.fillStyle = colours.shade;
  context.strokeStyle = colours.edge;
  context.lineWidth = 2;
  context.beginPath();
  let before: readonly [number, number] | null = null;
  for (let column = 0; column <= columns; column += 1) {
    const now = column < columns ? picked(column) : null;
    const left = edge(column, columns, width);
    const right = edge(column + 1, columns, width);
    const place = (row: number): number => edge(row, rows, height);
    if (column < columns) {
      const [from, to] = now ?? [rows, rows];
      context.fillRect(left, 0, right - left, place(from));
      context.fillRect(left, place(to), right - left, height - place(to));
    }
    // The outline: where this column and the one before differ, and its own ends.
    const [a, b] = before ?? [0, 0];
    const [c, d] = now ?? [0, 0];
    for (const [from, to] of [
      [Math.min(a, c), Math.max(a, c)],
      [Math.min(b, d), Math.max(b, d)],
    ] as const) {
      if (before !== null && now !== null && from === to) continue;
      context.moveTo(left, place(from));
      context.lineTo(left, place(to));
    }
    if (now !== null) {
      context.moveTo(left, Math.max(1, place(now[0])));
      context.lineTo(right, Math.max(1, place(now[0])));
      context.moveTo(left, Math.min(height - 1, place(now[1])));
      context.lineTo(right, Math.min(height - 1, place(now[1])));
    }
    before = now;
  }
  context.stroke();
}
