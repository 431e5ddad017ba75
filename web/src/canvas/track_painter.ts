// Draws what threads did over time: of each row and column a stack of the kinds, as high as their time.

import type { TrackParts } from "../lib/tracks";
import { ground, type HeatColours } from "./heat_painter";

/** Space between rows, in device pixels at a ratio of 1. */
const GAP = 2;

export function drawTracks(
  tracks: readonly TrackParts[],
  columns: number,
  width: number,
  height: number,
  colours: Pick<HeatColours, "none" | "missing">,
  colourOf: (activity: string) => string,
): HTMLCanvasElement {
  const { canvas, context } = ground(width, height, colours.none);
  if (context === null) return canvas;
  const rowHeight = height / Math.max(1, tracks.length);
  tracks.forEach(({ parts, fullUs, isSent }, row) => {
    const bottom = Math.round((row + 1) * rowHeight);
    const most = Math.max(1, Math.round(rowHeight) - GAP);
    context.fillStyle = colours.missing;
    if (!isSent) context.fillRect(0, bottom - most, width, most);
    const before = new Float64Array(columns);
    for (const { activity, timesUs } of parts) {
      context.fillStyle = colourOf(activity);
      for (let column = 0; column < columns; column += 1) {
        const time = timesUs[column] ?? 0;
        if (time === 0) continue;
        const from = before[column]!;
        before[column] = from + time;
        const left = Math.round((column * width) / columns);
        const right = Math.max(left + 1, Math.round(((column + 1) * width) / columns));
        const low = Math.round((Math.min(from, fullUs) / fullUs) * most);
        // The first kind has a pixel even where it is short, so that no column with time looks empty.
        const high = Math.max(
          Math.round((Math.min(from + time, fullUs) / fullUs) * most),
          from === 0 ? 1 : low,
        );
        context.fillRect(left, bottom - high, right - left, high - low);
      }
    }
  });
  return canvas;
}
