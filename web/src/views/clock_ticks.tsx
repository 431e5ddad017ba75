// Clock times along a strip.

import { clockTicks } from "../lib/continuous";

const MOST_TICKS = 10;
/** A tick further right has no place for its text. */
const LAST_TICK = 0.92;

/** Times are milliseconds since the epoch. */
export function ClockTicks({ fromMs, toMs }: { fromMs: number; toMs: number }) {
  return (
    <div class="time-ticks clock-ticks muted" aria-hidden="true">
      {clockTicks(fromMs, toMs, MOST_TICKS)
        .filter(({ at }) => at <= LAST_TICK)
        .map(({ at, text }) => (
          <span key={at} style={{ left: `${at * 100}%` }}>
            {text}
          </span>
        ))}
    </div>
  );
}
