// The line below a picture over time: what is pointed at, what the colours mean, what is picked.

import type { ComponentChildren } from "preact";
import { amount } from "../lib/format";
import { levelStarts, timeText } from "../lib/heat";
import type { StripRange } from "../lib/strip";
import { patchRoute } from "../state/route";
import { Icon } from "./icons";

export function setRange(range: StripRange | null): void {
  patchRoute({ from: range?.from ?? null, to: range?.to ?? null }, "replace");
}

export function rangeText(range: StripRange | null): string {
  return range === null ? "" : `picked: ${timeText(range.from)} to ${timeText(range.to)}`;
}

export function HeatLegend({ top, periodNs, one }: { top: number; periodNs: number; one: string }) {
  if (top <= 0) return null;
  return (
    <span
      class="heat-legend"
      role="img"
      aria-label={`Darker or brighter is more, up to ${amount(top, periodNs)} ${one}`}
    >
      <span class="muted">0</span>
      {levelStarts(top).map((start, level) => (
        <span key={start} class={`heat-swatch heat-${level}`} title={`from ${amount(start, periodNs)}`} />
      ))}
      <span class="muted numeric">
        {amount(top, periodNs)} {one}
      </span>
    </span>
  );
}

export function Caption(props: { text: string; picked: StripRange | null; children: ComponentChildren }) {
  return (
    <div class="heat-caption">
      <span class="numeric heat-text" data-heat-text>
        {props.text}
      </span>
      {props.children}
      {props.picked !== null && (
        <button type="button" class="quiet" onClick={() => setRange(null)}>
          <Icon name="close" /> Show the whole time
        </button>
      )}
    </div>
  );
}
