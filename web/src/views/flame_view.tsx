// The flame graph on the page: canvas, keys, tooltip, details of the selected frame, and the
// mirror of the selection for screen readers.

import { useEffect, useRef, useState } from "preact/hooks";
import { describe } from "../canvas/painter";
import { DARK, LIGHT } from "../canvas/palette";
import { FlameSurface } from "../canvas/surface";
import { childCount, contains, type FlameIndex, heaviestChild, labelOf, neighbour } from "../lib/flame_index";
import { Kind } from "../lib/flamegraph";
import { amount, duration, percent, visible } from "../lib/format";
import type { Layout } from "../lib/query_state";
import type { Matches } from "../lib/search";
import { sequencePending } from "../state/keys";
import { dark, singleKeys } from "../state/preferences";
import { patchRoute } from "../state/route";
import { CopyButton } from "./copy_button";
import { KIND_TEXT } from "./function_table";

interface Props {
  readonly index: FlameIndex;
  readonly arrivedAt: number | null;
  readonly zoomed: number;
  readonly selected: number;
  /** Path of the selected frame: changes when the reader selects, not when new data arrive. */
  readonly selectedKey: string;
  readonly matches: Matches | null;
  readonly layout: Layout;
  readonly onZoom: (node: number) => void;
  readonly onSelect: (node: number) => void;
  readonly onStep: (direction: 1 | -1) => void;
}

/** A match narrower than this is zoomed into, or it could not be seen. */
const TOO_NARROW_PX = 30;

const SOURCES = [
  "no trustworthy name: module and offset",
  "ELF symbol",
  "debug information",
  "kernel symbol",
  "vdso",
  "perf map",
  "the profiler",
  "imported",
  "inferred from class tables and source paths",
  "separate debug file",
  "compressed symbol table (.gnu_debugdata)",
  "debuginfod server",
  "Go's function table",
  "symbol file given by the user",
] as const;

function measured(index: FlameIndex, samples: number): string {
  const { periodNs } = index.graph;
  const time = periodNs > 1 ? ` · ${duration(samples * periodNs)}` : "";
  return `${percent(samples, index.total[0]!)} · ${amount(samples, periodNs)}${time}`;
}

/** Kind, module, place and origin of the name. */
function Origin({ index, node }: { index: FlameIndex; node: number }) {
  const label = labelOf(index, node);
  const code = label.kind !== Kind.Root && label.kind !== Kind.Process && label.kind !== Kind.Thread;
  const place = label.file === "" ? "" : `${visible(label.file)}${label.line > 0 ? `:${label.line}` : ""}`;
  return (
    <span class="origin">
      <span>{KIND_TEXT[label.kind]}</span>
      {label.module !== "" && <span class="mono">{visible(label.module)}</span>}
      {place !== "" && <span class="mono">{place}</span>}
      {code && label.kind !== Kind.Other && <span>{SOURCES[label.source]}</span>}
    </span>
  );
}

function Numbers({ index, node, zoomed }: { index: FlameIndex; node: number; zoomed: number }) {
  return (
    <span class="numbers">
      <span>
        total <b>{measured(index, index.total[node]!)}</b>
      </span>
      <span>
        self <b>{measured(index, index.graph.self[node]!)}</b>
      </span>
      {zoomed !== 0 && contains(index, zoomed, node) && (
        <span>
          of the zoom <b>{percent(index.total[node]!, index.total[zoomed]!)}</b>
        </span>
      )}
    </span>
  );
}

function Details({ index, node, zoomed }: { index: FlameIndex; node: number; zoomed: number }) {
  if (node < 0) {
    return (
      <div class="frame-details muted">
        Click a frame to zoom into it. Arrow keys walk, Enter zooms, Backspace goes back, ? shows all keys.
      </div>
    );
  }
  const { name } = labelOf(index, node);
  return (
    <div class="frame-details" data-details>
      <div class="frame-name">
        <code title={visible(name)}>{visible(name)}</code>
        <CopyButton title="Copy name" text={name} />
      </div>
      <div class="frame-facts">
        <Numbers index={index} node={node} zoomed={zoomed} />
        <Origin index={index} node={node} />
      </div>
    </div>
  );
}

const TOOLTIP_GAP = 14;

/** Puts the tooltip beside the pointer, inside the window. */
function place(tooltip: HTMLElement, x: number, y: number): void {
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + TOOLTIP_GAP + width > innerWidth ? Math.max(4, x - TOOLTIP_GAP - width) : x + TOOLTIP_GAP;
  const top =
    y + TOOLTIP_GAP + height > innerHeight ? Math.max(4, y - TOOLTIP_GAP - height) : y + TOOLTIP_GAP;
  tooltip.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
}

export function FlameView(props: Props) {
  const { index, zoomed, selected, matches, layout, onZoom, onSelect } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const pointer = useRef({ x: 0, y: 0 });
  const surface = useRef<FlameSurface | null>(null);
  const [hovered, setHovered] = useState(-1);
  const latest = useRef(props);
  latest.current = props;
  const theme = dark.value ? DARK : LIGHT;

  useEffect(() => {
    if (scroller.current === null || canvas.current === null || spacer.current === null) return;
    const made = new FlameSurface(
      { scroller: scroller.current, canvas: canvas.current, spacer: spacer.current },
      theme,
      {
        picked: (node) => {
          latest.current.onSelect(node);
          latest.current.onZoom(node);
        },
        hovered: (node, x, y) => {
          pointer.current = { x, y };
          setHovered(node);
          if (tooltip.current !== null) place(tooltip.current, x, y);
        },
      },
    );
    surface.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    setHovered(-1);
    surface.current?.setLayout(layout);
    surface.current?.setGraph(index, zoomed, props.arrivedAt);
    surface.current?.setMatches(matches?.nodes ?? null);
    surface.current?.select(selected, false);
  }, [index]);
  useEffect(() => surface.current?.setTheme(theme), [theme]);
  useEffect(() => surface.current?.setLayout(layout), [layout]);
  useEffect(() => surface.current?.zoom(zoomed), [zoomed]);
  useEffect(() => surface.current?.setMatches(matches?.nodes ?? null), [matches]);
  useEffect(() => surface.current?.select(latest.current.selected, true), [props.selectedKey]);
  useEffect(() => {
    if (hovered >= 0 && tooltip.current !== null)
      place(tooltip.current, pointer.current.x, pointer.current.y);
  }, [hovered]);

  // Next and previous match: a frame too narrow to see, or outside the zoom, is zoomed into.
  useEffect(() => {
    const { index: graph, matches: found, zoomed: now, onZoom: go, selected: node } = latest.current;
    if (node < 0 || found === null || found.nodes[node] !== 1) return;
    const narrow = (surface.current?.widthOf(node) ?? 0) < TOO_NARROW_PX;
    if (!contains(graph, now, node) || narrow) go(graph.parent[node]! > 0 ? graph.parent[node]! : node);
  }, [props.selectedKey]);

  const walk = (key: string): number => {
    if (selected < 0) return zoomed;
    const towardsRoot = layout === "flame" ? "ArrowDown" : "ArrowUp";
    if (key === "ArrowLeft" || key === "ArrowRight")
      return neighbour(index, selected, key === "ArrowLeft" ? -1 : 1);
    return key === towardsRoot ? index.parent[selected]! : heaviestChild(index, selected);
  };
  const out = (): void => {
    if (zoomed === 0) onSelect(-1);
    else onZoom(Math.max(0, index.parent[zoomed]!));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (sequencePending() || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key.startsWith("Arrow")) {
      const node = walk(key);
      if (node >= 0) onSelect(node);
    } else if (key === "Enter" && selected >= 0) onZoom(selected);
    else if (key === "Backspace" || key === "Escape") out();
    else if (!singleKeys.value) return;
    else if (key === "0") onZoom(0);
    else if (key === "n" || key === "N") {
      if (matches === null) return;
      props.onStep(key === "n" ? 1 : -1);
    } else if (key === "i") patchRoute({ layout: layout === "flame" ? "icicle" : "flame" }, "replace");
    else if (key === "y" && selected >= 0)
      void navigator.clipboard?.writeText(labelOf(index, selected).name).catch(() => {});
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const mirror = selected < 0 ? zoomed : selected;
  return (
    <>
      <div class="flame-frame">
        <div
          ref={scroller}
          class="flame-scroll"
          role="tree"
          tabIndex={0}
          aria-label="Flame graph. Arrow keys walk the frames, Enter zooms, Backspace goes back; the table tab has the same numbers"
          aria-activedescendant="flame-item"
          onKeyDown={onKeyDown}
        >
          <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
          <div ref={spacer} />
          <div
            id="flame-item"
            class="hidden"
            role="treeitem"
            tabIndex={-1}
            aria-level={index.graph.depth[mirror]! + 1}
            aria-selected={selected >= 0}
            aria-expanded={childCount(index, mirror) > 0}
          >
            {describe(index, mirror, percent)}, {childCount(index, mirror)} children
          </div>
        </div>
        <div class="hidden" aria-live="polite">
          {selected >= 0 ? describe(index, selected, percent) : ""}
        </div>
      </div>
      <Details index={index} node={selected >= 0 ? selected : zoomed === 0 ? -1 : zoomed} zoomed={zoomed} />
      <div ref={tooltip} class="tooltip" role="tooltip" hidden={hovered < 0} data-tooltip>
        {hovered >= 0 && hovered < index.count && (
          <>
            <code class="tooltip-name">{visible(labelOf(index, hovered).name)}</code>
            <Numbers index={index} node={hovered} zoomed={zoomed} />
            <Origin index={index} node={hovered} />
          </>
        )}
      </div>
    </>
  );
}
