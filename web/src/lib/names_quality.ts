// What the shares of named frames mean for a reader.

import type { NamesQuality, PoorModule } from "../api/types";
import { percent } from "./format";

/** From this share of unnamed frames on the page suggests a remedy. */
const POOR_SHARE = 0.05;

/** What the share of named frames is, wherever it is shown. */
export const NAMED_FRAMES =
  "User frames that have a name of a function, exact or inferred; a frame counts once for each sample that has it";

export interface NamesSummary {
  /** On the button: "93.1 % named". */
  readonly title: string;
  /** The whole truth: "93.1 % exact, 2.0 % inferred, 4.9 % without a name". */
  readonly detail: string;
  readonly poor: boolean;
}

export function summarize(names: NamesQuality): NamesSummary {
  const { frames, exact, inferred } = names;
  if (frames === 0) return { title: "Names", detail: "no user frames", poor: false };
  return {
    title: `${percent(exact + inferred, frames)} named`,
    detail: classes(names).join(", "),
    poor: isPoor(names),
  };
}

/** The share of each class of frames; those that native programs lack only where there are some. */
export function classes(names: NamesQuality): readonly string[] {
  const { frames, exact, inferred, interpreter, jit, unnamed } = names;
  const parts = [`${percent(exact, frames)} exact`];
  if (inferred > 0) parts.push(`${percent(inferred, frames)} inferred`);
  if (interpreter > 0) parts.push(`${percent(interpreter, frames)} the loop of an interpreter`);
  if (jit > 0) parts.push(`${percent(jit, frames)} made at run time without a perf map`);
  parts.push(`${percent(unnamed, frames)} without a name`);
  return parts;
}

/** Whether many frames do not say which function ran. */
export function isPoor({ frames, interpreter, jit, unnamed }: NamesQuality): boolean {
  return (interpreter + jit + unnamed) / frames >= POOR_SHARE;
}

/** What a runtime lacks, and what gives its functions names; those that hardly matter are left out. */
export function runtimeNotes(names: NamesQuality): readonly string[] {
  const { frames, samples } = names;
  return names.runtimes
    .filter((gap) => gap.frames / frames >= 0.01 || gap.samples / samples >= 0.1)
    .map(
      (gap) =>
        `${gap.runtime}: ${percent(gap.frames, frames)} of user frames, in ${percent(gap.samples, samples)} of samples, do not say which function ran; ${gap.remedy}.`,
    );
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
