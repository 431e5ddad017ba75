// Draws one screen of a flame graph. Cost follows the pixels, not the frames: each row is entered
// by binary search, and frames narrower than a pixel are jumped over in one step.

import { contains, type FlameIndex, firstEndingAfter, lastStartingBefore } from "../lib/flame_index";
import { fitName, partStarts, shortName, visible } from "../lib/format";
import { type Colouring, type FrameStyle, styleOf, type Theme } from "./palette";

export const ROW_HEIGHT = 18;
/** Line around the selected frame. */
const SELECTED_WIDTH = 2;
const FONT_SIZE = 11.5;
const FONT_FAMILY = 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace';
const PLAIN = `${FONT_SIZE}px ${FONT_FAMILY}`;
const ITALIC = `italic ${PLAIN}`;
const BOLD = `600 ${PLAIN}`;
const PADDING = 4;
const EDGE_WIDTH = 5;
/** Below this width (CSS pixels) a frame has no text. */
const MIN_TEXT_WIDTH = 22;
const MIN_MARK_WIDTH = 9;
/** Frames of at most so many device pixels touch their neighbours. */
const WIDEST_IN_RUN = 2;

export interface Scene {
  readonly index: FlameIndex;
  /** Size in CSS pixels, and device pixels for each of them. */
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  /** Shown range in samples. */
  readonly left: number;
  readonly right: number;
  /** Top of row `depth` in CSS pixels from the top of the canvas. */
  readonly rowTop: (depth: number) => number;
  readonly firstDepth: number;
  readonly lastDepth: number;
  readonly zoomed: number;
  readonly selected: number;
  /** 1 for each matching node; null without a search. */
  readonly matches: Uint8Array | null;
}

/** Texts and styles of a graph in one theme, computed once for each label. */
export class Painter {
  readonly theme: Theme;
  /** Styles by node instead of by label, for comparisons. */
  nodeStyle: ((node: number) => FrameStyle) | null = null;
  private readonly styles: FrameStyle[] = [];
  private readonly names: string[] = [];
  private readonly ascii: boolean[] = [];
  private readonly parts: number[][] = [];
  private readonly charWidth: number;
  /** Setting a font or a colour is slow even when it stays the same. */
  private font = "";
  private filling: string | CanvasPattern = "";
  /** Narrow neighbours of one colour, filled as one rectangle: from, to and top, in device pixels but for the top. */
  private runColour = "";
  private runFrom = 0;
  private runTo = 0;
  private runTop = 0;
  private readonly hatch: CanvasPattern | null;
  private readonly stripes: CanvasPattern | null;
  private readonly context: CanvasRenderingContext2D;

  constructor(context: CanvasRenderingContext2D, index: FlameIndex, theme: Theme, by: Colouring = "kind") {
    this.context = context;
    this.theme = theme;
    context.font = PLAIN;
    this.charWidth = context.measureText("0".repeat(40)).width / 40;
    this.hatch = pattern(context, theme.hatch, 4);
    this.stripes = pattern(context, theme.hatch, 8);
    for (const label of index.graph.labels) {
      this.styles.push(styleOf(label, theme, by));
      const name = visible(shortName(label.name));
      this.names.push(name);
      this.parts.push(partStarts(name));
      this.ascii.push(/^[\x20-\x7e…]*$/.test(name));
    }
  }

  paint(scene: Scene): void {
    const { context } = this;
    context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    this.font = "";
    this.filling = "";
    this.setFill(this.theme.background);
    context.fillRect(0, 0, scene.width, scene.height);
    context.textBaseline = "middle";
    context.direction = "ltr";
    for (let depth = scene.firstDepth; depth <= scene.lastDepth; depth += 1) this.row(scene, depth);
    this.outline(scene, scene.selected);
  }

  /** One row, from left to right. All edges are whole device pixels, so neighbours share them. */
  private row(scene: Scene, depth: number): void {
    this.frames(scene, depth);
    this.fillRun(scene.ratio);
  }

  private frames(scene: Scene, depth: number): void {
    const { index, left, right, ratio } = scene;
    const { start, total, rowNodes } = index;
    const perSample = (scene.width * ratio) / (right - left);
    const rowEnd = index.rowOffset[depth + 1]!;
    const top = scene.rowTop(depth);
    const pixelsWide = Math.round(scene.width * ratio);
    let at = firstEndingAfter(index, depth, left);
    while (at < rowEnd) {
      let node = rowNodes[at]!;
      if (start[node]! >= right) return;
      const x = Math.round((start[node]! - left) * perSample);
      let end = Math.round((start[node]! + total[node]! - left) * perSample);
      if (end <= x) {
        const last = lastStartingBefore(index, at, rowEnd, left + (x + 0.5) / perSample);
        node = rowNodes[last]!;
        at = last;
        end = Math.round((start[node]! + total[node]! - left) * perSample);
        if (end <= x) {
          this.thin(scene, node, x, top);
          at += 1;
          continue;
        }
      }
      this.frame(scene, node, Math.max(x, 0), Math.min(end, pixelsWide), top);
      at += 1;
    }
  }

  private thin(scene: Scene, node: number, x: number, top: number): void {
    if (scene.index.total[node] === 0) return;
    const hit = scene.matches !== null && scene.matches[node] === 1;
    const colour = hit ? this.theme.matchFill : this.style(scene.index, node).thin;
    this.addToRun(scene.ratio, colour, x, x + 1, top);
  }

  private addToRun(ratio: number, colour: string, from: number, to: number, top: number): void {
    if (colour === this.runColour && top === this.runTop && from >= this.runFrom && from <= this.runTo) {
      if (to > this.runTo) this.runTo = to;
      return;
    }
    // What lies over it comes later.
    this.fillRun(ratio);
    this.runColour = colour;
    this.runFrom = from;
    this.runTo = to;
    this.runTop = top;
  }

  private fillRun(ratio: number): void {
    if (this.runTo === this.runFrom) return;
    this.setFill(this.runColour);
    const width = (this.runTo - this.runFrom) / ratio;
    this.context.fillRect(this.runFrom / ratio, this.runTop, width, ROW_HEIGHT - 1);
    this.runTo = this.runFrom;
  }

  /** Of a frame that is only a few pixels large. */
  colourOf(index: FlameIndex, node: number, matches: Uint8Array | null): string {
    const style = this.style(index, node);
    if (matches === null) return style.thin;
    return matches[node] === 1 ? this.theme.matchFill : style.faded;
  }

  private style(index: FlameIndex, node: number): FrameStyle {
    return this.nodeStyle?.(node) ?? this.styles[index.graph.label[node]!]!;
  }

  /** `x` and `end` are device pixels inside the canvas. */
  private frame(scene: Scene, node: number, x: number, end: number, top: number): void {
    const { context } = this;
    const style = this.style(scene.index, node);
    const hit = scene.matches !== null && scene.matches[node] === 1;
    const faded = scene.matches !== null ? !hit : !contains(scene.index, scene.zoomed, node);
    const colour = hit ? this.theme.matchFill : faded ? style.faded : style.fill;
    // Only wider ones have a gap to their neighbour.
    if (end - x <= WIDEST_IN_RUN) {
      this.addToRun(scene.ratio, colour, x, end, top);
      return;
    }
    this.fillRun(scene.ratio);
    const cssX = x / scene.ratio;
    const cssWidth = (end - x - 1) / scene.ratio;
    this.setFill(colour);
    context.fillRect(cssX, top, cssWidth, ROW_HEIGHT - 1);
    if (cssWidth >= MIN_MARK_WIDTH && !hit) this.marks(style, cssX, top, cssWidth);
    if (cssWidth >= MIN_TEXT_WIDTH) this.text(scene, node, style, hit, cssX, top, cssWidth);
  }

  private marks(style: FrameStyle, x: number, top: number, width: number): void {
    const { context } = this;
    if (style.hatchedEdge && this.hatch !== null) {
      this.setFill(this.hatch);
      context.fillRect(x, top, EDGE_WIDTH, ROW_HEIGHT - 1);
    }
    if (style.striped && this.stripes !== null) {
      context.globalAlpha = 0.35;
      this.setFill(this.stripes);
      context.fillRect(x, top, width, ROW_HEIGHT - 1);
      context.globalAlpha = 1;
    }
    if (style.dottedOutline) {
      context.strokeStyle = this.theme.outline;
      context.lineWidth = 1;
      context.setLineDash([1.5, 2.5]);
      context.strokeRect(x + 0.5, top + 0.5, width - 1, ROW_HEIGHT - 2);
      context.setLineDash([]);
    }
  }

  private text(
    scene: Scene,
    node: number,
    style: FrameStyle,
    hit: boolean,
    x: number,
    top: number,
    width: number,
  ): void {
    const inset = style.hatchedEdge ? EDGE_WIDTH + 3 : PADDING;
    const room = Math.floor((width - inset - PADDING + 1) / this.charWidth);
    if (room < 2) return;
    const labelId = scene.index.graph.label[node]!;
    const name = this.names[labelId]!;
    const shown = fitName(name, this.parts[labelId]!, room);
    const { context } = this;
    this.setFont(style.italic ? ITALIC : style.bold ? BOLD : PLAIN);
    const muted = scene.matches !== null && !hit;
    this.setFill(hit ? this.theme.matchText : muted ? this.theme.mutedText : this.theme.text);
    // Letters outside ASCII may be wider than a cell: maxWidth squeezes them into the frame.
    if (this.ascii[labelId]) context.fillText(shown, x + inset, top + ROW_HEIGHT / 2);
    else context.fillText(shown, x + inset, top + ROW_HEIGHT / 2, Math.max(1, width - inset - 1));
  }

  private setFont(wanted: string): void {
    if (wanted === this.font) return;
    this.font = wanted;
    this.context.font = wanted;
  }

  private setFill(wanted: string | CanvasPattern): void {
    if (wanted === this.filling) return;
    this.filling = wanted;
    this.context.fillStyle = wanted;
  }

  private outline(scene: Scene, node: number): void {
    const { index } = scene;
    if (node < 0 || node >= index.count) return;
    const depth = index.graph.depth[node]!;
    if (depth < scene.firstDepth || depth > scene.lastDepth) return;
    const scale = scene.width / (scene.right - scene.left);
    const from = Math.max(-4, (index.start[node]! - scene.left) * scale);
    const to = Math.min(scene.width + 4, (index.start[node]! + index.total[node]! - scene.left) * scale);
    if (to < 0 || from > scene.width) return;
    const { context } = this;
    context.strokeStyle = this.theme.selection;
    context.lineWidth = SELECTED_WIDTH;
    const inset = SELECTED_WIDTH / 2;
    const width = Math.max(2, to - from - 1) - SELECTED_WIDTH;
    context.strokeRect(
      from + inset,
      scene.rowTop(depth) + inset,
      Math.max(1, width),
      ROW_HEIGHT - 1 - SELECTED_WIDTH,
    );
  }
}

/** Diagonal lines on a transparent tile. */
function pattern(context: CanvasRenderingContext2D, colour: string, size: number): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = size;
  tile.height = size;
  const draw = tile.getContext("2d");
  if (draw === null) return null;
  draw.strokeStyle = colour;
  draw.lineWidth = size / 4;
  draw.beginPath();
  for (const shift of [-size, 0, size]) {
    draw.moveTo(shift, size);
    draw.lineTo(shift + size, 0);
  }
  draw.stroke();
  return context.createPattern(tile, "repeat");
}

/** One frame alone, for the legend. */
export function paintSwatch(
  canvas: HTMLCanvasElement,
  index: FlameIndex,
  theme: Theme,
  by: Colouring,
  ratio: number,
): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round((ROW_HEIGHT - 1) * ratio);
  new Painter(context, index, theme, by).paint({
    index,
    width: width + 1,
    height: ROW_HEIGHT,
    ratio,
    left: 0,
    right: index.total[0]!,
    rowTop: () => 0,
    firstDepth: 0,
    lastDepth: 0,
    zoomed: 0,
    selected: -1,
    matches: null,
  });
}
