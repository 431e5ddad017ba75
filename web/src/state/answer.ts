// One answer of the agent for a page: asked for once, again while it is not final, and kept when a later
// try fails.

import { useLayoutEffect, useState } from "preact/hooks";
import { ProblemError } from "../api/client";
import { whenVisible } from "./refetch";

export interface Answer<T> {
  /** Null before the first answer. */
  readonly value: T | null;
  /** Why the last try failed. */
  readonly failure: Failure | null;
}

export interface Failure {
  readonly detail: string;
  readonly hint: string | undefined;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof ProblemError) return { detail: error.message, hint: error.problem.hint };
  return { detail: "The agent does not answer.", hint: undefined };
}

const AGAIN_MS = 2_000;
/** Time between answers, in times of what one took: a large one is asked for less often. */
const REST = 8;

/** `again` says of an answer that another is worth asking for; `keys` name what is asked for; `againMs` is the least time between two questions. */
export function useAnswer<T>(
  load: (signal: AbortSignal) => Promise<T>,
  again: (value: T) => boolean,
  keys: readonly unknown[],
  againMs: number = AGAIN_MS,
): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, failure: null });
  // Before the page is painted: the answer is what is waited for.
  useLayoutEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    setAnswer((before) =>
      before.value === null && before.failure === null ? before : { value: null, failure: null },
    );
    const ask = async (): Promise<void> => {
      await whenVisible(stop.signal);
      if (stop.signal.aborted) return;
      const asked = performance.now();
      try {
        const value = await load(stop.signal);
        if (stop.signal.aborted) return;
        setAnswer({ value, failure: null });
        const rest = Math.max(againMs, (performance.now() - asked) * REST);
        if (again(value)) timer = setTimeout(ask, rest);
      } catch (error) {
        if (stop.signal.aborted) return;
        setAnswer((before) => ({ ...before, failure: failureOf(error) }));
        // What the agent refuses it refuses again; silence may end.
        if (!(error instanceof ProblemError)) timer = setTimeout(ask, AGAIN_MS);
      }
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, keys);
  return answer;
}
