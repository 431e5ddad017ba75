// What each probe can do. It changes when tasks start and end: asked again then.

import { effect, signal } from "@preact/signals";
import { api } from "../api/client";
import type { Probe } from "../api/types";
import { meta, self } from "./live";

export const probes = signal<readonly Probe[]>([]);

export function followProbes(): void {
  let asked: number | undefined;
  effect(() => {
    const own = self.value;
    if (meta.value !== null && probes.peek().length === 0) probes.value = meta.value.probes;
    if (own === null || own.running_tasks === asked) return;
    asked = own.running_tasks;
    api.probes().then(
      ({ items }) => {
        probes.value = items;
      },
      () => {
        // The banner says that the agent does not answer; the last state stays.
        asked = undefined;
      },
    );
  });
}
