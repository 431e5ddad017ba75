// The flame graph of a comparison: widths are the mean of both sides, colours tell the change. Keys
// and mirror for screen readers are those of the other graphs.

import { useEffect, useRef, useState } from "preact/hooks";
import { DIFF_LEGEND, diffStyle } from "../canvas/diff_palette";
import { DARK, LIGHT } from "../canvas/palette";
import { FlameSurface } from "../canvas/surface";
import { colours, type DiffIndex, normalised, tendency, verdictOf } from "../lib/diff_index";
import { amountText, changeText, normText, pText, ratioText, VERDICT_TEXT } from "../lib/diff_text";
import { childCount, heaviestChild, labelOf, neighbour } from "../lib/flame_index";
import { parsePart } from "../lib/flame_window";
import { visible } from "../lib/format";
import type { Matches } from "../lib/search";
import { sequencePending } from "../state/keys";
import { NEARER, PAN_SHARE, tellPart } from "../state/part";
import { dark, singleKeys } from "../state/preferences";
import { route } from "../state/route";
import { KIND_TEXT } from "./function_table";

interface Props {
  readonly index: DiffIndex;
  readonly zoomed: number;
  readonly matches: Matches | null;
  readonly onZoom: (node: number) => void;
}

const TOOLTIP_GAP = 14;

function place(tooltip: HTMLElement, x: number, y: number): void {
  const { width, height } = tooltip.getBoundingClientRect();
  const beside = (at: number, size: number, room: number): number =>
    at + TOOLTIP_GAP + size > room ? Math.max(4, at - TOOLTIP_GAP - size) : at + TOOLTIP_GAP;
  const left = Math.round(beside(x, width, innerWidth));
  const top = Math.round(beside(y, height, innerHeight));
  tooltip.style.setProperty("transform", `translate(${left}px, ${top}px)`);
}

/** Total and self of a frame on both sides. */
function facts(index: DiffIndex, node: number): readonly (readonly [string, string])[] {
  const { diff } = index;
  const row = (title: string, a: number, b: number): readonly [string, string] => {
    const [left, right] = normalised(index, [a, b]);
    const raw = `${amountText(index, a, 0)} → ${amountText(index, b, 1)}`;
    return [
      title,
      `${normText(index, left, 0)} → ${normText(index, right, 1)} (${changeText(index, right - left)}, ${ratioText(index, [a, b])}; ${raw})`,
    ];
  };
  return [
    row("total", index.totalA[node]!, index.totalB[node]!),
    row("self", diff.selfA[node]!, diff.selfB[node]!),
  ];
}

function verdictText(index: DiffIndex, node: number): string {
  if (node === 0 && index.norm === "share") return "everything is 100 % on both sides";
  const { verdict, p } = verdictOf(index, node);
  return p === null ? VERDICT_TEXT[verdict] : `${VERDICT_TEXT[verdict]} (${pText(p)}, this frame alone)`;
}

function words(index: DiffIndex, node: number): string {
  const label = labelOf(index.flame, node);
  const [total] = facts(index, node);
  return `${visible(label.name)}, total ${total![1]}, ${verdictText(index, node)}, ${childCount(index.flame, node)} children`;
}

function Facts({ index, node }: { index: DiffIndex; node: number }) {
  const label = labelOf(index.flame, node);
  return (
    <span class="numbers">
      {facts(index, node).map(([title, text]) => (
        <span key={title}>
          {title} <b>{text}</b>
        </span>
      ))}
      <span>{verdictText(index, node)}</span>
      <span>{KIND_TEXT[label.kind]}</span>
      {label.module !== "" && <span class="mono">{visible(label.module)}</span>}
    </span>
  );
}

function Swatch({ tendency: value }: { tendency: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const night = dark.value;
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (element == null || context == null) return;
    const theme = night ? DARK : LIGHT;
    const style = diffStyle(value, night, theme);
    element.width = 34;
    element.height = 15;
    context.fillStyle = style.fill;
    context.fillRect(0, 0, 34, 15);
    if (style.hatchedEdge) {
      context.fillStyle = theme.hatch;
      context.fillRect(0, 0, 5, 15);
    }
    if (style.dottedOutline) {
      context.strokeStyle = theme.outline;
      context.setLineDash([1.5, 2.5]);
      context.strokeRect(0.5, 0.5, 33, 14);
    }
  }, [value, night]);
  return <canvas class="diff-swatch" ref={canvas} aria-hidden="true" />;
}

export function DiffLegend() {
  return (
    <ul class="diff-legend" aria-label="Legend">
      {DIFF_LEGEND.map(([value, text]) => (
        <li key={text} class="heat-legend">
          <Swatch tendency={value} />
          <span class="muted">{text}</span>
        </li>
      ))}
    </ul>
  );
}

export function DiffFlame(props: Props) {
  const { index, zoomed, matches, onZoom } = props;
  const { flame } = index;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const surface = useRef<FlameSurface | null>(null);
  const [hovered, setHovered] = useState(-1);
  const [selected, setSelected] = useState(-1);
  const latest = useRef(props);
  latest.current = props;
  const { part } = route.value;
  const night = dark.value;
  const theme = night ? DARK : LIGHT;

  useEffect(() => {
    if (scroller.current === null || canvas.current === null || spacer.current === null) return;
    const parts = { scroller: scroller.current, canvas: canvas.current, spacer: spacer.current };
    const made = new FlameSurface(parts, theme, {
      picked: (node) => {
        setSelected(node);
        latest.current.onZoom(node);
      },
      hovered: (node, x, y) => {
        setHovered(node);
        if (tooltip.current !== null) place(tooltip.current, x, y);
      },
      windowed: tellPart,
    });
    surface.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    setHovered(-1);
    setSelected(-1);
    surface.current?.setPart(parsePart(part));
    surface.current?.setGraph(flame, zoomed, null);
    surface.current?.setMatches(matches?.nodes ?? null);
  }, [flame]);
  useEffect(() => {
    const shades = colours(index);
    // Whole or gone is told by a mark, also where too few samples leave it grey.
    const styles = Array.from(shades, (shade, node) => {
      const whole = Math.abs(tendency(index, node)) === 1;
      const style = diffStyle(shade, night, theme);
      if (!whole || !Number.isNaN(shade)) return style;
      const marks = diffStyle(tendency(index, node), night, theme);
      return { ...style, hatchedEdge: marks.hatchedEdge, dottedOutline: marks.dottedOutline };
    });
    surface.current?.setTheme(theme);
    surface.current?.setNodeStyle((node) => styles[node]!);
  }, [index, theme]);
  useEffect(() => {
    surface.current?.setPart(parsePart(part));
    surface.current?.zoom(zoomed);
  }, [zoomed, part]);
  useEffect(() => surface.current?.setMatches(matches?.nodes ?? null), [matches]);
  useEffect(() => surface.current?.select(selected, true), [selected]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (sequencePending() || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const at = selected < 0 ? zoomed : selected;
    let next = -1;
    if (event.shiftKey && (key === "ArrowLeft" || key === "ArrowRight"))
      surface.current?.pan(key === "ArrowLeft" ? -PAN_SHARE : PAN_SHARE);
    else if (key === "ArrowLeft" || key === "ArrowRight")
      next = neighbour(flame, at, key === "ArrowLeft" ? -1 : 1);
    else if (key === "ArrowUp") next = heaviestChild(flame, at);
    else if (key === "ArrowDown") next = flame.parent[at]!;
    else if (key === "Enter" && selected >= 0) onZoom(selected);
    else if (key === "Backspace" || key === "Escape") {
      if (part !== "") onZoom(zoomed);
      else if (zoomed === 0) setSelected(-1);
      else onZoom(Math.max(0, flame.parent[zoomed]!));
    } else if (singleKeys.value && key === "0") onZoom(0);
    else if (singleKeys.value && (key === "+" || key === "-"))
      surface.current?.scale(key === "+" ? NEARER : 1 / NEARER);
    else return;
    if (next >= 0) setSelected(next);
    event.preventDefault();
    event.stopPropagation();
  };
  const mirror = selected < 0 || selected >= flame.count ? zoomed : selected;
  return (
    <>
      <div class="flame-frame">
        <div
          ref={scroller}
          class="flame-scroll"
          role="tree"
          tabIndex={0}
          aria-label="Flame graph of the comparison. Arrow keys walk the frames, Enter zooms, Backspace goes back; the table has the same numbers"
          aria-activedescendant="diff-item"
          onKeyDown={onKeyDown}
        >
          <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
          <div ref={spacer} />
          <div
            id="diff-item"
            class="hidden"
            role="treeitem"
            tabIndex={-1}
            aria-level={flame.graph.depth[mirror]! + 1}
            aria-selected={selected >= 0}
            aria-expanded={childCount(flame, mirror) > 0}
          >
            {words(index, mirror)}
          </div>
        </div>
        <div class="hidden" aria-live="polite">
          {selected >= 0 && selected < flame.count ? words(index, selected) : ""}
        </div>
      </div>
      <div class="frame-details" data-details>
        {selected >= 0 && selected < flame.count ? (
          <>
            <div class="frame-name">
              <code title={visible(labelOf(flame, selected).name)}>
                {visible(labelOf(flame, selected).name)}
              </code>
            </div>
            <Facts index={index} node={selected} />
          </>
        ) : (
          <span class="muted">
            Frames are as wide as the mean of both sides. Click one to zoom into it; arrow keys walk.
          </span>
        )}
      </div>
      <div ref={tooltip} class="tooltip" role="tooltip" hidden={hovered < 0} data-tooltip>
        {hovered >= 0 && hovered < flame.count && (
          <>
            <code class="tooltip-name">{visible(labelOf(flame, hovered).name)}</code>
            <Facts index={index} node={hovered} />
          </>
        )}
      </div>
    </>
  );
}
