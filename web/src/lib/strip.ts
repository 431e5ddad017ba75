// Geometry of the time strip: bars of samples over time, and the picked range on it.

export interface StripRange {
  readonly from: number;
  readonly to: number;
}

/** Joins neighbouring buckets so that at most `bars` are left; each value is the mean of its bucket counts. */
export function condense(counts: readonly number[], bars: number): number[] {
  const per = Math.max(1, Math.ceil(counts.length / Math.max(1, bars)));
  const out: number[] = [];
  for (let at = 0; at < counts.length; at += per) {
    let sum = 0;
    const end = Math.min(counts.length, at + per);
    for (let i = at; i < end; i += 1) sum += counts[i]!;
    out.push(sum / (end - at));
  }
  return out;
}

/** Two pointer positions (0 to 1) as a range of whole buckets; null for a click without a drag. */
export function brushed(a: number, b: number, bucketMs: number, buckets: number): StripRange | null {
  const low = Math.max(0, Math.min(a, b));
  const high = Math.min(1, Math.max(a, b));
  if ((high - low) * buckets < 0.25) return null;
  const from = Math.floor(low * buckets);
  const to = Math.max(from + 1, Math.ceil(high * buckets));
  return { from: from * bucketMs, to: Math.min(to, buckets) * bucketMs };
}

/** Moves a range by whole buckets and keeps it inside. */
export function moved(range: StripRange, steps: number, bucketMs: number, buckets: number): StripRange {
  const size = range.to - range.from;
  const from = Math.max(0, Math.min(buckets * bucketMs - size, range.from + steps * bucketMs));
  return { from, to: from + size };
}

/** Makes a range longer or shorter at its end, never shorter than a bucket. */
export function resized(range: StripRange, steps: number, bucketMs: number, buckets: number): StripRange {
  const to = Math.max(range.from + bucketMs, Math.min(buckets * bucketMs, range.to + steps * bucketMs));
  return { from: range.from, to };
}
