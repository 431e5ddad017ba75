// What the kernel counted of requests, where not all of them were captured.

import type { RequestCount, TaskRequests } from "../api/types";
import { count } from "./format";

/** Rows of the table, of one edge where `edge` is not empty; none where every request was captured. */
export function rowsOf(answer: TaskRequests, edge: string): readonly RequestCount[] {
  if (answer.sampled_one_of <= 1) return [];
  return answer.counted.filter((row) => edge === "" || row.edge.id === edge);
}

/** The sums over edges; `exact`: no request is known to be missing. */
export function countedSum(rows: readonly RequestCount[]): {
  requests: number;
  errors: number;
  unknown: number;
  exact: boolean;
} {
  return {
    requests: rows.reduce((sum, row) => sum + row.count, 0),
    errors: rows.reduce((sum, row) => sum + row.errors, 0),
    unknown: rows.reduce((sum, row) => sum + row.unknown, 0),
    exact: rows.every((row) => row.exact),
  };
}

/** Requests that failed, and those whose status is not known. */
export function failedText({ count: all, errors, unknown }: RequestCount): string {
  if (unknown === 0) return count(errors);
  return unknown === all ? "unknown" : `${count(errors)}, ${count(unknown)} unknown`;
}
