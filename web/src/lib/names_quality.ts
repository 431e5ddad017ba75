// What the shares of named frames mean for a reader.

import type { NamesQuality, PoorModule } from "../api/types";
import { percent } from "./format";

/** From this share of unnamed frames on the reader is told that something can be done. */
const POOR_SHARE = 0.05;

/** What the share of named frames is, wherever it is shown. */
export const NAMED_FRAMES =
  "User frames that have a name, exact or inferred; a frame counts once for each sample that has it";

export interface NamesSummary {
  /** On the button: "93.1 % named". */
  readonly title: string;
  /** The whole truth: "93.1 % exact, 2.0 % inferred, 4.9 % without a name". */
  readonly detail: string;
  readonly poor: boolean;
}

export function summarize(names: NamesQuality): NamesSummary {
  const { frames, exact, inferred, unnamed } = names;
  if (frames === 0) return { title: "Names", detail: "no user frames", poor: false };
  const parts = [`${percent(exact, frames)} exact`];
  if (inferred > 0) parts.push(`${percent(inferred, frames)} inferred`);
  parts.push(`${percent(unnamed, frames)} without a name`);
  return {
    title: `${percent(exact + inferred, frames)} named`,
    detail: parts.join(", "),
    poor: unnamed / frames >= POOR_SHARE,
  };
}

/** Files that a symbol file can be given for, those that gain most first. */
export function improvable(names: NamesQuality): readonly PoorModule[] {
  return names.modules.filter((module) => module.build_id !== null);
}

const SOURCE_TEXT: Readonly<Record<string, string>> = {
  none: "no name",
  elf_symbol: "ELF symbols",
  dwarf: "debug information",
  vdso: "vdso",
  perf_map: "perf maps",
  imported: "imported",
  inferred: "inferred",
  debug_file: "separate debug files",
  mini_debug: ".gnu_debugdata",
  debuginfod: "debuginfod",
  go_table: "Go's table",
  symbol_pack: "symbol files",
};

/** Name of a source as people say it; one that is not known yet as the agent says it. */
export function sourceText(source: string): string {
  return SOURCE_TEXT[source] ?? source;
}
