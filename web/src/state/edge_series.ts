// The series of one edge, again each few seconds while it grows.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { EdgeSeries } from "../api/types";

const AGAIN_MS = 2_000;
/** The agent reads a long measurement for the answer: at most one part of the time in this many. */
const SHARE = 10;

export interface LiveSeries {
  /** What was asked for last; the one before stays until it is there. Null before the first. */
  readonly series: EdgeSeries | null;
  readonly error: string | null;
}

/** `path` below /api/v1, up to the edge; null asks for nothing. A range without an end grows while `live`. */
export function useEdgeSeries(
  path: string | null,
  from: number | null,
  to: number | null,
  live: boolean,
): LiveSeries {
  const [state, setState] = useState<LiveSeries>({ series: null, error: null });
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const params = new URLSearchParams();
    if (from !== null) params.set("from", String(from));
    if (to !== null) params.set("to", String(to));
    const query = params.toString();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      const asked = performance.now();
      if (document.visibilityState !== "hidden") {
        try {
          const series = await api.edges<EdgeSeries>(
            `${path}/series${query === "" ? "" : `?${query}`}`,
            stop.signal,
          );
          if (stop.signal.aborted) return;
          setState({ series, error: null });
        } catch (error) {
          if (stop.signal.aborted) return;
          const text = error instanceof ProblemError ? error.message : "the agent does not answer";
          setState(({ series }) => ({ series, error: text }));
        }
      }
      const pause = Math.max(AGAIN_MS, (performance.now() - asked) * SHARE);
      if (live && to === null && !stop.signal.aborted) timer = setTimeout(() => void load(), pause);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, from, to, live]);
  return state;
}
