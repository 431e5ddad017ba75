// The comparison of the open task with its base: fetched, decoded, and fetched again while one of
// them runs. The old picture stays until the new one is ready.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type DiffSide, diffPath, ProblemError } from "../api/client";
import type { ChangedFunctions } from "../api/types";
import { type DiffGraph, decodeDiff, type Norm } from "../lib/diff";
import { type DiffIndex, indexDiff, isBelow } from "../lib/diff_index";
import { pathKey } from "../lib/flame_index";
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

export function useDiff(a: DiffSide, b: DiffSide, norm: Norm, running: boolean): Diff {
  const [graph, setGraph] = useState<DiffGraph | null>(null);
  const [error, setError] = useState<string | null>(null);
  // One answer has both shares and rates.
  const path = diffPath(a, b, { format: "flamegraph" });
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
  const index = useMemo(() => (graph === null ? null : indexDiff(graph, norm)), [graph, norm]);
  return { index, error };
}

export interface Changes {
  readonly table: ChangedFunctions | null;
  readonly error: string | null;
}

/** The functions below a node of the graph, judged by the agent; asked for again with each new graph. */
export function useChanges(a: DiffSide, b: DiffSide, index: DiffIndex, root: number): Changes {
  const [found, setFound] = useState<{ of: string; table: ChangedFunctions } | null>(null);
  const [error, setError] = useState<string | null>(null);
  // The number of a node is not the same in the next graph, its path is.
  const of = `${diffPath(a, b, { format: "table", norm: index.norm, below: 0 })} ${pathKey(index.flame, root)}`;
  useEffect(() => {
    const stop = new AbortController();
    const load = async (): Promise<void> => {
      try {
        const table = await api.changes(a, b, index.norm, root, stop.signal);
        if (stop.signal.aborted) return;
        setError(null);
        // Otherwise the result has grown since; the next graph is on its way.
        if (root === 0 || isBelow(table, index, root)) setFound({ of, table });
      } catch (problem) {
        if (!stop.signal.aborted) setError(messageOf(problem));
      }
    };
    void load();
    return () => stop.abort();
  }, [of, index]);
  return { table: found?.of === of ? found.table : null, error };
}
