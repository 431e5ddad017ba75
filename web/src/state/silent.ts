// For how long the agent has not answered.

import { signal } from "@preact/signals";

/** Since when it has not; null while it does. */
export const silentSince = signal<number | null>(null);

/** The moment up to which something is known: clocks of tasks stop while the agent does not answer. */
export function knownNow(): number {
  return silentSince.value ?? Date.now();
}
