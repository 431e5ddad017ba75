// Tables of edges that are kept while the page follows a measurement: what a rate or a mark counts from.

/** Rates are over the last seconds. */
export const RATE_MS = 10_000;
/** Trouble is marked for a minute. */
export const TROUBLE_MS = 60_000;
/** The map of the node shows the last minutes. */
export const MAP_MS = 300_000;

interface Kept {
  /** Milliseconds, on any clock. */
  readonly at: number;
}

/** Time between two that stay, by their age: the shorter window needs them closer. */
const spacing = (age: number): number => (age < RATE_MS ? 0 : age < TROUBLE_MS ? RATE_MS : TROUBLE_MS);

/**
 * What has to stay of `kept`, oldest first: everything of the last seconds, before that some as far apart as a window may
 * be too long, and one that is older than `MAP_MS`.
 */
export function stillNeeded<T extends Kept>(kept: readonly T[], now: number): T[] {
  const ground = kept.findLastIndex(({ at }) => now - at >= MAP_MS);
  const needed: T[] = [];
  for (const one of kept.slice(Math.max(0, ground))) {
    const last = needed.at(-1);
    const before = needed.at(-2);
    // The last one stands between its neighbours, and the windows can do without it.
    if (last && before && one.at - before.at < spacing(now - one.at)) needed.pop();
    needed.push(one);
  }
  return needed;
}

/** What a window of `ms` counts from: the newest that is old enough, or the oldest. */
export function groundOf<T extends Kept>(kept: readonly T[], now: number, ms: number): T | undefined {
  return kept.findLast(({ at }) => now - at >= ms) ?? kept[0];
}
