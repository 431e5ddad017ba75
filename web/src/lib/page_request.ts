// The request behind a page, for those who want the same from a shell.

import { comparisonPath, diagnosisPath } from "./checkup_paths";
import type { PageState } from "./query_state";
import { shellWord } from "./task_spec";

/** Path below /api/v1 that the page shows. */
export function pagePath(state: PageState): string {
  switch (state.view) {
    case "overview":
      return "/overview";
    case "pods":
      return "/pods";
    case "processes":
      return state.kernel ? "/processes?kernel=true" : "/processes";
    case "tasks":
      return "/tasks";
    case "group":
      return `/tasks?group=${encodeURIComponent(state.id)}`;
    case "task":
      if (state.base !== "") return comparison(state);
      return `/tasks/${encodeURIComponent(state.id)}`;
    case "diagnose":
      return "/checkups";
    case "checkup":
      return diagnosisPath({ of: "checkups", id: state.id, pid: state.pid });
    case "diagnosis":
      return diagnosisPath({ of: "tasks", id: state.id, pid: state.pid, from: state.from, to: state.to });
    case "compare-checkups":
      return comparisonPath(state.a, state.b, state.scope);
    case "network":
      return "/network/edges";
    case "node":
      return "/self";
    default:
      return "/meta";
  }
}

/** The table of what changed, cut as the page cuts it. */
function comparison({ id, base, from, to, baseFrom, baseTo, tids, except, norm }: PageState): string {
  const params = new URLSearchParams({ a: base, b: id, norm });
  const time = { a_from: baseFrom, a_to: baseTo, b_from: from, b_to: to };
  for (const [name, ms] of Object.entries(time)) if (ms !== null) params.set(name, String(ms));
  const threads = except ? "not_tid" : "tid";
  for (const tid of tids) {
    // Threads of another task have other numbers.
    if (base === id) params.append(`a_${threads}`, String(tid));
    params.append(`b_${threads}`, String(tid));
  }
  return `/diff?${params}`;
}

/** A curl command; the token stays out of it. */
export function getWithCurl(path: string, origin: string): string {
  return `curl -sS -H "Authorization: Bearer $PROFILER_TOKEN" \\\n  ${shellWord(`${origin}/api/v1${path}`)}`;
}
