// The series of one edge, again each few seconds while it grows.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { EdgeSeries } from "../api/types";

const AGAIN_MS = 2_000;

export interface LiveSeries {
  /** What was asked for last; the one before stays until it is there. Null before the first. */
  readonly series: EdgeSeries | null;
  readonly error: string | null;
}

/** `path` below /api/v1, up to the edge. A range without an end grows while `live`. */
export function useEdgeSeries(
  path: string,
  from: number | null,
  to: number | null,
  live: boolean,
): LiveSeries {
  const [state, setState] = useState<LiveSeries>({ series: null, error: null });
  useEffect(() => {
    const stop = new AbortController();
    const params = new URLSearchParams();
    if (from !== null) params.set("from", String(from));
    if (to !== null) params.set("to", String(to));
    const query = params.toString();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
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
      if (live && to === null) timer = setTimeout(() => void load(), AGAIN_MS);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, from, to, live]);
  return state;
}
