// What the open task's threads waited for, in sums: for the idle line and the filters.

import { useEffect, useState } from "preact/hooks";
import { api, type ProfileCut } from "../api/client";
import type { Waits } from "../api/types";

const REFETCH_MS = 4_000;

/** Null before the first answer. */
export function useWaits(id: string, cut: ProfileCut, running: boolean): Waits | null {
  const [waits, setWaits] = useState<Waits | null>(null);
  const idle = cut.waits?.idle ?? "show";
  const key = JSON.stringify([cut.from, cut.to, cut.tids, cut.except, idle]);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      try {
        const answer = await api.waits(id, cut, stop.signal);
        if (!stop.signal.aborted) setWaits(answer);
      } catch {
        // The sums stay as they were; the page shows the connection's state elsewhere.
      }
      if (running && !stop.signal.aborted) timer = setTimeout(load, REFETCH_MS);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, key, running]);
  return waits;
}
