// The part of a graph's width that is shown, when it is not that of one frame: moved by wheel, drag and keys.

/** A part of the width: shares of the whole graph. */
export interface Part {
  readonly from: number;
  readonly to: number;
}

export interface Range {
  readonly left: number;
  readonly right: number;
}

/** The address has whole steps of the width. */
const STEPS = 10_000_000;
/** No part is narrower: at a screen's width this is far below one sample in a million. */
const LEAST_SHARE = 20 / STEPS;

/** `range` scaled by `factor` (below 1: nearer), so that `at` stays where it is; inside `whole`. */
export function zoomAt(range: Range, whole: Range, at: number, factor: number): Range {
  const width = whole.right - whole.left;
  const least = Math.min(width, Math.max(width * LEAST_SHARE, 1));
  const wanted = Math.min(width, Math.max(least, (range.right - range.left) * factor));
  const share = (at - range.left) / (range.right - range.left || 1);
  return inside(at - wanted * Math.min(1, Math.max(0, share)), wanted, whole);
}

/** `range` moved by `by`; it stops at the ends of `whole`. */
export function panBy(range: Range, whole: Range, by: number): Range {
  return inside(range.left + by, range.right - range.left, whole);
}

function inside(left: number, width: number, whole: Range): Range {
  const from = Math.max(whole.left, Math.min(whole.right - width, left));
  return { left: from, right: from + width };
}

/** The part of the whole that `range` is; null for all of it. */
export function partOf(range: Range, whole: Range): Part | null {
  const width = whole.right - whole.left;
  const share = (at: number): number => Math.round(((at - whole.left) / width) * STEPS) / STEPS;
  const part = { from: Math.max(0, share(range.left)), to: Math.min(1, share(range.right)) };
  return part.from <= 0 && part.to >= 1 ? null : part;
}

export function rangeOfPart(part: Part, whole: Range): Range {
  const width = whole.right - whole.left;
  return { left: whole.left + part.from * width, right: whole.left + part.to * width };
}

/** "2500000-5000000", as it stands in the address; empty for the whole width. */
export function formatPart(part: Part | null): string {
  return part === null ? "" : `${Math.round(part.from * STEPS)}-${Math.round(part.to * STEPS)}`;
}

/** Null for the whole width and for everything that is not a part of it. */
export function parsePart(text: string): Part | null {
  const found = /^(\d{1,8})-(\d{1,8})$/.exec(text);
  if (found === null) return null;
  const [from, to] = [Number(found[1]) / STEPS, Number(found[2]) / STEPS];
  return to <= 1 && to - from >= LEAST_SHARE && !(from === 0 && to === 1) ? { from, to } : null;
}
