// The comparison of the open task with its base: fetched, decoded, and fetched again while one of
// them runs. The old picture stays until the new one is ready.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type DiffSide, diffPath, ProblemError } from "../api/client";
import { type DiffGraph, decodeDiff } from "../lib/diff";
import { type DiffIndex, indexDiff, type Norm } from "../lib/diff_index";
import { FlameFormatError } from "../lib/flamegraph";
import { whenVisible } from "./refetch";
import { symbolsRevision } from "./symbols";

export interface Diff {
  readonly index: DiffIndex | null;
  readonly error: string | null;
}

const REFETCH_MS = 3_000;

function messageOf(error: unknown): string {
  if (error instanceof ProblemError) return error.message;
  if (error instanceof FlameFormatError) return `The agent's answer could not be read: ${error.message}`;
  return "The agent does not answer.";
}

/** `sampled`: the numbers are samples of a clock, which tests apply to. */
export function useDiff(a: DiffSide, b: DiffSide, norm: Norm, sampled: boolean, running: boolean): Diff {
  const [graph, setGraph] = useState<DiffGraph | null>(null);
  const [error, setError] = useState<string | null>(null);
  // Shares and rates are computed here: one answer serves both.
  const path = diffPath(a, b, "flamegraph", "share");
  const symbols = symbolsRevision.value;
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      await whenVisible(stop.signal);
      if (stop.signal.aborted) return;
      try {
        const bytes = await api.diffBytes(a, b, stop.signal);
        if (stop.signal.aborted) return;
        setGraph(decodeDiff(bytes));
        setError(null);
      } catch (problem) {
        if (stop.signal.aborted) return;
        setError(messageOf(problem));
      }
      if (running) timer = setTimeout(load, REFETCH_MS);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, running, symbols]);
  const index = useMemo(
    () => (graph === null ? null : indexDiff(graph, norm, sampled)),
    [graph, norm, sampled],
  );
  return { index, error };
}
