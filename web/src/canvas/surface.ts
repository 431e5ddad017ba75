// The flame graph as a thing to look at and touch: owns the canvas, the scroll position, the shown
// range and the pointer. The canvas is as high as the window on it, never as high as the graph.

import { type FlameIndex, nodeAt, rowsBelow } from "../lib/flame_index";
import { type Part, panBy, partOf, type Range, rangeOfPart, zoomAt } from "../lib/flame_window";
import type { ColourMode } from "../lib/query_state";
import { followGestures } from "./gestures";
import { Minimap } from "./minimap";
import { Painter, ROW_HEIGHT } from "./painter";
import { colouring, type FrameStyle, type Theme } from "./palette";
import { pictureOf } from "./picture";

/** Which side the root is on. */
export type Growth = "up" | "down";

const ZOOM_MS = 140;
/** Delay after the last movement before it is reported. */
const SETTLED_MS = 160;
/** Graphs higher than this many screens have a map beside them. */
const MAPPED_SCREENS = 1.5;

export interface SurfaceEvents {
  /** A frame was clicked. */
  readonly picked: (node: number) => void;
  /** What can be done with a frame is asked for, at a place in the window. */
  readonly asked?: (node: number, x: number, y: number) => void;
  /** The pointer is over `node` (-1: over none) at a place in the window. */
  readonly hovered: (node: number, x: number, y: number) => void;
  /** The reader has moved to this part of the width (null: all of it); `left` when it is not inside the zoomed frame. */
  readonly windowed: (part: Part | null, left: boolean) => void;
}

export class FlameSurface {
  private readonly scroller: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly spacer: HTMLElement;
  private readonly context: CanvasRenderingContext2D;
  private readonly events: SurfaceEvents;
  private readonly stop = new AbortController();
  private readonly resize: ResizeObserver;

  private index: FlameIndex | null = null;
  private painter: Painter | null = null;
  private theme: Theme;
  private growth: Growth = "up";
  private colour: ColourMode = "kind";
  private zoomed = 0;
  private selected = -1;
  private hovered = -1;
  private matches: Uint8Array | null = null;
  private nodeStyle: ((node: number) => FrameStyle) | null = null;
  private range: Range = { left: 0, right: 1 };
  private rows = 1;
  private width = 0;
  private height = 0;
  private frame = 0;
  private animation: { from: Range; to: Range; since: number } | null = null;
  private arrivedAt: number | null = null;
  private pointer: { x: number; y: number } | null = null;
  private part: Part | null = null;
  private leftZoom = false;
  /** How far the bottom is from what is shown: the browser moves the place when the box grows. */
  private fromBottom = 0;
  private settling: ReturnType<typeof setTimeout> | undefined;
  private readonly minimap: Minimap | null;
  /** Around the frame under the pointer: an element, so that a movement does not draw the graph again. */
  private readonly mark = document.createElement("div");

  constructor(
    parts: {
      scroller: HTMLElement;
      canvas: HTMLCanvasElement;
      spacer: HTMLElement;
      minimap?: HTMLCanvasElement | null;
    },
    theme: Theme,
    events: SurfaceEvents,
  ) {
    this.scroller = parts.scroller;
    this.canvas = parts.canvas;
    this.spacer = parts.spacer;
    this.theme = theme;
    this.events = events;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (context === null) throw new Error("this browser gives no 2D canvas");
    this.context = context;
    const options = { signal: this.stop.signal, passive: true };
    this.scroller.addEventListener(
      "scroll",
      () => {
        this.fromBottom = this.maxScroll() - this.scroller.scrollTop;
        this.hitAgain();
        this.requestPaint();
      },
      options,
    );
    this.canvas.addEventListener("pointermove", (event) => this.pointerMoved(event), options);
    this.canvas.addEventListener("pointerleave", () => this.pointerLeft(), options);
    followGestures(
      this.canvas,
      {
        scaled: (factor, clientX) => this.scale(factor, clientX),
        moved: (dx, dy) => this.moveBy(dx, dy),
        clicked: (clientX, clientY) => {
          const node = this.hit(clientX, clientY);
          if (node >= 0) this.events.picked(node);
        },
        asked: (clientX, clientY) => {
          const node = this.hit(clientX, clientY);
          if (node < 0 || this.events.asked === undefined) return false;
          this.events.asked(node, clientX, clientY);
          return true;
        },
      },
      this.stop.signal,
    );
    const scrollTo = (share: number): void => {
      this.scroller.scrollTop = share * this.contentHeight() - this.height / 2;
    };
    this.minimap = parts.minimap ? new Minimap(parts.minimap, scrollTo, this.stop.signal) : null;
    this.mark.className = "flame-mark";
    this.mark.hidden = true;
    this.scroller.append(this.mark);
    this.resize = new ResizeObserver(() => this.measure());
    this.resize.observe(this.scroller);
    this.measure();
  }

  destroy(): void {
    this.stop.abort();
    this.resize.disconnect();
    this.mark.remove();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.settling);
  }

  /** Shows another graph; `arrivedAt` is when its bytes were complete, for the measurement. */
  setGraph(index: FlameIndex, zoomed: number, arrivedAt: number | null): void {
    const first = this.index === null;
    this.index = index;
    this.painter = this.painterOf(index);
    this.selected = -1;
    this.hovered = -1;
    this.matches = null;
    this.arrivedAt = arrivedAt;
    this.zoomed = zoomed;
    this.animation = null;
    this.range = this.goal();
    this.setRows(rowsBelow(index, zoomed), first);
    this.hitAgain();
  }

  /** The pointer has not moved, but another frame may be below it now. */
  private hitAgain(): void {
    if (this.pointer === null) return;
    const { x, y } = this.pointer;
    this.setHovered(this.hit(x, y), x, y);
  }

  setTheme(theme: Theme): void {
    if (theme === this.theme) return;
    this.theme = theme;
    if (this.index !== null) this.painter = this.painterOf(this.index);
    this.requestPaint();
  }

  setGrowth(growth: Growth): void {
    if (growth === this.growth) return;
    this.growth = growth;
    this.scroller.scrollTop = growth === "up" ? this.maxScroll() : 0;
    this.requestPaint();
  }

  setColour(colour: ColourMode): void {
    if (colour === this.colour) return;
    this.colour = colour;
    if (this.index !== null) this.painter = this.painterOf(this.index);
    this.requestPaint();
  }

  private painterOf(index: FlameIndex): Painter {
    return new Painter(this.context, index, this.theme, colouring(this.colour, index.graph.labels));
  }

  setMatches(matches: Uint8Array | null): void {
    this.matches = matches;
    this.requestPaint();
  }

  /** Styles by node, for comparisons; null for those of the labels. */
  setNodeStyle(style: ((node: number) => FrameStyle) | null): void {
    this.nodeStyle = style;
    this.requestPaint();
  }

  select(node: number, reveal: boolean): void {
    this.selected = node;
    if (reveal && node >= 0) this.reveal(node);
    this.requestPaint();
  }

  zoom(node: number): void {
    if (this.index === null || node === this.zoomed) return;
    this.zoomed = node;
    this.glide();
    this.setRows(rowsBelow(this.index, node), false);
  }

  /** Shows a part of the width; null: that of the zoomed frame. */
  setPart(part: Part | null): void {
    const same = part?.from === this.part?.from && part?.to === this.part?.to;
    // While the reader moves, what is told of it comes back late.
    if (same || this.settling !== undefined) return;
    this.part = part;
    this.glide();
    this.requestPaint();
  }

  /** What is shown when nothing moves. */
  private goal(): Range {
    return this.part === null ? this.rangeOf(this.zoomed) : rangeOfPart(this.part, this.rangeOf(0));
  }

  private glide(): void {
    const to = this.goal();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) this.range = to;
    else this.animation = { from: this.range, to, since: performance.now() };
  }

  /** Shows `factor` of the width around a place, or around the middle. */
  scale(factor: number, clientX: number | null = null): void {
    const box = this.canvas.getBoundingClientRect();
    const share = clientX === null || this.width === 0 ? 0.5 : (clientX - box.left) / this.width;
    const { left, right } = this.range;
    this.moveTo(zoomAt(this.range, this.rangeOf(0), left + share * (right - left), factor));
  }

  /** Moves by shares of what is shown. */
  pan(share: number): void {
    this.moveTo(panBy(this.range, this.rangeOf(0), share * (this.range.right - this.range.left)));
  }

  private moveBy(dx: number, dy: number): void {
    if (dy !== 0) this.scroller.scrollTop -= dy;
    if (dx !== 0 && this.width > 0) this.pan(-dx / this.width);
  }

  private moveTo(range: Range): void {
    if (this.index === null) return;
    this.animation = null;
    this.range = range;
    this.hitAgain();
    const zoom = this.rangeOf(this.zoomed);
    if (this.zoomed !== 0 && (range.left < zoom.left || range.right > zoom.right)) {
      // Beside the zoomed frame there are others, which may be higher.
      this.leftZoom = true;
      this.zoomed = 0;
      this.setRows(rowsBelow(this.index, 0), false);
    }
    this.requestPaint();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.settling = undefined;
      const part = partOf(this.range, this.rangeOf(0));
      // A part that is the whole zoomed frame is not a part.
      const whole = this.rangeOf(this.zoomed);
      this.part = this.range.left === whole.left && this.range.right === whole.right ? null : part;
      this.events.windowed(this.part, this.leftZoom);
      this.leftZoom = false;
    }, SETTLED_MS);
  }

  /** Width of a frame on the screen, in CSS pixels. */
  widthOf(node: number): number {
    if (this.index === null) return 0;
    const { left, right } = this.goal();
    return (this.index.total[node]! * this.width) / (right - left);
  }

  private rangeOf(node: number): Range {
    const left = this.index?.start[node] ?? 0;
    const size = this.index?.total[node] ?? 0;
    return { left, right: left + (size > 0 ? size : 1) };
  }

  private contentHeight(): number {
    return Math.max(this.rows * ROW_HEIGHT, this.height);
  }

  private maxScroll(): number {
    return this.contentHeight() - this.height;
  }

  /** Keeps the root's side in place: the bottom of a flame, the top of an icicle. */
  private setRows(rows: number, first: boolean): void {
    const fromBottom = first ? 0 : this.maxScroll() - this.scroller.scrollTop;
    this.rows = rows;
    this.spacer.style.setProperty("height", `${this.maxScroll()}px`);
    this.minimap?.show(this.contentHeight() > MAPPED_SCREENS * this.height);
    if (this.growth === "up")
      this.scroller.scrollTop = this.maxScroll() - Math.min(fromBottom, this.maxScroll());
    this.fromBottom = this.maxScroll() - this.scroller.scrollTop;
    this.requestPaint();
  }

  private measure(): void {
    const { fromBottom } = this;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.canvas.style.setProperty("width", `${this.width}px`);
    this.canvas.style.setProperty("height", `${this.height}px`);
    this.spacer.style.setProperty("height", `${this.maxScroll()}px`);
    if (this.growth === "up") this.scroller.scrollTop = this.maxScroll() - fromBottom;
    this.fromBottom = this.maxScroll() - this.scroller.scrollTop;
    this.minimap?.show(this.contentHeight() > MAPPED_SCREENS * this.height);
    // The new canvas is empty: paint before the browser shows it.
    this.paint();
  }

  private rowTop(depth: number): number {
    const top = this.growth === "up" ? this.contentHeight() - (depth + 1) * ROW_HEIGHT : depth * ROW_HEIGHT;
    return top - this.scroller.scrollTop;
  }

  private depthAt(y: number): number {
    const inContent = y + this.scroller.scrollTop;
    return Math.floor((this.growth === "up" ? this.contentHeight() - inContent : inContent) / ROW_HEIGHT);
  }

  private reveal(node: number): void {
    const depth = this.index?.graph.depth[node] ?? 0;
    const top = this.rowTop(depth);
    if (top < ROW_HEIGHT) this.scroller.scrollTop += top - 3 * ROW_HEIGHT;
    else if (top > this.height - 2 * ROW_HEIGHT)
      this.scroller.scrollTop += top - this.height + 4 * ROW_HEIGHT;
  }

  private hit(clientX: number, clientY: number): number {
    if (this.index === null || this.width === 0) return -1;
    const box = this.canvas.getBoundingClientRect();
    const { left, right } = this.range;
    const x = left + ((clientX - box.left) / this.width) * (right - left);
    const depth = this.depthAt(clientY - box.top);
    return depth < this.rows ? nodeAt(this.index, depth, x) : -1;
  }

  private pointerMoved(event: PointerEvent): void {
    this.pointer = { x: event.clientX, y: event.clientY };
    this.setHovered(this.hit(event.clientX, event.clientY), event.clientX, event.clientY);
  }

  private pointerLeft(): void {
    this.pointer = null;
    this.setHovered(-1, 0, 0);
  }

  private setHovered(node: number, x: number, y: number): void {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.classList.toggle("over-frame", node >= 0);
      this.placeMark();
    }
    this.events.hovered(node, x, y);
  }

  /** Where the left end of a frame is in the window, inside what is shown. */
  placeOf(node: number): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.width / (this.range.right - this.range.left);
    const from = ((this.index?.start[node] ?? 0) - this.range.left) * scale;
    const top = this.rowTop((this.index?.graph.depth[node] ?? 0) + (this.growth === "up" ? 0 : 1));
    return {
      x: box.left + Math.min(this.width, Math.max(0, from)),
      y: box.top + Math.min(this.height, Math.max(0, top)),
    };
  }

  private placeMark(): void {
    const { index, hovered: node, mark } = this;
    mark.hidden = index === null || node < 0 || node >= index.count;
    if (index === null || mark.hidden) return;
    const scale = this.width / (this.range.right - this.range.left);
    const from = Math.max(0, (index.start[node]! - this.range.left) * scale);
    const to = Math.min(this.width, (index.start[node]! + index.total[node]! - this.range.left) * scale);
    mark.style.setProperty("width", `${Math.max(2, to - from - 1)}px`);
    const top = this.rowTop(index.graph.depth[node]!) + this.scroller.scrollTop;
    mark.style.setProperty("transform", `translate(${from}px, ${top}px)`);
  }

  /** The shown range with all its rows as a PNG; null when the browser makes none. */
  async picture(): Promise<Blob | null> {
    if (this.index === null || this.width === 0) return null;
    return pictureOf({
      index: this.index,
      theme: this.theme,
      by: colouring(this.colour, this.index.graph.labels),
      nodeStyle: this.nodeStyle,
      growth: this.growth,
      width: this.width,
      rows: this.rows,
      left: this.range.left,
      right: this.range.right,
      zoomed: this.zoomed,
      selected: this.selected,
      matches: this.matches,
    });
  }

  private requestPaint(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.advance();
      this.paint();
      if (this.animation !== null) this.requestPaint();
    });
  }

  private advance(): void {
    if (this.animation === null) return;
    const { from, to, since } = this.animation;
    const part = Math.min(1, (performance.now() - since) / ZOOM_MS);
    const eased = 1 - (1 - part) ** 3;
    this.range = {
      left: from.left + (to.left - from.left) * eased,
      right: from.right + (to.right - from.right) * eased,
    };
    if (part === 1) {
      this.range = to;
      this.animation = null;
      this.hitAgain();
    }
  }

  private paint(): void {
    if (this.index === null || this.painter === null || this.width === 0 || this.height === 0) return;
    const began = performance.now();
    this.painter.nodeStyle = this.nodeStyle;
    const a = this.depthAt(0);
    const b = this.depthAt(this.height - 1);
    this.painter.paint({
      index: this.index,
      width: this.width,
      height: this.height,
      ratio: window.devicePixelRatio || 1,
      left: this.range.left,
      right: this.range.right,
      rowTop: (depth) => this.rowTop(depth),
      firstDepth: Math.max(0, Math.min(a, b)),
      lastDepth: Math.min(this.rows - 1, Math.max(a, b)),
      zoomed: this.zoomed,
      selected: this.selected,
      matches: this.matches,
    });
    this.minimap?.paint({
      index: this.index,
      painter: this.painter,
      matches: this.matches,
      rows: this.rows,
      growth: this.growth,
      left: this.range.left,
      right: this.range.right,
      from: this.scroller.scrollTop / this.contentHeight(),
      to: (this.scroller.scrollTop + this.height) / this.contentHeight(),
      height: this.height,
    });
    this.placeMark();
    this.report("flame.paint", began);
    if (this.arrivedAt !== null) {
      this.report("flame.first-paint", this.arrivedAt);
      this.arrivedAt = null;
    }
  }

  /** One entry of each name at a time: visible to observers and in the browser's own profiler. */
  private report(name: string, start: number): void {
    performance.clearMeasures(name);
    performance.measure(name, { start, end: performance.now() });
  }
}
