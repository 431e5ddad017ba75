// How good names of a process will be, in two words, and what would make them better.

import type { ProcessFile, ProcessSymbols } from "../api/types";

export type SymbolLevel = "full" | "names" | "exported" | "none" | "refused";

export interface SymbolVerdict {
  readonly level: SymbolLevel;
  readonly text: string;
  /** Why, and what is missing. */
  readonly reason: string;
  /** Files whose names could be better. */
  readonly lacking: number;
}

export function levelOf(file: ProcessFile): SymbolLevel {
  if (file.refusal !== null) return "refused";
  if (file.names_from.length === 0) return "none";
  if (!file.complete) return "exported";
  return file.lines ? "full" : "names";
}

export const LEVEL_TEXT: Readonly<Record<SymbolLevel, string>> = {
  full: "Names, lines",
  names: "Names",
  exported: "Partial symbols (rest inferred)",
  none: "No names",
  refused: "Not usable",
};

const LEVEL_REASON: Readonly<Record<SymbolLevel, string>> = {
  full: "The program has names for its functions, with source lines and inlined calls.",
  names: "The program has names for its functions, without source lines.",
  exported:
    "Only exported functions have names of their own. In C++ programs others are inferred from what the code refers to; the rest appears as file and offset. Each result says how many of its frames are named.",
  none: "The program has no names at all; its functions appear as file and offset.",
  refused: "The program's file cannot be used.",
};

/** The verdict is that of the program itself, which is the first file. */
export function verdictOf(symbols: ProcessSymbols): SymbolVerdict {
  const lacking = symbols.files.filter((file) => file.remedy !== "").length;
  if (symbols.refusal !== null)
    return { level: "refused", text: LEVEL_TEXT.refused, reason: symbols.refusal, lacking };
  const [program] = symbols.files;
  if (program === undefined)
    return { level: "none", text: "unknown", reason: "It executes no file that could be read.", lacking };
  const level = levelOf(program);
  const parts = [LEVEL_REASON[level]];
  if (program.refusal !== null) parts.push(`Because ${program.refusal}.`);
  if (program.remedy !== "") parts.push(`To fix: ${program.remedy}.`);
  const others = lacking - (program.remedy === "" ? 0 : 1);
  if (others > 0) parts.push(`${others} of its ${symbols.files.length - 1} libraries lack names too.`);
  return { level, text: LEVEL_TEXT[level], reason: parts.join(" "), lacking };
}
