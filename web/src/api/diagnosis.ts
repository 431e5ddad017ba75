// The wire types of diagnoses and check-ups, by hand from the HTTP contract. Shares are percent of the
// on-CPU samples in the document's selection; `low` and `high` are a 95 % interval; null is not known,
// and `limits` says why.

import type { Target, TaskState } from "./types";

export type CheckupState = "running" | "finished" | "failed" | "cancelled";

export interface CheckupTask {
  readonly id: string;
  readonly kind: string;
  readonly state: TaskState;
  readonly reason: string | null;
}

/** Tasks of one target that run at once, and what the agent read beside them. */
export interface Checkup {
  /** Also the name of the tasks' group. */
  readonly id: string;
  readonly target: Target;
  readonly duration_s: number;
  readonly state: CheckupState;
  readonly created_ns: number;
  readonly ends_in_s: number | null;
  readonly tasks: readonly CheckupTask[];
  /** Whether the kernel's accounting and the target's own counters were read. */
  readonly observed: boolean;
}

export interface CheckupSpec {
  readonly target: Target;
  readonly duration_s: number;
  readonly frequency_hz?: number;
}

export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

export interface DiagnosedProcess {
  readonly pid: number;
  readonly start_ticks: number;
  readonly comm: string;
  readonly exe: string;
  readonly container: string | null;
  readonly rule_set: "envoy" | "nginx" | "generic";
  readonly samples: number;
  readonly share_percent: number;
}

export interface Coverage {
  readonly samples: number;
  readonly complete_percent: number;
  /** Of the samples: those that can be diagnosed. */
  readonly named_percent: number;
  /** Of the user frames, as the quality of the task has it. Null without user frames. */
  readonly named_frames_percent: number | null;
  readonly attributed_percent: number;
  readonly no_symbols_percent: number;
  /** Enough is named for the verdict to be about the whole. */
  readonly sufficient: boolean;
  readonly unnamed_modules: readonly {
    readonly module: string;
    readonly build_id: string | null;
    readonly share_percent: number;
  }[];
  readonly supply: string | null;
}

export interface Totals {
  readonly cpu_cores: number | null;
  /** As the kernel accounts it. */
  readonly cpu_ns: number | null;
  readonly sampled_ns: number;
  readonly requests: { readonly count: number; readonly per_second: number; readonly source: string } | null;
  readonly cpu_us_per_request: Estimate | null;
}

export interface MatrixFeature {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  /** Whether a setting changes what it costs. */
  readonly settings: boolean;
}

export interface MatrixCell {
  readonly feature: string;
  readonly mechanism: string;
  readonly samples: number;
  readonly ns: number;
  readonly share_percent: number;
  readonly low: number;
  readonly high: number;
  readonly rules: readonly { readonly rule: string; readonly samples: number }[];
}

/** Cells without samples are not in it. */
export interface Matrix {
  readonly features: readonly MatrixFeature[];
  readonly mechanisms: readonly { readonly id: string; readonly title: string }[];
  readonly cells: readonly MatrixCell[];
}

export interface WorkerThread {
  readonly tid: number;
  readonly name: string;
  readonly role: "worker" | "main" | "helper" | "other";
  readonly cpu_percent: number | null;
  readonly share_percent: number;
  readonly run_queue_percent: number | null;
  readonly waits: readonly {
    readonly reason: string;
    readonly count: number;
    readonly ns: number;
    /** Of the window. */
    readonly share_percent: number;
  }[];
  readonly longest_wait_ns: number | null;
}

export interface Workers {
  readonly threads: readonly WorkerThread[];
  readonly imbalance: {
    readonly busiest_percent: number;
    readonly mean_percent: number;
    readonly ratio: number;
    readonly low: number;
    readonly high: number;
    readonly significant: boolean;
  } | null;
  readonly throttled: {
    readonly periods: number;
    readonly throttled_periods: number;
    readonly throttled_ns: number;
  } | null;
}

export interface EventLoop {
  readonly threshold_ms: number;
  readonly threads: readonly {
    readonly tid: number;
    readonly name: string;
    readonly loops: number;
    /** null: no loop is over yet. */
    readonly loop_ns: { readonly p50: number; readonly p99: number; readonly max: number } | null;
    readonly stalls: number;
    readonly stalled_ns: number;
  }[];
  readonly stalls: readonly {
    readonly tid: number;
    readonly name: string;
    readonly start_ns: number;
    readonly duration_ns: number;
    /** The leaf first. */
    readonly stack: readonly string[];
    readonly samples: number;
  }[];
}

export interface NetworkPart {
  readonly connections_opened: number;
  readonly connections_per_request: number | null;
  readonly retransmit_percent: number | null;
  readonly resets: number;
  readonly receive_wait_ns: { readonly p50: number; readonly p99: number } | null;
}

export type Severity = "high" | "medium" | "low" | "info";
export type SettingSystem = "istio" | "envoy" | "nginx" | "kubernetes";
export type Confidence = "exact" | "inferred" | "thread" | "mixed";

export interface FindingSetting {
  readonly system: SettingSystem;
  readonly key: string;
  readonly yaml: string;
  readonly scope: string;
  readonly side_effects: string;
}

export interface Finding {
  readonly id: string;
  readonly title: string;
  readonly severity: Severity;
  readonly share_percent: number;
  readonly low: number;
  readonly high: number;
  /** Never more than was measured; null where nothing can be said. */
  readonly saving: { readonly percent_max: number; readonly us_per_request_max: number | null } | null;
  readonly evidence: readonly {
    readonly frame: string;
    readonly share_percent: number;
    readonly samples: number;
  }[];
  readonly reason: string;
  /** What the program's own configuration says now. */
  readonly configured: string | null;
  readonly settings: readonly FindingSetting[];
  readonly confidence: Confidence;
  readonly cells: readonly { readonly feature: string | null; readonly mechanism: string | null }[];
}

export interface Diagnosis {
  readonly version: number;
  readonly verdict: string;
  readonly rules: { readonly version: number; readonly user_file: string | null };
  readonly processes: readonly DiagnosedProcess[];
  readonly window: { readonly from_ns: number; readonly to_ns: number; readonly duration_s: number };
  readonly coverage: Coverage;
  readonly totals: Totals;
  readonly matrix: Matrix;
  readonly workers: Workers | null;
  readonly event_loop: EventLoop | null;
  readonly network: NetworkPart | null;
  /** The largest saving first. */
  readonly findings: readonly Finding[];
  readonly good: readonly { readonly id: string; readonly title: string; readonly text: string }[];
  readonly configuration: {
    readonly source: string;
    readonly version: string | null;
    readonly concurrency: number | null;
    readonly items: readonly { readonly key: string; readonly value: string }[];
  } | null;
  readonly not_measured: readonly Measurement[];
  readonly limits: readonly string[];
}

/** A part of the evidence that a diagnosis may lack; no check-up measures latency. */
export type Measurement =
  | "latency"
  | "waits"
  | "connections"
  | "event_loops"
  | "cpu_time"
  | "requests"
  | "configuration";

export interface ComparedTotal {
  readonly a: number;
  readonly b: number;
  readonly change_percent: number;
  readonly low: number;
  readonly high: number;
  readonly significant: boolean;
}

export interface ComparedRow {
  readonly feature: string;
  readonly a_percent: number;
  readonly b_percent: number;
  readonly a_us: number | null;
  readonly b_us: number | null;
  /** Points of percent, `b` minus `a`. */
  readonly change: number;
  readonly low: number;
  readonly high: number;
  readonly p: number | null;
  readonly significant: boolean;
}

export interface ComparedFinding {
  readonly id: string;
  readonly title: string;
}

export interface CheckupComparison {
  readonly a: string;
  readonly b: string;
  readonly totals: {
    readonly cpu_us_per_request: ComparedTotal | null;
    readonly cpu_cores: ComparedTotal | null;
  };
  readonly rows: readonly ComparedRow[];
  readonly findings: {
    readonly gone: readonly ComparedFinding[];
    readonly new: readonly ComparedFinding[];
    readonly still: readonly ComparedFinding[];
  };
  readonly verdict: string;
}
