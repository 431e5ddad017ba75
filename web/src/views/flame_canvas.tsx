// One flame graph on the page: canvas, keys, tooltip, and the mirror of the selected frame for screen
// readers.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { DARK, featureStyles, LIGHT } from "../canvas/palette";
import { FlameSurface, type Growth } from "../canvas/surface";
import { foldedNames, isFolded } from "../lib/flame_fold";
import {
  childCount,
  contains,
  type FlameIndex,
  findPath,
  heaviestChild,
  labelOf,
  neighbour,
  pathKey,
} from "../lib/flame_index";
import { type TransformKind, transformOf } from "../lib/flame_transform";
import { parsePart } from "../lib/flame_window";
import { visible } from "../lib/format";
import type { Matches } from "../lib/search";
import { sequencePending } from "../state/keys";
import { NEARER, PAN_SHARE, tellPart } from "../state/part";
import { picture } from "../state/picture";
import { dark, singleKeys } from "../state/preferences";
import { patchRoute, route } from "../state/route";
import { addTransform } from "../state/transforms";
import { describe, Numbers, Origin, type Reading } from "./frame_facts";
import { FrameMenu, type MenuPlace } from "./frame_menu";

interface Props {
  readonly index: FlameIndex;
  readonly arrivedAt: number | null;
  readonly zoomed: number;
  readonly selected: number;
  /** Path of the selected frame: changes when the reader selects, not when new data arrive. */
  readonly selectedKey: string;
  readonly matches: Matches | null;
  readonly growth: Growth;
  readonly reading: Reading;
  /** Samples of everything that is shown. */
  readonly whole: number;
  /** Of the tree, for screen readers. */
  readonly label: string;
  /** Tells the trees of one page apart. */
  readonly itemId: string;
  /** Shown part of the width as it stands in the address; without it the graph keeps it for itself. */
  readonly part?: string;
  readonly onZoom: (node: number) => void;
  readonly onSelect: (node: number) => void;
  readonly onStep: (direction: 1 | -1) => void;
  /** Shows the callers and callees of a frame's function. */
  readonly onSandwich: (node: number) => void;
}

/** A match narrower than this is zoomed into, or it could not be seen. */
const TOO_NARROW_PX = 30;

export const TRANSFORM_KEYS: Readonly<Record<string, TransformKind>> = {
  f: "focus",
  m: "merge",
  d: "drop",
  r: "recursion",
  c: "module",
};

const TOOLTIP_GAP = 14;
/** Puts the tooltip beside the pointer, inside the window. */
function place(tooltip: HTMLElement, x: number, y: number): void {
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + TOOLTIP_GAP + width > innerWidth ? Math.max(4, x - TOOLTIP_GAP - width) : x + TOOLTIP_GAP;
  const top =
    y + TOOLTIP_GAP + height > innerHeight ? Math.max(4, y - TOOLTIP_GAP - height) : y + TOOLTIP_GAP;
  tooltip.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
}

export function FlameCanvas(props: Props) {
  const { index, zoomed, selected, matches, growth, reading, onZoom, onSelect } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const pointer = useRef({ x: 0, y: 0 });
  const surface = useRef<FlameSurface | null>(null);
  const [hovered, setHovered] = useState(-1);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = dark.value ? DARK : LIGHT;
  const { colour } = route.value;

  useEffect(() => {
    if (scroller.current === null || canvas.current === null || spacer.current === null) return;
    const made = new FlameSurface(
      {
        scroller: scroller.current,
        canvas: canvas.current,
        spacer: spacer.current,
        minimap: minimap.current,
      },
      theme,
      {
        picked: (node) => {
          latest.current.onSelect(node);
          latest.current.onZoom(node);
        },
        asked: (node, x, y) => {
          latest.current.onSelect(node);
          setMenu({ path: pathKey(latest.current.index, node), x, y });
        },
        hovered: (node, x, y) => {
          pointer.current = { x, y };
          setHovered(node);
          if (tooltip.current !== null) place(tooltip.current, x, y);
        },
        windowed: (part, left) => {
          if (latest.current.part !== undefined) tellPart(part, left);
        },
      },
    );
    made.setGrowth(growth);
    made.setColour(colour);
    surface.current = made;
    // The keys of the graph work at once, unless the reader is somewhere already.
    if (latest.current.part !== undefined && document.activeElement === document.body)
      scroller.current.focus({ preventScroll: true });
    const offered = (): Promise<Blob | null> => made.picture();
    picture.value = offered;
    return () => {
      if (picture.peek() === offered) picture.value = null;
      made.destroy();
    };
  }, []);

  useEffect(() => {
    if (props.part !== undefined) surface.current?.setPart(parsePart(props.part));
    surface.current?.setGraph(index, zoomed, props.arrivedAt);
    surface.current?.setMatches(matches?.nodes ?? null);
    surface.current?.select(selected, false);
  }, [index]);
  useEffect(() => surface.current?.setTheme(theme), [theme]);
  useEffect(() => surface.current?.setGrowth(growth), [growth]);
  useEffect(() => surface.current?.setColour(colour), [colour]);
  useEffect(
    () =>
      surface.current?.setNodeStyle(
        colour === "feature" && props.part !== undefined ? featureStyles(index, theme) : null,
      ),
    [index, theme, colour],
  );
  useEffect(() => {
    if (props.part !== undefined) surface.current?.setPart(parsePart(props.part));
    surface.current?.zoom(zoomed);
  }, [zoomed, props.part]);
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
    const up = graph.parent[node]!;
    if (!contains(graph, now, node) || narrow) go(up > 0 && !isFolded(graph, up) ? up : node);
  }, [props.selectedKey]);

  const walk = (key: string): number => {
    if (selected < 0) return zoomed;
    const towardsRoot = growth === "up" ? "ArrowDown" : "ArrowUp";
    if (key === "ArrowLeft" || key === "ArrowRight")
      return neighbour(index, selected, key === "ArrowLeft" ? -1 : 1);
    return key === towardsRoot ? index.parent[selected]! : heaviestChild(index, selected);
  };
  /** False when there is nothing to leave. */
  const out = (): boolean => {
    if ((props.part ?? "") !== "") onZoom(zoomed);
    else if (zoomed === 0 && selected < 0) return false;
    else if (zoomed === 0) onSelect(-1);
    else {
      // A frame that stands for others has nothing to show of its own.
      const up = index.parent[zoomed]!;
      onZoom(Math.max(0, isFolded(index, up) ? index.parent[up]! : up));
    }
    return true;
  };
  /** Keys that do something with the selected frame; false for others. */
  const onFrameKey = (key: string): boolean => {
    if (selected < 0) return false;
    const label = labelOf(index, selected);
    const kind = TRANSFORM_KEYS[key];
    if (kind !== undefined) {
      const transform = transformOf(kind, label);
      if (transform !== null) addTransform(transform);
    } else if (key === "s") props.onSandwich(selected);
    else if (key === "y") void navigator.clipboard?.writeText(label.name).catch(() => {});
    else return false;
    return true;
  };
  const closeMenu = useCallback((back: boolean): void => {
    setMenu(null);
    if (back) scroller.current?.focus({ preventScroll: true });
  }, []);
  const openMenu = (): void => {
    const node = selected < 0 ? zoomed : selected;
    setMenu({ path: pathKey(index, node), ...(surface.current?.placeOf(node) ?? { x: 0, y: 0 }) });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      event.preventDefault();
      openMenu();
      return;
    }
    if (sequencePending() || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (event.shiftKey && (key === "ArrowLeft" || key === "ArrowRight"))
      surface.current?.pan(key === "ArrowLeft" ? -PAN_SHARE : PAN_SHARE);
    else if (key.startsWith("Arrow")) {
      const node = walk(key);
      if (node >= 0) onSelect(node);
    } else if (key === "Enter" && selected >= 0) onZoom(selected);
    else if (key === "Backspace" || key === "Escape") {
      if (!out()) return;
    } else if (!singleKeys.value) return;
    else if (key === "0") onZoom(0);
    else if (key === "+" || key === "-") surface.current?.scale(key === "+" ? NEARER : 1 / NEARER);
    else if (key === "n" || key === "N") {
      if (matches === null) return;
      props.onStep(key === "n" ? 1 : -1);
    } else if (key === "p") addTransform({ kind: "processes", key: "" });
    else if (key === "o") patchRoute({ panel: !route.value.panel }, "replace");
    else if (!onFrameKey(key)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const menuNode = menu === null ? -1 : findPath(index, menu.path);
  const mirror = selected < 0 ? zoomed : selected;
  const hoveredLabel = hovered >= 0 && hovered < index.count ? labelOf(index, hovered) : null;
  return (
    <div class="flame-frame">
      <div
        ref={scroller}
        class="flame-scroll"
        role="tree"
        tabIndex={0}
        aria-label={props.label}
        aria-activedescendant={props.itemId}
        onKeyDown={onKeyDown}
      >
        <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
        <div ref={spacer} />
        <div
          id={props.itemId}
          class="hidden"
          role="treeitem"
          tabIndex={-1}
          aria-level={index.graph.depth[mirror]! + 1}
          aria-selected={selected >= 0}
          aria-expanded={childCount(index, mirror) > 0}
        >
          {describe(index, mirror, reading, props.whole)}
        </div>
      </div>
      <canvas ref={minimap} class="flame-minimap" aria-hidden="true" />
      {menu !== null && (menuNode > 0 || menu.path === pathKey(index, 0)) && (
        <FrameMenu
          index={index}
          node={menuNode}
          place={menu}
          onZoom={onZoom}
          onSandwich={props.onSandwich}
          onClose={closeMenu}
        />
      )}
      <div class="hidden" aria-live="polite">
        {selected >= 0 ? describe(index, selected, reading, props.whole) : ""}
      </div>
      <div
        ref={tooltip}
        class="tooltip"
        role="tooltip"
        hidden={hoveredLabel === null || menu !== null}
        data-tooltip
      >
        {hoveredLabel !== null && (
          <>
            <code class="tooltip-name">{visible(hoveredLabel.name)}</code>
            <Numbers index={index} node={hovered} zoomed={zoomed} reading={reading} whole={props.whole} />
            {isFolded(index, hovered) ? (
              <span class="origin">
                <span>{foldedNames(index, hovered).map(visible).join(" › ")}</span>
                <span>Common root frames folded. Click to unfold.</span>
              </span>
            ) : (
              <Origin label={hoveredLabel} />
            )}
          </>
        )}
      </div>
    </div>
  );
}
