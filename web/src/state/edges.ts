// The edges of a task or of the node, live while they change.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import { readEvents } from "../api/events";
import type { EdgeTable } from "../api/types";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 15_000;

export interface LiveEdges<T> {
  /** Null before the first. */
  readonly table: T | null;
  readonly error: string | null;
}

/** Whether the page is visible: a hidden one costs the node nothing. */
function useVisible(): boolean {
  const [visible, setVisible] = useState(document.visibilityState !== "hidden");
  useEffect(() => {
    const look = (): void => setVisible(document.visibilityState !== "hidden");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return visible;
}

/**
 * The table at `path` below /api/v1. While `live` it is followed by the stream beside it, which is opened
 * again when it breaks; a table replaces the one before.
 */
export function useEdges<T extends EdgeTable>(path: string, live: boolean): LiveEdges<T> {
  const [edges, setEdges] = useState<LiveEdges<T>>({ table: null, error: null });
  const visible = useVisible();
  useEffect(() => {
    if (!visible) return;
    const stop = new AbortController();
    const { signal } = stop;
    const take = (table: T): void => {
      if (!signal.aborted) setEdges({ table, error: null });
    };
    const refuse = (error: unknown): void => {
      if (signal.aborted) return;
      const text = error instanceof ProblemError ? error.message : "the agent does not answer";
      setEdges(({ table }) => ({ table, error: text }));
    };
    const follow = async (): Promise<void> => {
      let delay = FIRST_RETRY_MS;
      while (!signal.aborted) {
        try {
          await readEvents(
            `${path}/events`,
            ({ event, data }) => {
              if (event === "edges") take(JSON.parse(data) as T);
            },
            () => {
              delay = FIRST_RETRY_MS;
            },
            signal,
          );
        } catch (error) {
          refuse(error);
        }
        if (signal.aborted) return;
        await new Promise((resolve) => setTimeout(resolve, delay));
        delay = Math.min(delay * 2, LAST_RETRY_MS);
      }
    };
    if (live) void follow();
    else api.edges<T>(path, signal).then(take, refuse);
    return () => stop.abort();
  }, [path, live, visible]);
  return edges;
}
