// Colours of frames. Hue tells the category and, inside a category, the module; a mark that is not
// a colour tells the category too (see painter.ts). Contrast of text on every fill is above 7:1.

import { type FlameIndex, hashText, labelOf, nodeFeatures } from "../lib/flame_index";
import { Kind, type Label, MIXED, NameSource } from "../lib/flamegraph";
import type { ColourMode } from "../lib/query_state";
import { type Oklch, oklch } from "./oklch";

export type Mark = "none" | "hatched" | "italic" | "bold" | "dotted" | "striped";

export interface FrameStyle {
  readonly fill: string;
  readonly faded: string;
  /** Drawn where a frame is narrower than a pixel. */
  readonly thin: string;
  readonly hatchedEdge: boolean;
  readonly italic: boolean;
  readonly bold: boolean;
  readonly dottedOutline: boolean;
  readonly striped: boolean;
}

export interface Theme {
  readonly background: string;
  readonly text: string;
  readonly mutedText: string;
  readonly hatch: string;
  readonly outline: string;
  readonly selection: string;
  readonly matchFill: string;
  readonly matchText: string;
  readonly lightness: number;
  readonly chroma: number;
  readonly fadedAlpha: number;
}

export const LIGHT: Theme = {
  background: "#ffffff",
  text: "#14161a",
  mutedText: "#5d6470",
  hatch: "rgba(96, 52, 0, 0.5)",
  outline: "#6a7180",
  selection: "#14161a",
  matchFill: "#f2dc3c",
  matchText: "#14161a",
  lightness: 0.85,
  chroma: 0.068,
  fadedAlpha: 0.38,
};

export const DARK: Theme = {
  background: "#16181d",
  text: "#f2f4f8",
  mutedText: "#a2a9b6",
  hatch: "rgba(255, 226, 180, 0.5)",
  outline: "#a2a9b6",
  selection: "#ffffff",
  matchFill: "#e8cf3a",
  matchText: "#14161a",
  lightness: 0.43,
  chroma: 0.085,
  fadedAlpha: 0.42,
};

/** Hue range of each category: [first, width]; the module's hash chooses inside it. */
const HUES: Readonly<Record<number, readonly [number, number]>> = {
  [Kind.User]: [212, 88],
  [Kind.InlinedUser]: [212, 88],
  [Kind.Kernel]: [48, 26],
  [Kind.InlinedKernel]: [48, 26],
  [Kind.Jit]: [150, 20],
};

const GOLDEN_ANGLE = 137.508;

/** What decides the hue of code: its kind, or its module with a hue of its own. */
export type Colouring = "kind" | ReadonlyMap<string, number>;

/**
 * Hues of modules: those next to each other in the list of paths are far apart on the circle. With many
 * modules some look alike; the legend and the tooltip name them.
 */
export function colouring(mode: ColourMode, labels: readonly Label[]): Colouring {
  if (mode !== "module") return "kind";
  const modules = [...new Set(labels.map(({ module }) => module))].sort();
  return new Map(modules.map((module, i) => [module, (i * GOLDEN_ANGLE) % 360]));
}

function tone(label: Label, theme: Theme, by: Colouring): Oklch {
  const range = HUES[label.kind];
  if (range === undefined) {
    const light = label.kind === Kind.Root || label.kind === Kind.Process || label.kind === Kind.Thread;
    return { l: theme.lightness + (light ? 0.02 : 0.05), c: 0.012, h: 260 };
  }
  const hue =
    by === "kind"
      ? range[0] + (hashText(label.module) % 1000) * (range[1] / 1000)
      : (by.get(label.module) ?? range[0]);
  // A step of lightness for each name keeps neighbours apart without a second hue.
  const step = ((hashText(label.name) % 7) - 3) * 0.008;
  const inlined = label.kind === Kind.InlinedUser || label.kind === Kind.InlinedKernel;
  const muted = inlined || label.source === NameSource.Inferred;
  return { l: theme.lightness + step, c: theme.chroma * (muted ? 0.6 : 1), h: hue };
}

/** Style of a label. */
export function styleOf(label: Label, theme: Theme, by: Colouring): FrameStyle {
  const fill = tone(label, theme, by);
  const colour = (alpha: number): string => oklch(fill, alpha);
  const code = label.kind !== Kind.Root && label.kind !== Kind.Process && label.kind !== Kind.Thread;
  return {
    fill: colour(1),
    faded: colour(theme.fadedAlpha),
    thin: colour(0.75),
    hatchedEdge: label.kind === Kind.Kernel || label.kind === Kind.InlinedKernel,
    italic: label.kind === Kind.InlinedUser || label.kind === Kind.InlinedKernel,
    bold: label.kind === Kind.Process,
    dottedOutline:
      code && label.kind !== Kind.Other && label.kind !== Kind.Marker && label.source === NameSource.None,
    striped: label.kind === Kind.Marker || label.kind === Kind.Other,
  };
}

/** The fill of a feature; frames whose samples belong to several have no hue. */
export function featureFill(feature: number, theme: Theme, alpha = 1): string {
  const isMixed = feature === MIXED;
  const l = theme.lightness + (isMixed ? 0.04 : 0);
  const c = isMixed ? 0.006 : theme.chroma * 1.15;
  const h = isMixed ? 260 : (20 + feature * GOLDEN_ANGLE) % 360;
  return oklch({ l, c, h }, alpha);
}

/** Styles by node: the hue is the feature's, the marks are those of the kind. Null without features. */
export function featureStyles(index: FlameIndex, theme: Theme): ((node: number) => FrameStyle) | null {
  const { label } = index.graph;
  const of = nodeFeatures(index);
  if (of === null) return null;
  const known = new Map<number, FrameStyle>();
  return (node) => {
    const feature = of[node]!;
    const key = label[node]! * (MIXED + 1) + feature;
    let style = known.get(key);
    if (style === undefined) {
      style = {
        ...styleOf(labelOf(index, node), theme, "kind"),
        fill: featureFill(feature, theme),
        faded: featureFill(feature, theme, theme.fadedAlpha),
        thin: featureFill(feature, theme, 0.75),
      };
      known.set(key, style);
    }
    return style;
  };
}

export interface LegendEntry {
  readonly text: string;
  /** The search that shows only these. */
  readonly search: string;
  readonly label: Label;
}

const sample = (name: string, kind: number, source: number): Label => ({
  name,
  module: "a",
  file: "",
  line: 0,
  kind,
  source,
});

/** What the legend shows, drawn by the same painter as the graph. */
export const LEGEND: readonly LegendEntry[] = [
  { text: "user", search: "kind:user", label: sample("fn", Kind.User, NameSource.ElfSymbol) },
  { text: "inlined", search: "kind:inlined", label: sample("fn", Kind.InlinedUser, NameSource.Dwarf) },
  { text: "inferred name", search: "kind:inferred", label: sample("fn", Kind.User, NameSource.Inferred) },
  { text: "no name", search: "kind:unnamed", label: sample("+0x", Kind.User, NameSource.None) },
  { text: "JIT", search: "kind:jit", label: sample("fn", Kind.Jit, NameSource.PerfMap) },
  { text: "kernel", search: "kind:kernel", label: sample("fn", Kind.Kernel, NameSource.Kallsyms) },
  { text: "process", search: "kind:process", label: sample("fn", Kind.Process, NameSource.None) },
  { text: "thread", search: "kind:thread", label: sample("fn", Kind.Thread, NameSource.None) },
  { text: "marker", search: "kind:marker", label: sample("fn", Kind.Marker, NameSource.Marker) },
  { text: "merged", search: "kind:merged", label: sample("fn", Kind.Other, NameSource.Marker) },
];
