// What is zoomed, selected and found in one graph of the page.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { type FlameIndex, findPath, pathKey } from "../lib/flame_index";
import { type Matches, parseQuery, searchFeatures, searchFlameGraph, stepMatch } from "../lib/search";
import { patchRoute, route } from "../state/route";

export interface Search {
  readonly matches: Matches | null;
  readonly problem: string | null;
}

/** The search of the address bar, run on this graph. */
export function useSearch(index: FlameIndex, text: string): Search {
  return useMemo(() => {
    const query = parseQuery(text);
    if (query.kind === "none") return { matches: null, problem: null };
    if (query.kind === "invalid") return { matches: null, problem: query.reason };
    if (query.kind === "feature") {
      const found = searchFeatures(index, query.wants);
      return { matches: found, problem: found === null ? "only with colours by feature" : null };
    }
    const matches = searchFlameGraph(index, query.test);
    return { matches, problem: matches === null ? "the pattern takes too long" : null };
  }, [index, text]);
}

export interface Pane extends Search {
  readonly index: FlameIndex;
  readonly zoomed: number;
  /** -1 for none. */
  readonly selected: number;
  readonly selectedKey: string;
  readonly zoom: (node: number) => void;
  readonly select: (node: number) => void;
  readonly step: (direction: 1 | -1) => void;
}

/** `onSelect` learns of each selection by the reader. */
export function usePane(index: FlameIndex, onSelect?: (node: number) => void): Pane {
  const { search, zoom: zoomKey } = route.value;
  const found = useSearch(index, search);
  const { matches } = found;
  const zoomed = useMemo(() => findPath(index, zoomKey), [index, zoomKey]);
  // The selection is kept as a path, so that it survives the next fetch of a running task.
  const [selectedKey, setSelectedKey] = useState("");
  const selected = useMemo(() => {
    const found = selectedKey === "" ? 0 : findPath(index, selectedKey);
    return found === 0 && selectedKey !== pathKey(index, 0) ? -1 : found;
  }, [index, selectedKey]);
  const zoom = useCallback(
    (node: number) => patchRoute({ zoom: node === 0 ? "" : pathKey(index, node), part: "" }),
    [index],
  );
  const select = (node: number): void => {
    setSelectedKey(node < 0 ? "" : pathKey(index, node));
    onSelect?.(node);
  };
  const step = (direction: 1 | -1): void => {
    if (matches === null) return;
    const next = stepMatch(matches, selected, direction);
    if (next >= 0) select(next);
  };
  useEffect(() => {
    if (search !== "") setSelectedKey("");
  }, [search]);
  return { ...found, index, zoomed, selected, selectedKey, zoom, select, step };
}
