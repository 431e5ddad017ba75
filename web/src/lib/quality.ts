// How good a result is, in one line: whole stacks, names, losses, and what was too small to keep apart.

import type { NamesQuality, Task } from "../api/types";
import { count, percent } from "./format";
import { classes, isPoor, runtimeNotes } from "./names_quality";

export interface QualityPart {
  readonly title: string;
  readonly text: string;
  /** Everything behind the text. */
  readonly detail: string;
  readonly poor: boolean;
}

/** Below this share a part is marked. */
const GOOD_STACKS = 0.95;
/** Sampled of the CPU time: further from all of it, in percent, shares may be wrong. */
const FAR_FROM_ALL = 5;
/** Nor is it marked where chance may be the cause: so many standard deviations of as many samples. */
const CHANCE = 3;
const MUCH_MERGED = 0.02;
/** So much lost of what was recorded is worth a word. */
const MUCH_LOST = 0.01;

/** Losses that count samples of the target which are not in the result. */
export const LOST_SAMPLES: ReadonlySet<string> = new Set([
  "count_table_full",
  "kernel_read_failed",
  "pid_not_visible",
]);

/** What the button says that stands for the quality of a result. */
export interface ChipText {
  /** What is poor of it, or the first of its parts. */
  readonly text: string;
  /** All of it. */
  readonly whole: string;
  readonly poor: boolean;
}

/** The first of what is poor, and how much more is. */
function poorText(first: string, all: number): string {
  return `▲ ${first}${all > 1 ? ` and ${all - 1} more` : ""}`;
}

export function chipText(
  { coverage, stacks, losses, samples }: Pick<Task, "coverage" | "stacks" | "losses" | "samples">,
  names: NamesQuality | null,
): ChipText {
  const parts: { text: string; poor: boolean }[] = [];
  if (coverage !== null) {
    const { percent: sampled } = coverage;
    const chance = (100 * CHANCE) / Math.sqrt(Math.max(1, samples));
    const far = Math.abs(sampled - 100) > Math.max(FAR_FROM_ALL, chance);
    parts.push({ text: `CPU time ${sampled.toFixed(1)} %`, poor: far });
  }
  if (names !== null && names.frames > 0)
    parts.push({ text: `names ${percent(names.exact + names.inferred, names.frames)}`, poor: isPoor(names) });
  if (stacks.samples > 0) {
    const complete = stacks.complete / stacks.samples;
    parts.push({ text: `stacks ${percent(complete, 1)}`, poor: complete < GOOD_STACKS });
  }
  const lost = losses.reduce((sum, { kind, count }) => sum + (LOST_SAMPLES.has(kind) ? count : 0), 0);
  if (lost > MUCH_LOST * (samples + lost)) parts.push({ text: `${count(lost)} samples lost`, poor: true });
  const poor = parts.filter((part) => part.poor);
  const whole = parts.map(({ text }) => text).join(", ");
  const [first] = poor;
  return {
    text: first === undefined ? `Quality: ${parts[0]?.text ?? "–"}` : poorText(first.text, poor.length),
    whole: whole === "" ? "not known yet" : whole,
    poor: poor.length > 0,
  };
}

export function stacksPart({ stacks }: Pick<Task, "stacks">): QualityPart {
  const { samples, complete, unverified, incomplete } = stacks;
  if (samples === 0)
    return { title: "Stacks", text: "none yet", detail: "No sample has a user stack.", poor: false };
  const reasons = [...incomplete].sort((a, b) => b.count - a.count);
  const parts = reasons.map((item) => `${percent(item.count, samples)} ${item.meaning}`);
  if (unverified > 0) parts.push(`${percent(unverified, samples)} not verified`);
  const first = parts[0];
  const why = first === undefined ? "" : ` (${first}${parts.length > 1 ? `, ${parts.length - 1} more` : ""})`;
  return {
    title: "Stacks",
    text: `${percent(complete, samples)} complete${why}`,
    detail: [`${count(complete)} of ${count(samples)} user stacks are complete`, ...parts].join("\n"),
    poor: complete / samples < GOOD_STACKS,
  };
}

/** `text` says it in a few words. */
export function lossesPart({ losses }: Pick<Task, "losses">, text: string): QualityPart {
  if (losses.length === 0)
    return { title: "Losses", text, detail: "Nothing was dropped on the way.", poor: false };
  const sorted = [...losses].sort((a, b) => b.count - a.count);
  return {
    title: "Losses",
    text,
    detail: sorted.map((loss) => `${count(loss.count)} ${loss.meaning}`).join("\n"),
    poor: true,
  };
}

/** Null while names are not known, or when no frame has one. */
export function namesPart(names: NamesQuality | null): QualityPart | null {
  if (names === null || names.frames === 0) return null;
  const poor = names.modules[0];
  const why =
    names.unnamed > 0 && poor !== undefined
      ? ` (mostly ${poor.path.slice(poor.path.lastIndexOf("/") + 1)})`
      : "";
  const modules = names.modules
    .slice(0, 10)
    .map((module) => `${count(module.unnamed)} without a name: ${module.path}`);
  return {
    title: "User frames",
    text: `${classes(names).join(", ")}${why}`,
    detail: [...runtimeNotes(names), ...modules].join("\n"),
    poor: isPoor(names),
  };
}

/** Null when nothing was merged. */
export function mergedPart(merged: number, total: number): QualityPart | null {
  if (merged === 0) return null;
  return {
    title: "Too small",
    text: `${percent(merged, total)} merged`,
    detail:
      "Frames below 1/8192 of everything are merged into “(other)” below their caller: these samples are in no function's self or total.",
    poor: merged / total >= MUCH_MERGED,
  };
}

/** What the button says that stands for these parts of a result of connections or requests. */
export function partsChip(parts: readonly QualityPart[], name = "Quality"): ChipText {
  const said = ({ title, text }: QualityPart): string => `${title}: ${text}`;
  const poor = parts.filter((part) => part.poor);
  const [first] = poor;
  return {
    // A result that has not come has one part, which says so.
    text:
      first === undefined
        ? `${name}: ${parts.length === 1 ? parts[0]!.text : "good"}`
        : poorText(said(first), poor.length),
    whole: parts.map(said).join(", "),
    poor: poor.length > 0,
  };
}
