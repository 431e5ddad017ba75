// Moments along a picture whose width is time.

import { timeTicks } from "../lib/heat";

/** Room that a moment needs. */
const TICK_PX = 90;
/** Room for the text of a tick: one further right would be cut. */
const TEXT_PX = 40;

export function TimeTicks({ fromMs, toMs, width }: { fromMs: number; toMs: number; width: number }) {
  const ticks = timeTicks(fromMs, toMs, Math.max(2, Math.floor(width / TICK_PX)));
  return (
    <div class="time-ticks muted" aria-hidden="true" style={{ width: `${width}px` }}>
      {ticks
        .filter(({ at }) => at * width <= width - TEXT_PX)
        .map(({ at, text }) => (
          <span key={text} style={{ left: `${at * 100}%` }}>
            {text}
          </span>
        ))}
    </div>
  );
}
