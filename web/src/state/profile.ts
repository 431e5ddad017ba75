// The profile of the open task: fetched, decoded, and fetched again while the task runs. The old
// picture stays until the new one is ready.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError, type ProfileCut, UnreachableError } from "../api/client";
import { type FlameIndex, indexFlameGraph } from "../lib/flame_index";
import { decodeFlameGraph, FlameFormatError } from "../lib/flamegraph";
import { tasks } from "./live";
import { whenVisible } from "./refetch";
import { symbolsRevision } from "./symbols";

export interface Profile {
  readonly index: FlameIndex | null;
  /** `performance.now()` when the bytes were complete. */
  readonly arrivedAt: number | null;
  readonly error: string | null;
}

const REFETCH_MS = 2_000;
/** After no answer. */
const RETRY_MS = 5_000;

function messageOf(error: unknown): string {
  if (error instanceof ProblemError) return error.message;
  if (error instanceof FlameFormatError) return `The agent's answer could not be read: ${error.message}`;
  return error instanceof UnreachableError ? `No answer: ${error.message}.` : "The agent does not answer.";
}

/** `features` asks for the feature of each frame. `running` fetches again each 2 s, and once more when it turns false. */
export function useProfile(
  id: string,
  cut: ProfileCut,
  features: boolean,
  running: boolean,
  ready: boolean,
): Profile {
  const [profile, setProfile] = useState<Profile>({ index: null, arrivedAt: null, error: null });
  const cutKey = JSON.stringify(cut);
  const symbols = symbolsRevision.value;
  useEffect(() => {
    if (!ready) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let had: number | undefined;
    const load = async (): Promise<void> => {
      await whenVisible(stop.signal);
      if (stop.signal.aborted) return;
      // The events tell how much the task has: the same picture is not fetched twice.
      const has = tasks.peek()?.get(id)?.samples;
      if (has !== undefined && has === had) {
        timer = setTimeout(load, REFETCH_MS);
        return;
      }
      try {
        const bytes = await api.profileBytes(id, cut, features, stop.signal);
        const arrivedAt = performance.now();
        const index = indexFlameGraph(decodeFlameGraph(bytes));
        if (!stop.signal.aborted) setProfile({ index, arrivedAt, error: null });
        had = has;
      } catch (error) {
        if (stop.signal.aborted) return;
        // A running task that has no samples yet is not an error worth taking the picture away for.
        setProfile((before) => ({ ...before, error: messageOf(error) }));
        if (error instanceof UnreachableError) timer = setTimeout(load, RETRY_MS);
      }
      if (running && !stop.signal.aborted) {
        clearTimeout(timer);
        timer = setTimeout(load, REFETCH_MS);
      }
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, cutKey, features, running, ready, symbols]);
  return profile;
}
