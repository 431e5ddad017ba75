// What the agent says of its own programs, maps, features and settings.

export interface KernelProgram {
  readonly id: number;
  readonly name: string;
  readonly run_count: number | null;
  readonly run_time_ns: number | null;
  readonly missed_runs: number;
  readonly verified_instructions: number | null;
  readonly memory_bytes: number;
}

export interface KernelMap {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  readonly max_entries: number;
  /** Null: `reason` says why. */
  readonly entries: number | null;
  readonly reason: string | null;
  readonly memory_bytes: number;
}

/** What the agent holds in the kernel now. */
export interface KernelObjects {
  readonly programs: readonly KernelProgram[];
  readonly maps: readonly KernelMap[];
  readonly statistics: {
    readonly on: boolean;
    readonly by: "agent" | "kernel" | "request" | null;
    readonly seconds_left: number | null;
  };
}

export interface Feature {
  readonly name: string;
  readonly verdict: "ok" | "degraded" | "missing";
  readonly minimum_kernel: string;
  readonly detail: string;
  readonly remedy: string;
}

export interface Setting {
  readonly name: string;
  readonly value: string;
}
