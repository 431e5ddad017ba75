// Tables of edges that are kept while the page follows a measurement: what a rate or a mark counts from.

/** Rates are over the last seconds. */
export const RATE_MS = 10_000;
/** Trouble is marked for a minute. */
export const TROUBLE_MS = 60_000;

interface Kept {
  /** Milliseconds, on any clock. */
  readonly at: number;
}

/**
 * What has to stay of `kept`, oldest first: everything of the last seconds, before that one each `RATE_MS`, and one
 * that is older than `TROUBLE_MS`.
 */
export function stillNeeded<T extends Kept>(kept: readonly T[], now: number): T[] {
  const ground = kept.findLastIndex(({ at }) => now - at >= TROUBLE_MS);
  const needed: T[] = [];
  for (const one of kept.slice(Math.max(0, ground))) {
    const last = needed.at(-1);
    const before = needed.at(-2);
    // The last one stands between its neighbours, and both windows can do without it.
    if (last && before && now - one.at >= RATE_MS && one.at - before.at < RATE_MS) needed.pop();
    needed.push(one);
  }
  return needed;
}

/** What a window of `ms` counts from: the newest that is old enough, or the oldest. */
export function groundOf<T extends Kept>(kept: readonly T[], now: number, ms: number): T | undefined {
  return kept.findLast(({ at }) => now - at >= ms) ?? kept[0];
}
