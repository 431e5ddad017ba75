// How much of a target's CPU time has samples, by the schema of the same name in docs/http-api.json.

/** CPU time of the target's processes that were there at the end. */
export interface CpuCoverage {
  readonly sampled_ns: number;
  readonly accounted_ns: number;
  readonly percent: number;
  readonly processes: number;
}
