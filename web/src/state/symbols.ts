// Symbol files change the names of results that are shown already: who shows one looks at the
// revision here and fetches again when it changes.

import { signal } from "@preact/signals";
import { api, type ProfileCut } from "../api/client";
import type { NamesQuality } from "../api/types";
import { useRefetched } from "./refetch";

/** Counts uploads and deletions of symbol files on this page. */
export const symbolsRevision = signal(0);

const REFETCH_MS = 5_000;

/** How many names the shown part of a result has; null until it is known. */
export function useNames(id: string, cut: ProfileCut, running: boolean): NamesQuality | null {
  const load = async (signal: AbortSignal) => (await api.quality(id, cut, signal)).names;
  const keys = [id, JSON.stringify(cut), symbolsRevision.value];
  return useRefetched<NamesQuality | null>(null, load, running, REFETCH_MS, keys);
}
