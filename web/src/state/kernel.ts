// The agent's programs and maps in the kernel: seldom for the chip in the top bar, often while the node page
// is open.

import { effect, signal } from "@preact/signals";
import { api } from "../api/client";
import type { KernelObjects } from "../api/types";
import { access } from "./live";

export interface KernelReading {
  readonly at: number;
  readonly objects: KernelObjects;
}

/** The last two readings: rates come from their difference. */
export const kernelReadings = signal<readonly KernelReading[]>([]);
/** How often it is asked; the node page sets it. */
export const kernelPaceMs = signal(30_000);

/** Takes a reading that came with another answer. */
export function putKernelReading(objects: KernelObjects): void {
  kernelReadings.value = [...kernelReadings.peek(), { at: performance.now(), objects }].slice(-2);
}

export function followKernel(): void {
  effect(() => {
    const pace = kernelPaceMs.value;
    if (access.value !== "granted") return;
    const ask = (): void => {
      if (document.visibilityState === "hidden") return;
      api.kernelObjects().then(putKernelReading, () => {
        // The banner says what is wrong; the last reading stays.
      });
    };
    ask();
    const timer = setInterval(ask, pace);
    return () => clearInterval(timer);
  });
}
