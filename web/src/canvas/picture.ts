// A flame graph as a file: the same drawing on a canvas that is as high as the graph.

import type { FlameIndex } from "../lib/flame_index";
import { Painter, ROW_HEIGHT, type Scene } from "./painter";
import type { Colouring, FrameStyle, Theme } from "./palette";

/** Browsers make no higher canvas. */
const MAX_PICTURE_PX = 16_384;

export interface PictureOptions
  extends Pick<Scene, "width" | "left" | "right" | "zoomed" | "selected" | "matches"> {
  readonly index: FlameIndex;
  readonly theme: Theme;
  readonly by: Colouring;
  readonly nodeStyle: ((node: number) => FrameStyle) | null;
  readonly growth: "up" | "down";
  readonly rows: number;
}

/** A PNG; null when the browser makes none. Rows that a picture has no room for are left out at the far end. */
export function pictureOf(options: PictureOptions): Promise<Blob | null> {
  const { index, theme, by, nodeStyle, growth, width } = options;
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const rows = Math.min(options.rows, Math.floor(MAX_PICTURE_PX / (ROW_HEIGHT * ratio)));
  const height = rows * ROW_HEIGHT;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return Promise.resolve(null);
  const painter = new Painter(context, index, theme, by);
  painter.nodeStyle = nodeStyle;
  painter.paint({
    index,
    width,
    height,
    ratio,
    left: options.left,
    right: options.right,
    rowTop: (depth) => (growth === "up" ? height - (depth + 1) * ROW_HEIGHT : depth * ROW_HEIGHT),
    firstDepth: 0,
    lastDepth: rows - 1,
    zoomed: options.zoomed,
    selected: options.selected,
    matches: options.matches,
  });
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
