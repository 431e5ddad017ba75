// Edges over time, by the schemas of the same names in docs/http-api.json.

/** Values in buckets, for each step of a series. */
export interface ValueSeries {
  readonly count: readonly number[];
  readonly sum: readonly number[];
  readonly bounds: readonly number[];
  /** Buckets that are not empty: number and count. */
  readonly buckets: readonly (readonly (readonly [number, number])[])[];
}

export interface CallSeries {
  readonly count: readonly number[];
  readonly bytes: readonly number[];
  readonly time: ValueSeries | null;
}

export interface NamedSeries {
  readonly count: readonly number[];
  readonly by_name: Readonly<Record<string, readonly number[]>>;
}

/** One end of an edge over time: one number for each step. */
export interface SideSeries {
  readonly connections: readonly number[];
  readonly open: readonly number[];
  readonly write: CallSeries | null;
  readonly read: CallSeries | null;
  readonly connect: ValueSeries | null;
  readonly connects_failed: readonly number[] | null;
  readonly accept: ValueSeries | null;
  readonly close: ValueSeries | null;
  readonly write_rtt_us: ValueSeries | null;
  readonly receive_wait: ValueSeries | null;
  readonly retransmit: readonly number[] | null;
  readonly drop: NamedSeries | null;
  readonly reset: { readonly sent: readonly number[]; readonly received: readonly number[] } | null;
  readonly error: NamedSeries | null;
}

/** One edge over time; sums over steps are exact. */
export interface EdgeSeries {
  readonly edge: string;
  /** Milliseconds since counting began: from, and to. */
  readonly steps_ms: readonly (readonly [number, number])[];
  readonly client: SideSeries | null;
  readonly server: SideSeries | null;
  readonly unavailable: Readonly<Record<string, string>>;
  readonly late_steps: number;
  readonly left_out: number;
  readonly damaged: number;
}
