// What the kernel counted of requests, where not all of them were captured.

import type { RequestCount, TaskRequests } from "../api/types";

/** Rows of the table, of one edge where `edge` is not empty; none where every request was captured. */
export function rowsOf(answer: TaskRequests, edge: string): readonly RequestCount[] {
  if (answer.sampled_one_of <= 1) return [];
  return answer.counted.filter((row) => edge === "" || row.edge.id === edge);
}

/** The sums over edges; `exact`: no request is known to be missing. */
export function countedSum(rows: readonly RequestCount[]): {
  requests: number;
  errors: number;
  exact: boolean;
} {
  return {
    requests: rows.reduce((sum, row) => sum + row.count, 0),
    errors: rows.reduce((sum, row) => sum + row.errors, 0),
    exact: rows.every((row) => row.exact),
  };
}
