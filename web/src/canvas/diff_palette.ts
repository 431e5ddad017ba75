// Colours of a comparison: blue has become less, orange more, grey is what chance can explain. Marks
// that are not colours tell what is new and what is gone. Text keeps a contrast above 4.5:1.

import { type Oklch, oklch } from "./oklch";
import type { FrameStyle, Theme } from "./palette";

const LESS_HUE = 250;
const MORE_HUE = 62;
const STEPS = 5;

/** -STEPS to STEPS; null for grey. */
export function diffStep(tendency: number): number | null {
  if (Number.isNaN(tendency)) return null;
  return Math.sign(tendency) * Math.min(STEPS, Math.ceil(Math.abs(tendency) * STEPS - 1e-9));
}

function fillOf(step: number | null, dark: boolean): Oklch {
  const size = step === null ? 0 : Math.abs(step) / STEPS;
  const l = dark ? 0.34 + 0.16 * size : 0.9 - 0.16 * size;
  const c = step === null || step === 0 ? 0.004 : 0.035 + 0.095 * size;
  return { l, c, h: (step ?? 0) < 0 ? LESS_HUE : MORE_HUE };
}

export function diffStyle(tendency: number, dark: boolean, theme: Theme): FrameStyle {
  const fill = fillOf(diffStep(tendency), dark);
  const colour = (alpha: number): string => oklch(fill, alpha);
  return {
    fill: colour(1),
    faded: colour(theme.fadedAlpha),
    thin: colour(0.85),
    hatchedEdge: tendency === 1,
    italic: false,
    bold: false,
    dottedOutline: tendency === -1,
    striped: false,
  };
}

/** What the legend shows, as tendencies. */
export const DIFF_LEGEND: readonly (readonly [tendency: number, text: string])[] = [
  [-1, "gone (dotted)"],
  [-0.7, "much less"],
  [-0.25, "less"],
  [Number.NaN, "no significant change"],
  [0.25, "more"],
  [0.7, "much more"],
  [1, "new (hatched edge)"],
];
