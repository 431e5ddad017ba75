// Copies a text; where the browser refuses, shows it for copying by hand.

import { useState } from "preact/hooks";
import { visible } from "../lib/format";

type Result = "none" | "copied" | "refused";

export function CopyButton({
  title,
  text,
  missing,
}: {
  title: string;
  text: string | null;
  /** Why there is no text. */
  missing?: string | undefined;
}) {
  const [result, setResult] = useState<Result>("none");
  const copy = async (): Promise<void> => {
    if (text === null) return;
    try {
      await navigator.clipboard.writeText(text);
      setResult("copied");
      setTimeout(() => setResult("none"), 1500);
    } catch {
      setResult("refused");
    }
  };
  return (
    <>
      <button
        type="button"
        class="quiet"
        disabled={text === null}
        title={text === null ? missing : visible(text)}
        onClick={copy}
      >
        {result === "copied" ? "Copied" : title}
      </button>
      {result === "refused" && text !== null && (
        <textarea class="mono copy-text" readOnly rows={4} aria-label={title} value={text} />
      )}
    </>
  );
}
