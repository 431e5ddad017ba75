// Copies texts, and says for a moment what was copied.

import { signal } from "@preact/signals";

/** What was copied last, or could not be; empty when there is nothing to say any more. */
export const copied = signal<{ readonly text: string; readonly ok: boolean } | null>(null);

const SHOWN_MS = 2_500;
let timer: ReturnType<typeof setTimeout> | undefined;

function say(text: string, ok: boolean): void {
  clearTimeout(timer);
  copied.value = { text, ok };
  timer = setTimeout(() => {
    copied.value = null;
  }, SHOWN_MS);
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`, true);
  } catch {
    say(`${what} could not be copied: the browser refused`, false);
  }
}

/** Copies what the agent is still being asked for: browsers allow it only at once, with the text to come. */
export async function copyAnswer(answer: Promise<string>, what: string): Promise<void> {
  try {
    const blob = answer.then((text) => new Blob([text], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    say(`${what} copied`, true);
  } catch {
    const reason = await answer.then(
      () => "the browser refused",
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    say(`${what} could not be copied: ${reason}`, false);
  }
}

/** The address of the view; the token is never in it. */
export function copyLink(): Promise<void> {
  return copyText(location.origin + location.pathname + location.search, "Link");
}
