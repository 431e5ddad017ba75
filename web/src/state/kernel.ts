// The agent's programs and maps in the kernel: seldom for the chip in the top bar, often while the node page
// is open.

import { effect, signal } from "@preact/signals";
import { api, ProblemError } from "../api/client";
import type { KernelObjects, MeasuredRuns } from "../api/types";
import { access } from "./live";

export interface KernelReading {
  readonly at: number;
  readonly objects: KernelObjects;
}

/** The last two readings: rates come from their difference. */
export const kernelReadings = signal<readonly KernelReading[]>([]);
/** How often it is asked; the node page sets it. */
export const kernelPaceMs = signal(30_000);
/** Whether runs of programs are measured each time; the node page sets it. */
export const runsMeasured = signal(false);
/** Why they are not, although they were asked for. */
export const runsRefused = signal<string | null>(null);

/** How long runs are measured each time. */
const MEASURED_MS = 1_000;

function putReading(objects: KernelObjects): void {
  kernelReadings.value = [...kernelReadings.peek(), { at: performance.now(), objects }].slice(-2);
}

function putMeasured({ before, after, elapsed_ns }: MeasuredRuns): void {
  const at = performance.now();
  runsRefused.value = null;
  kernelReadings.value = [
    { at: at - elapsed_ns / 1e6, objects: before },
    { at, objects: after },
  ];
}

function read(): void {
  api.kernelObjects().then(putReading, () => {
    // The banner says what is wrong; the last reading stays.
  });
}

function refuse(problem: unknown): void {
  const { detail, hint } =
    problem instanceof ProblemError
      ? problem.problem
      : { detail: "the agent does not answer", hint: undefined };
  runsRefused.value = hint === undefined ? detail : `${detail}. ${hint}`;
  read();
}

export function followKernel(): void {
  effect(() => {
    const pace = kernelPaceMs.value;
    const measured = runsMeasured.value;
    if (access.value !== "granted") return;
    const ask = (): void => {
      if (document.visibilityState === "hidden") return;
      if (measured) api.measureRuns(MEASURED_MS).then(putMeasured, refuse);
      else read();
    };
    ask();
    const timer = setInterval(ask, pace);
    return () => clearInterval(timer);
  });
}
