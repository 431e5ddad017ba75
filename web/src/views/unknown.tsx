// An unknown number, with the reason.

import { visible } from "../lib/format";

export function Unknown({ why, word = "unknown" }: { why: string; word?: string }) {
  return (
    <span class="unknown-value" title={visible(why)}>
      {word}
    </span>
  );
}
