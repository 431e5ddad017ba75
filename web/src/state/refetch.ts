// Asks the agent again and again while a task runs.

import { useEffect, useState } from "preact/hooks";

/** Resolves when the page can be seen: a hidden one costs the node nothing. */
export function whenVisible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState !== "hidden") return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.visibilityState === "hidden" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}

/**
 * The last answer of `load`, `initial` before the first. It is asked once, again after `everyMs` as long
 * as `running` holds, and anew when one of `keys` changes. An error keeps the last answer: what uses this
 * is an extra, and the page around it says what is wrong.
 */
export function useRefetched<T>(
  initial: T,
  load: (signal: AbortSignal) => Promise<T>,
  running: boolean,
  everyMs: number,
  keys: readonly unknown[],
): T {
  const [answer, setAnswer] = useState<T>(initial);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      await whenVisible(stop.signal);
      if (stop.signal.aborted) return;
      try {
        const loaded = await load(stop.signal);
        if (!stop.signal.aborted) setAnswer(() => loaded);
      } catch {
        // Kept as it was.
      }
      if (running && !stop.signal.aborted) timer = setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [running, ...keys]);
  return answer;
}
