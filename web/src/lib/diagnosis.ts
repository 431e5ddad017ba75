// A diagnosis in words and numbers. What is not known stays unknown, and is never a zero.

import type {
  Confidence,
  Estimate,
  Finding,
  Matrix,
  Measurement,
  SettingSystem,
  Severity,
  Workers,
} from "../api/types";
import type { Cell } from "./cell";
import { count, duration } from "./format";
import type { PageState } from "./query_state";

/** Shape and word of a severity: the colour is an extra. */
export const SEVERITIES: Readonly<Record<Severity, { readonly mark: string; readonly word: string }>> = {
  high: { mark: "▲", word: "High" },
  medium: { mark: "◆", word: "Medium" },
  low: { mark: "●", word: "Low" },
  info: { mark: "○", word: "Info" },
};

export const SYSTEMS: Readonly<Record<SettingSystem, string>> = {
  istio: "Istio",
  envoy: "Envoy",
  nginx: "nginx",
  kubernetes: "Kubernetes",
};

export const CONFIDENCES: Readonly<Record<Confidence, { readonly word: string; readonly about: string }>> = {
  exact: { word: "exact", about: "The functions' names come from symbols." },
  inferred: {
    word: "inferred",
    about: "The program is stripped: names come from its class tables and may be of a neighbour function.",
  },
  thread: { word: "thread names only", about: "Only the name of the thread says what the time was for." },
  mixed: { word: "exact and inferred", about: "Some names come from symbols, others are inferred." },
};

/** What stands for a share: one decimal, two below one percent; never "0" for what is there. */
export function share(percent: number): string {
  if (percent === 0) return "0 %";
  if (percent > 0 && percent < 0.01) return "< 0.01 %";
  return `${decimals(percent)} %`;
}

function decimals(value: number): string {
  return value.toFixed(Math.abs(value) < 1 ? 2 : 1);
}

/** A 95 % interval: "15.0 to 17.2 %"; what was counted and not sampled has none. */
export function interval(low: number, high: number): string {
  if (low === high) return "exact";
  return `${decimals(low)} to ${decimals(high)} %`;
}

/** Microseconds of CPU with their unit. */
export function micros(us: number): string {
  return duration(us * 1e3);
}

export function estimateText({ value, low, high }: Estimate): string {
  return `${micros(value)} (${micros(low)} to ${micros(high)})`;
}

/** The upper bound of what a setting can save. */
export function savingText({ saving }: Finding): string | null {
  if (saving === null) return null;
  const perRequest =
    saving.us_per_request === null ? "" : `, ${micros(saving.us_per_request)} of each request`;
  return `about ${share(saving.percent)} of the CPU${perRequest}`;
}

/** Why no saving is named: what has no part of the CPU time costs time, not CPU. */
export function noSavingText({ cells }: Pick<Finding, "cells">): string {
  return cells.length === 0 ? "Affects latency, not CPU cost" : "CPU saving not known";
}

/** Below this a number for each request has too many zeros to be read. */
const READABLE = 0.01;

/** "0.25", or "1 per 60,000 requests" where it is rare. */
export function perRequestText(perRequest: number): string {
  if (perRequest === 0 || perRequest >= READABLE) return perRequest.toPrecision(perRequest === 0 ? 1 : 3);
  const requests = 1 / perRequest;
  const step = 10 ** Math.floor(Math.log10(requests));
  return `1 per ${count(Math.round(requests / step) * step)} requests`;
}

/** What the share of samples that can be diagnosed is. */
export const DIAGNOSABLE =
  "A sample can be diagnosed when at least half of its user frames have names; conclusions need 60 % of such samples.";

const MEASUREMENTS: Readonly<Record<Measurement, string>> = {
  latency: "request latency",
  waits: "waits",
  connections: "connections",
  event_loops: "event-loop stalls",
  cpu_time: "accounted CPU time",
  requests: "request counts",
  configuration: "configuration",
};

/** What a diagnosis says nothing about. */
export function notMeasuredText(parts: readonly Measurement[]): string {
  return `Not measured: ${parts.map((part) => MEASUREMENTS[part]).join(", ")}.`;
}

/** The limit that says why a number is not known: the one that has the first of `words`, or else the next. */
export function reasonOf(limits: readonly string[], words: readonly string[]): string {
  for (const word of words) {
    const found = limits.find((limit) => limit.toLowerCase().includes(word));
    if (found !== undefined) return found;
  }
  return "The agent does not say why; see Limits.";
}

/** Where a bar of `percent` with its interval stands on a scale that ends at `end`, in percent of its width. */
export function barOf(
  { share_percent, low, high }: Pick<Finding, "share_percent" | "low" | "high">,
  end: number,
): { readonly value: number; readonly from: number; readonly to: number } {
  const at = (percent: number): number => (end > 0 ? Math.max(0, Math.min(100, (percent / end) * 100)) : 0);
  return { value: at(share_percent), from: at(low), to: at(high) };
}

/** Where a scale ends that all findings fit on. */
export function scaleOf(findings: readonly Pick<Finding, "high" | "share_percent">[]): number {
  const most = Math.max(1, ...findings.map(({ high, share_percent }) => Math.max(high, share_percent)));
  return Math.min(100, most * 1.05);
}

const MOST_SEARCHED = 300;

/** What finds a frame in the flame graph: the search box gives some beginnings a meaning. */
export function frameSearch(frame: string): string {
  const name = frame.slice(0, MOST_SEARCHED).trim();
  if (!/^(mod:|kind:|\/)/.test(name)) return name;
  return `/${name.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")}/`;
}

/** Where the flame graph of a diagnosis is. */
export interface Flame {
  /** Null when there is none to open. */
  readonly task: string | null;
  /** Where that of waits is. */
  readonly waits?: string | null;
  /** What the diagnosis is cut to. */
  readonly pid: number | null;
  readonly from: number | null;
  readonly to: number | null;
}

/** The flame graph with only what a cell, row or column counts; null when there is none. */
export function flameState(
  flame: Flame,
  { cell, search = "" }: { readonly cell: string | null; readonly search?: string },
): Partial<PageState> | null {
  const { task, pid, from, to } = flame;
  if (task === null || cell === null) return null;
  return { view: "task", id: task, cell, search, pid, from, to };
}

/** "12 of 300 periods (4.0 %), 1.20 s". */
export function throttledText(throttled: {
  readonly periods: number;
  readonly throttled_periods: number;
  readonly throttled_ns: number;
}): string {
  const { periods, throttled_periods, throttled_ns } = throttled;
  if (throttled_periods === 0) return `in none of ${periods} periods`;
  const part = periods > 0 ? ` (${share((throttled_periods / periods) * 100)})` : "";
  return `in ${throttled_periods} of ${periods} periods${part}, ${duration(throttled_ns)}`;
}

/** Whether waits were measured at all: no thread without any is believed when no thread has one. */
export function waitsWatched({ threads }: Workers): boolean {
  return threads.some(({ waits, longest_wait_ns }) => waits.length > 0 || longest_wait_ns !== null);
}

/** A cell by its titles in the matrix; an id without a title stands for itself. */
export function cellTitle(
  { feature, mechanism }: Cell,
  { features, mechanisms }: Pick<Matrix, "features" | "mechanisms">,
): string {
  const title = (list: readonly { id: string; title: string }[], id: string | null): string | null =>
    list.find((each) => each.id === id)?.title ?? id;
  return [title(features, feature), title(mechanisms, mechanism)].filter((part) => part !== null).join(" × ");
}
