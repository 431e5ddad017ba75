// The request behind a page, for those who want the same from a shell.

import type { PageState } from "./query_state";
import { shellWord } from "./task_spec";

/** Path below /api/v1 that the page shows. */
export function pagePath(state: PageState): string {
  switch (state.view) {
    case "pods":
      return "/pods";
    case "processes":
      return state.kernel ? "/processes?kernel=true" : "/processes";
    case "tasks":
      return "/tasks";
    case "group":
      return `/tasks?group=${encodeURIComponent(state.id)}`;
    case "task":
      return `/tasks/${encodeURIComponent(state.id)}`;
    case "network":
      return "/network/edges";
    case "node":
      return "/self";
    default:
      return "/meta";
  }
}

/** A curl command; the token stays out of it. */
export function getWithCurl(path: string, origin: string): string {
  return `curl -sS -H "Authorization: Bearer $PROFILER_TOKEN" \\\n  ${shellWord(`${origin}/api/v1${path}`)}`;
}
