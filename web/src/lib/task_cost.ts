// What a task will cost before it runs, and where each number comes from.

import type { BpfProgram, KernelProgram, TaskKind } from "../api/types";
import { roughly } from "./estimate";

export interface CostLine {
  readonly text: string;
  /** Where the number comes from. */
  readonly source: string;
}

/** Figures of docs/performance.md, measured on the project's machine: not on this one. */
const DOCUMENTED = {
  sample_ns: 2030,
  switch_ns: 1300,
  sampled_switch_ns: 260,
  /** One stop at a function of a TLS library, on the cheapest instructions and on others. */
  cheap_stop_us: 0.7,
  dear_stop_us: 10,
  /** Calls of a TLS library for a request, at each end that is TLS. */
  tls_calls: 4,
  agent_percent: "0.6 to 2.7",
} as const;

const DOCUMENT = "docs/performance.md, another machine";

/** Time of one run of a program on this node, when the kernel has measured enough of them. */
export function measuredRun(
  name: string,
  programs: readonly (BpfProgram | KernelProgram)[],
): { readonly ns: number; readonly runs: number } | null {
  const MIN_RUNS = 1000;
  let runs = 0;
  let ns = 0;
  for (const program of programs) {
    if (program.name !== name || program.run_count === null || program.run_time_ns === null) continue;
    runs += program.run_count;
    ns += program.run_time_ns;
  }
  return runs < MIN_RUNS ? null : { ns: ns / runs, runs };
}

/** A share of one core that is mostly tiny. */
export function corePercent(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.01) return "under 0.01 %";
  return `${percent.toFixed(percent < 1 ? 2 : 1)} %`;
}

export interface CostInput {
  readonly kind: TaskKind;
  readonly hertz: number;
  /** Busy cores of the target; null when not known yet. */
  readonly cores: number | null;
  readonly sampled: boolean;
  readonly timed: boolean;
  /** Part of the time in percent in which TLS libraries are watched; 0 is never. */
  readonly tlsPercent: number;
  readonly programs: readonly (BpfProgram | KernelProgram)[];
}

function sampling({ hertz, cores, programs }: CostInput): CostLine {
  const measured = measuredRun("on_cpu", programs);
  const ns = measured?.ns ?? DOCUMENTED.sample_ns;
  const source = measured === null ? DOCUMENT : `this node: mean of ${measured.runs.toLocaleString()} runs`;
  const each = `${(ns / 1000).toFixed(1)} µs a sample in the kernel`;
  if (cores === null) return { text: `${each}; how many samples is not known yet`, source };
  const perSecond = hertz * cores;
  return {
    text: `${roughly(perSecond)} samples/s × ${each} = ${corePercent((perSecond * ns) / 1e9)} of one core`,
    source,
  };
}

function switching({ sampled }: CostInput): CostLine {
  const ns = sampled ? DOCUMENTED.sampled_switch_ns : DOCUMENTED.switch_ns;
  const share = corePercent((10_000 * ns) / 1e9);
  return {
    text: `${(ns / 1000).toFixed(2)} µs a switch${sampled ? " where waits are sampled" : ""}: ${share} of one core for each 10,000 switches a second. How often the target switches is not known before`,
    source: DOCUMENT,
  };
}

function tls(percent: number): CostLine {
  const { cheap_stop_us, dear_stop_us, tls_calls } = DOCUMENTED;
  const least = (cheap_stop_us * tls_calls).toFixed(0);
  const most = (dear_stop_us * tls_calls).toFixed(0);
  const part = percent < 100 ? `, in ${percent} % of the time` : "";
  return {
    text: `TLS: the target stops at each read and write of its TLS library, ${cheap_stop_us} µs where there is a cheap instruction for it and ${dear_stop_us} µs elsewhere${part}: some ${least} to ${most} µs of its CPU for a request with ${tls_calls} such calls`,
    source: "measured on another machine",
  };
}

/** One line for each part of the cost. */
export function costLines(input: CostInput): CostLine[] {
  const agent: CostLine = {
    text: `the agent itself: ${DOCUMENTED.agent_percent} % of one core for a small target at 99 Hz`,
    source: DOCUMENT,
  };
  switch (input.kind) {
    case "on_cpu":
      return [sampling(input), agent];
    case "off_cpu":
      return [switching(input), agent];
    case "wall":
      return [sampling(input), switching(input), agent];
    case "network":
      return [
        {
          text: input.timed
            ? "every system call of the machine runs a program while it lasts: not for a node that is short of CPU"
            : "each read, write and segment of a connection runs a program; how many is not known before",
          source: "docs/network.md",
        },
      ];
    case "requests":
      return [
        {
          text: "each read and write of a connection runs a program that copies its first bytes; how many is not known before. When it needs more than a quarter of one CPU, connections are sampled, and the result says so",
          source: "the agent's own limit",
        },
        ...(input.tlsPercent > 0 ? [tls(input.tlsPercent)] : []),
      ];
  }
}
