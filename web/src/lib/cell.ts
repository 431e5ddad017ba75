// The part of a profile that belongs to one cell of a diagnosis' matrix, as it stands in addresses:
// `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`. Features may have a colon themselves (`filter:lua`).

export interface Cell {
  /** Null for every feature. */
  readonly feature: string | null;
  /** Null for every mechanism. */
  readonly mechanism: string | null;
}

/** The mechanisms of the attribution rules; which samples they mean is the agent's to say. */
const MECHANISMS: ReadonlySet<string> = new Set([
  "parse",
  "crypto",
  "allocation",
  "copy",
  "hash_format",
  "lock",
  "syscall",
  "kernel_tcp",
  "netfilter",
  "scheduler",
  "page_fault",
  "other",
]);

/** Whether a text of an address can be a cell; which cells exist is the agent's to say. */
export function isCell(text: string): boolean {
  return /^[\w.:-]{1,160}$/.test(text) && !/^:*$/.test(text);
}

export function formatCell({ feature, mechanism }: Cell): string {
  return mechanism === null ? (feature ?? "") : `${feature ?? ""}:${mechanism}`;
}

export function parseCell(text: string): Cell {
  const at = text.lastIndexOf(":");
  if (at === -1) return { feature: text, mechanism: null };
  const mechanism = text.slice(at + 1);
  if (at === 0) return { feature: null, mechanism };
  return MECHANISMS.has(mechanism)
    ? { feature: text.slice(0, at), mechanism }
    : { feature: text, mechanism: null };
}

/** An id as words: `access_log_write` is "access log write", `filter:lua` is "filter lua". */
export function wordsOf(id: string): string {
  return id.replaceAll(/[_:]+/g, " ").trim();
}

/** A cell in words, for where the titles of the diagnosis are not known. */
export function cellText(text: string): string {
  const { feature, mechanism } = parseCell(text);
  return [feature, mechanism]
    .filter((id) => id !== null)
    .map(wordsOf)
    .join(" × ");
}
