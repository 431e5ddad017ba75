// What a task will cost before it runs, and where each number comes from.

import type { BpfProgram, KernelProgram, RequestSource, TaskKind } from "../api/types";
import { roughly } from "./estimate";
import { plural } from "./format";

export interface CostLine {
  /** The number first. */
  readonly text: string;
  /** How it comes about, and where it was measured. */
  readonly how: string;
  /** The same for every task of a check-up. */
  readonly ofAgent?: boolean;
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
  /** One entry of Envoy's own protocol. */
  entry_us: 1,
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
  /** Where requests are looked for. */
  readonly sources: readonly RequestSource[];
  /** Part of the time in percent in which TLS libraries are watched, if they are. */
  readonly tlsPercent: number;
  readonly programs: readonly (BpfProgram | KernelProgram)[];
}

function sampling({ hertz, cores, programs }: CostInput): CostLine {
  const measured = measuredRun("on_cpu", programs);
  const ns = measured?.ns ?? DOCUMENTED.sample_ns;
  const source = measured === null ? DOCUMENT : `this node: mean of ${plural(measured.runs, "run")}`;
  const each = `${(ns / 1000).toFixed(1)} µs a sample in the kernel`;
  if (cores === null) return { text: each, how: `How many samples come is not known yet (${source})` };
  const perSecond = hertz * cores;
  return {
    text: `${corePercent((perSecond * ns) / 1e9)} of one core for samples`,
    how: `${roughly(perSecond)} samples/s × ${each} (${source})`,
  };
}

function switching({ sampled }: CostInput): CostLine {
  const ns = sampled ? DOCUMENTED.sampled_switch_ns : DOCUMENTED.switch_ns;
  const share = corePercent((10_000 * ns) / 1e9);
  return {
    text: `${share} of one core for each 10,000 switches/s`,
    how: `${(ns / 1000).toFixed(2)} µs a switch${sampled ? " where waits are sampled" : ""}; how often the target switches is not known before (${DOCUMENT})`,
  };
}

function tls(percent: number): CostLine {
  const { cheap_stop_us, dear_stop_us, tls_calls } = DOCUMENTED;
  const least = (cheap_stop_us * tls_calls).toFixed(0);
  const most = (dear_stop_us * tls_calls).toFixed(0);
  const part = percent < 100 ? `, in ${percent} % of the time` : "";
  return {
    text: `${least} to ${most} µs of the target's CPU for a TLS request${part}`,
    how: `The target stops at each read and write of its TLS library, ${cheap_stop_us} µs where there is a cheap instruction for it and ${dear_stop_us} µs elsewhere; ${tls_calls} such calls for a request (measured on another machine)`,
  };
}

const SOURCES: Readonly<Record<RequestSource, (input: CostInput) => CostLine>> = {
  access_log: () => ({
    text: `under ${DOCUMENTED.entry_us} µs of one core to decode each request that Envoys report`,
    how: `Receiving the entries comes on top of that. No program runs in the kernel, and the Envoys write their access logs anyway (docs/access-logs.md, another machine)`,
  }),
  sockets: () => ({
    text: "a quarter of one CPU at most",
    how: "Each read and write of a connection runs a program that copies its first bytes; above that, connections are sampled, and the result says so",
  }),
  tls: ({ tlsPercent }) => tls(tlsPercent),
};

/** One line for each part of the cost. */
export function costLines(input: CostInput): CostLine[] {
  const agent: CostLine = {
    text: `${DOCUMENTED.agent_percent} % of one core for the agent itself`,
    how: `For a small target at 99 Hz (${DOCUMENT})`,
    ofAgent: true,
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
            ? "a program runs for every system call of the machine; not for a node that is short of CPU"
            : "a program runs for each read, write and segment",
          how: "How many there are is not known before (docs/network.md)",
        },
      ];
    case "requests":
      return input.sources.map((source) => SOURCES[source](input));
  }
}
