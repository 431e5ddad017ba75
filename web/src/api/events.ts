// Live streams of the agent. A stream ends when the caller aborts it or when the
// connection breaks, and never reconnects by itself: `state/live.ts` decides that.

import { EventParser, type ServerEvent } from "../lib/sse";
import { noteSilence, request, UnreachableError } from "./client";

/** A stream that is silent for longer is dead: the agent sends a comment after 2 s. */
const SILENCE_LIMIT_MS = 4_500;

/** Reads events until the stream ends. Rejects like `request`, or when the stream breaks. */
export async function readEvents(
  path: string,
  deliver: (event: ServerEvent) => void,
  opened: () => void,
  signal: AbortSignal,
): Promise<void> {
  const init = { signal, headers: { Accept: "text/event-stream" } };
  const response = await request(path, init, SILENCE_LIMIT_MS).catch((error: unknown) => {
    if (error instanceof UnreachableError) noteSilence();
    throw error;
  });
  if (response.body === null) return;
  opened();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser(deliver);
  let silence: ReturnType<typeof setTimeout> | undefined;
  try {
    for (;;) {
      clearTimeout(silence);
      silence = setTimeout(() => {
        noteSilence();
        void reader.cancel();
      }, SILENCE_LIMIT_MS);
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    clearTimeout(silence);
    void reader.cancel().catch(() => {});
  }
}
