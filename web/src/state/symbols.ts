// Symbol files change the names of results that are shown already: who shows one looks at the
// revision here and fetches again when it changes.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { api, type ProfileCut } from "../api/client";
import type { NamesQuality } from "../api/types";

/** Counts uploads and deletions of symbol files on this page. */
export const symbolsRevision = signal(0);

const REFETCH_MS = 5_000;

/** How many names the shown part of a result has; null until it is known. */
export function useNames(id: string, cut: ProfileCut, running: boolean): NamesQuality | null {
  const [names, setNames] = useState<NamesQuality | null>(null);
  const cutKey = JSON.stringify(cut);
  const revision = symbolsRevision.value;
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      try {
        const quality = await api.quality(id, cut, stop.signal);
        if (!stop.signal.aborted) setNames(quality.names);
      } catch {
        // The number is an extra: the profile beside it says what is wrong.
      }
      if (running && !stop.signal.aborted) timer = setTimeout(load, REFETCH_MS);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, cutKey, running, revision]);
  return names;
}
