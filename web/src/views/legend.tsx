// What the colours and marks of the graph mean, drawn by the painter of the graph itself. A click
// searches for what an entry stands for, so that everything else fades.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { paintSwatch } from "../canvas/painter";
import { type Colouring, colouring, DARK, featureFill, LEGEND, LIGHT } from "../canvas/palette";
import { type FlameIndex, indexFlameGraph, nodeFeatures } from "../lib/flame_index";
import { type Label, MIXED } from "../lib/flamegraph";
import { fileName, percent, visible } from "../lib/format";
import { moduleShares } from "../lib/modules";
import type { ColourMode } from "../lib/query_state";
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
  const shown = labels.filter((_, id) => used.has(id) && !index.folds?.has(id));
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

/** Features that some frame belongs to alone. */
function FeatureEntries({ index, search }: { index: FlameIndex; search: string }) {
  const { features } = index.graph;
  const theme = dark.value ? DARK : LIGHT;
  const used = useMemo(() => new Set(nodeFeatures(index)), [index]);
  if (features === undefined) return <li class="muted">The features are not known yet.</li>;
  return (
    <>
      {features.titles.map((title, feature) => {
        if (!used.has(feature)) return null;
        const query = `feature:"${title}"`;
        const on = search === query;
        return (
          <li key={title}>
            <button
              type="button"
              class="legend-entry"
              aria-pressed={on}
              title={`Show only: ${visible(title)}`}
              onClick={() => patchRoute({ search: on ? "" : query }, "replace")}
            >
              <span class="feature-swatch" style={{ background: featureFill(feature, theme) }} />
              {visible(title)}
            </button>
          </li>
        );
      })}
      {used.has(MIXED) && (
        <li>
          <span class="legend-entry legend-word">
            <span class="feature-swatch" style={{ background: featureFill(MIXED, theme) }} />
            several
          </span>
        </li>
      )}
    </>
  );
}

export function Legend({ index, attributed }: { index: FlameIndex; attributed: boolean }) {
  const { colour, search } = route.value;
  const by = useMemo(() => colouring(colour, index.graph.labels), [index, colour]);
  const { entries, more } = useMemo(
    () => (colour === "module" ? modules(index) : { entries: kinds(index), more: 0 }),
    [index, colour],
  );
  const modes: (readonly [ColourMode, string])[] = [
    ["kind", "By kind"],
    ["module", "By module"],
  ];
  if (attributed) modes.push(["feature", "By feature"]);
  return (
    <div class="legend">
      <Choice
        label="Colour by"
        value={!attributed && colour === "feature" ? "kind" : colour}
        choices={modes}
        set={(value) => patchRoute({ colour: value }, "replace")}
      />
      <ul aria-label="Legend: shows only one when pressed">
        {attributed && colour === "feature" ? (
          <FeatureEntries index={index} search={search} />
        ) : (
          entries.map((entry) => {
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
          })
        )}
        {more > 0 && <li class="muted">and {more} more modules</li>}
      </ul>
    </div>
  );
}
