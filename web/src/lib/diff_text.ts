// A comparison in words and numbers.

import type { Verdict } from "../api/types";
import type { Norm, Pair } from "./diff";
import { type DiffIndex, normalised } from "./diff_index";
import { amount } from "./format";

export const VERDICT_TEXT: Readonly<Record<Verdict, string>> = {
  significant: "significant",
  not_significant: "not significant",
  too_few: "too few samples to tell",
  unknown: "not known",
};

export const UNKNOWN_TEXT = {
  not_samples:
    "Significance is not known: the numbers are not samples of a known clock but times or switches, which no test applies to.",
  no_period:
    "Significance is not known: the time between two samples differs, so it is not known how many there could be.",
} as const;

/** A side's part after normalising: "12.3 %", or cores, samples or waiting for each second. */
export function normText(index: DiffIndex, value: number, side: 0 | 1): string {
  return index.norm === "share" ? `${digits(value * 100)} %` : rateText(index, value, side);
}

/** Changes carry their sign, also where the numbers are rounded to nothing. */
export function changeText(index: DiffIndex, change: number): string {
  const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
  const size = Math.abs(change);
  if (index.norm === "share") return `${sign}${digits(size * 100)} pp`;
  return `${sign}${rateText(index, size, 1)}`;
}

function digits(value: number): string {
  if (value === 0) return "0";
  if (value < 0.01) return "< 0.01";
  return value.toFixed(value < 1 ? 2 : 1);
}

/** Time for each second is a number of cores, or of threads that wait. */
function rateText(index: DiffIndex, perSecond: number, side: 0 | 1): string {
  const unit = index.diff.unitNs[side];
  if (unit === 0 || index.diff.unitNs[0] !== index.diff.unitNs[1]) return `${digits(perSecond)} /s`;
  const seconds = (perSecond * unit) / 1e9;
  return seconds === 0
    ? "0 s/s"
    : seconds < 0.001
      ? `${digits(seconds * 1e6)} µs/s`
      : seconds < 1
        ? `${digits(seconds * 1e3)} ms/s`
        : `${seconds.toFixed(2)} s/s`;
}

/** "× 1.52", or what replaces it when there is nothing to divide by. */
export function ratioText(index: DiffIndex, pair: Pair): string {
  const [a, b] = normalised(index, pair);
  if (a === 0 && b === 0) return "–";
  if (a === 0) return "new";
  if (b === 0) return "gone";
  return `× ${(b / a).toFixed(2)}`;
}

export function amountText(index: DiffIndex, value: number, side: 0 | 1): string {
  return amount(value, index.diff.unitNs[side] === 1 ? 1 : 0);
}

/** "p = 0.0007", never "p = 0". */
export function pText(p: number): string {
  return p < 0.0001 ? "p < 0.0001" : `p = ${p.toFixed(4)}`;
}

export const NORM_TITLE: Readonly<Record<Norm, string>> = {
  share: "Share",
  rate: "Per second",
};
