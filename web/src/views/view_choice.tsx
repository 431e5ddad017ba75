// The views of a profile, as buttons and as keys.

import { useEffect } from "preact/hooks";
import type { Layout } from "../lib/query_state";
import { isPageLetter } from "../state/keys";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";

type ViewName = Layout | "order" | "table";

const VIEWS: readonly { view: ViewName; title: string; key: string }[] = [
  { view: "flame", title: "Flame", key: "1" },
  { view: "icicle", title: "Icicle", key: "2" },
  { view: "inverted", title: "Inverted", key: "3" },
  { view: "sandwich", title: "Sandwich", key: "4" },
  { view: "order", title: "Time order", key: "5" },
  { view: "table", title: "Table", key: "6" },
];

function show(view: ViewName): void {
  if (view === "table" || view === "order") patchRoute({ tab: view }, "replace");
  else {
    const { layout } = route.peek();
    const upright = (name: string): boolean => name === "flame" || name === "icicle";
    // Another order of frames has another part of the width.
    const same = layout === view || (upright(layout) && upright(view));
    patchRoute({ tab: "graph", layout: view, ...(same ? {} : { part: "" }) }, "replace");
  }
}

/** The key of a view shows it, `t` changes between graph and table, `i` turns a flame over. */
function onKey(event: KeyboardEvent, order: boolean): void {
  if (!isPageLetter(event)) return;
  const { tab, layout } = route.value;
  const picked = VIEWS.find(({ key, view }) => key === event.key && (order || view !== "order"));
  if (picked !== undefined) show(picked.view);
  else if (event.key === "t") show(tab === "graph" ? "table" : layout);
  else if (event.key === "i") show(layout === "flame" ? "icicle" : "flame");
  else return;
  event.preventDefault();
}

/** `order` is whether the order of time is known here. */
export function ViewChoice({ order }: { order: boolean }) {
  useEffect(() => {
    const stop = new AbortController();
    document.addEventListener("keydown", (event) => onKey(event, order), { signal: stop.signal });
    return () => stop.abort();
  }, [order]);
  const { tab, layout } = route.value;
  return (
    <Choice
      label="View"
      value={tab === "graph" ? layout : tab}
      choices={VIEWS.filter(({ view }) => order || view !== "order").map(
        ({ view, title }) => [view, title] as const,
      )}
      set={show}
    />
  );
}
