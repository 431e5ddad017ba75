// What of a profile is shown, after changes: the tree of calls, the one that is drawn, and what is
// zoomed, selected and found in it. The toolbar and the graph below it share it.

import { useMemo, useRef } from "preact/hooks";
import { invertedGraph } from "../lib/flame_climb";
import { foldStart } from "../lib/flame_fold";
import { type FlameIndex, indexFlameGraph, labelOf } from "../lib/flame_index";
import { findFunction, functionKey } from "../lib/flame_keys";
import { applyTransforms, parseTransforms, type Transformed } from "../lib/flame_transform";
import { Kind, NameSource } from "../lib/flamegraph";
import { route } from "../state/route";
import { type Pane, usePane } from "./pane";
import { heaviest } from "./sandwich";

/** For hooks, before there is a profile. */
const NOTHING = indexFlameGraph({
  periodNs: 0,
  idle: null,
  labels: [{ name: "all", module: "", file: "", line: 0, kind: Kind.Root, source: NameSource.Marker }],
  depth: Uint32Array.of(0),
  self: Float64Array.of(0),
  label: Uint32Array.of(0),
});

export interface ShownProfile {
  /** As it came. */
  readonly base: FlameIndex;
  readonly shown: Transformed;
  /** From the root on. */
  readonly calls: FlameIndex;
  readonly pane: Pane;
  /** The function in the middle of a sandwich, when the address has none. */
  readonly middle: () => number;
  /** The halves of a sandwich have their own matches to walk. */
  readonly sandwichStep: { current: (direction: 1 | -1) => void };
  readonly step: (direction: 1 | -1) => void;
}

export function useShownProfile(profile: FlameIndex | null): ShownProfile {
  const base = profile ?? NOTHING;
  const { layout, tab, transforms, unfold } = route.value;
  const shown = useMemo(() => applyTransforms(base, parseTransforms(transforms)), [base, transforms]);
  const calls = shown.index;
  const isGraph = tab === "graph";
  const inverted = isGraph && layout === "inverted";
  const folded = isGraph && !unfold && (layout === "flame" || layout === "icicle");
  const index = useMemo(
    () => (inverted ? indexFlameGraph(invertedGraph(calls)) : folded ? foldStart(calls) : calls),
    [calls, inverted, folded],
  );
  const lastSelected = useRef("");
  const pane = usePane(index, (node) => {
    if (node > 0) lastSelected.current = functionKey(labelOf(index, node));
  });
  const sandwichStep = useRef<(direction: 1 | -1) => void>(() => {});
  const middle = (): number => {
    const known = findFunction(calls.graph.labels, lastSelected.current);
    if (known >= 0) return known;
    // It stays while the task runs, whichever function is the heaviest later.
    const first = heaviest(calls);
    lastSelected.current = functionKey(calls.graph.labels[first]!);
    return first;
  };
  const step = (direction: 1 | -1): void =>
    layout === "sandwich" && isGraph ? sandwichStep.current(direction) : pane.step(direction);
  return { base, shown, calls, pane, middle, sandwichStep, step };
}
