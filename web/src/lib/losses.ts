// The agent's losses in the header: each kind by itself, because they count different things.

import type { Loss } from "../api/types";
import { count, plural } from "./format";

export interface LossChip {
  readonly text: string;
  /** Each kind with what it means. */
  readonly detail: string;
  /** Something that a result lacks was lost within the last seconds. */
  readonly isLosing: boolean;
}

/** Nothing is missing of a result by these: what did not fit is sent again, or was sent twice. */
const HARMLESS: ReadonlySet<string> = new Set(["ring_buffer_full", "stack_table_full", "thread_table_full"]);

const inWords = (kind: string): string => kind.replaceAll("_", " ");

/** `before`: the losses of some seconds ago; null when they are not known, and nothing is said of now. */
export function lossChip(losses: readonly Loss[], before: readonly Loss[] | null): LossChip {
  if (losses.length === 0)
    return { text: "nothing lost", detail: "Nothing was lost since the agent started", isLosing: false };
  const earlier = new Map((before ?? losses).map((loss) => [loss.kind, loss.count]));
  const growing = losses.filter(
    ({ kind, count: now }) => !HARMLESS.has(kind) && now > (earlier.get(kind) ?? 0),
  );
  const sorted = [...(growing.length > 0 ? growing : losses)].sort((a, b) => b.count - a.count);
  const [first, ...others] = sorted as [Loss, ...Loss[]];
  const more = others.length === 0 ? "" : ` + ${plural(others.length, "kind")}`;
  const rise = first.count - (earlier.get(first.kind) ?? 0);
  return {
    text:
      growing.length > 0
        ? `losing: ${count(rise)} ${inWords(first.kind)}${more}`
        : `${count(first.count)} ${inWords(first.kind)}${more}`,
    detail: losses
      .map((loss) => `${count(loss.count)} ${inWords(loss.kind)} since the start: ${loss.meaning}`)
      .join("\n"),
    isLosing: growing.length > 0,
  };
}
