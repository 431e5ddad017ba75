// What the colours and marks of the graph mean, drawn by the painter of the graph itself. A click
// searches for what an entry stands for, so that everything else fades.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { paintSwatch } from "../canvas/painter";
import { type Colouring, colouring, DARK, LEGEND, LIGHT } from "../canvas/palette";
import { type FlameIndex, indexFlameGraph } from "../lib/flame_index";
import type { Label } from "../lib/flamegraph";
import { fileName, percent, visible } from "../lib/format";
import { moduleShares } from "../lib/modules";
import { parseQuery } from "../lib/search";
import { dark } from "../state/preferences";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";

const MAX_MODULES = 8;

function Swatch({ label, by }: { label: Label; by: Colouring }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const night = dark.value;
  useEffect(() => {
    if (canvas.current === null) return;
    const one = indexFlameGraph({
      periodNs: 0,
      idle: null,
      labels: [label],
      depth: Uint32Array.of(0),
      self: Float64Array.of(1),
      label: Uint32Array.of(0),
    });
    paintSwatch(canvas.current, one, night ? DARK : LIGHT, by, window.devicePixelRatio || 1);
  }, [label, night, by]);
  return <canvas class="swatch" ref={canvas} aria-hidden="true" />;
}

interface Entry {
  readonly text: string;
  readonly title: string;
  readonly search: string;
  readonly label: Label;
}

/** Kinds that this graph has. */
function kinds(index: FlameIndex): Entry[] {
  const { labels, label } = index.graph;
  const used = new Set(label);
  const shown = labels.filter((_, id) => used.has(id));
  return LEGEND.filter(({ search }) => {
    const query = parseQuery(search);
    return query.kind === "test" && shown.some(query.test);
  }).map((entry) => ({ ...entry, title: `Show only: ${entry.text}` }));
}

function modules(index: FlameIndex): { entries: Entry[]; more: number } {
  const shares = moduleShares(index);
  const entries = shares.slice(0, MAX_MODULES).map(({ module, self, label }) => ({
    text: `${visible(fileName(module)) || visible(module)} ${percent(self, index.total[0]!)}`,
    title: `Show only: ${visible(module)}`,
    search: `mod:${module}`,
    label: { ...label, name: "fn" },
  }));
  return { entries, more: Math.max(0, shares.length - MAX_MODULES) };
}

export function Legend({ index }: { index: FlameIndex }) {
  const { colour, search } = route.value;
  const by = useMemo(() => colouring(colour, index.graph.labels), [index, colour]);
  const { entries, more } = useMemo(
    () => (colour === "module" ? modules(index) : { entries: kinds(index), more: 0 }),
    [index, colour],
  );
  return (
    <div class="legend">
      <Choice
        label="Colour by"
        value={colour}
        choices={[
          ["kind", "By kind"],
          ["module", "By module"],
        ]}
        set={(value) => patchRoute({ colour: value }, "replace")}
      />
      <ul aria-label="Legend: shows only one when pressed">
        {entries.map((entry) => {
          const on = search === entry.search;
          return (
            <li key={entry.search}>
              <button
                type="button"
                class="legend-entry"
                aria-pressed={on}
                title={entry.title}
                onClick={() => patchRoute({ search: on ? "" : entry.search }, "replace")}
              >
                <Swatch label={entry.label} by={by} />
                {entry.text}
              </button>
            </li>
          );
        })}
        {more > 0 && <li class="muted">and {more} more modules</li>}
      </ul>
    </div>
  );
}
