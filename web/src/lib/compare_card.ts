// What a change has done, as the lines of a card to be shown to others.

import type { CheckupComparison } from "../api/types";
import { sortedRows, totalText } from "./checkup_compare";
import { micros } from "./diagnosis";
import { duration, visible } from "./format";

/** Rows of features on the card. */
const MOST_ROWS = 5;
/** Columns of its widest text. */
const COLUMNS = 84;

export interface CardLine {
  readonly kind: "title" | "text" | "number" | "muted";
  readonly text: string;
}

/** Words in lines of at most `columns` letters. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word.slice(0, columns));
  }
  return lines;
}

/** `target`: what was measured; `moments`: when, before and after. */
export function cardLines(
  comparison: CheckupComparison,
  target: string,
  moments: readonly [string, string],
): CardLine[] {
  const { latency, totals, rows, findings, verdict } = comparison;
  const lines: CardLine[] = [{ kind: "title", text: visible(target) }];
  lines.push({ kind: "muted", text: `${moments[0]} → ${moments[1]}` });
  for (const text of wrapped(visible(verdict), COLUMNS)) lines.push({ kind: "text", text });
  if (latency !== null) {
    const { process, a, b } = latency;
    const change = (from: number, to: number): string => `${duration(from)} → ${duration(to)}`;
    const text = `Requests to ${visible(process)}: ${change(a.mean_ns, b.mean_ns)} mean, p95 ${change(a.p95_ns, b.p95_ns)}`;
    lines.push({ kind: "number", text });
  }
  const { cpu_us_per_request: each, cpu_cores: cores } = totals;
  if (each !== null)
    lines.push({
      kind: "number",
      text: `CPU of one request: ${micros(each.a)} → ${micros(each.b)}, ${totalText(each)}`,
    });
  if (cores !== null)
    lines.push({
      kind: "number",
      text: `CPU: ${cores.a.toFixed(2)} → ${cores.b.toFixed(2)} cores, ${totalText(cores)}`,
    });
  for (const row of sortedRows(rows)
    .filter(({ significant }) => significant)
    .slice(0, MOST_ROWS)) {
    // What was tested is the share.
    const share = `${row.a_percent.toFixed(1)} → ${row.b_percent.toFixed(1)} % of the CPU`;
    lines.push({ kind: "text", text: `${visible(row.title)}: ${share}` });
  }
  for (const [title, list] of [
    ["Gone", findings.gone],
    ["New", findings.new],
  ] as const)
    if (list.length > 0) {
      const all = `${title}: ${list.map((finding) => visible(finding.title)).join(", ")}`;
      for (const text of wrapped(all, COLUMNS)) lines.push({ kind: "text", text });
    }
  return lines;
}
