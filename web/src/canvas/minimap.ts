// The whole height of a graph beside it, when it is much higher than the window: what is in view, where
// there is something, where matches are. A click goes there.

import { type FlameIndex, firstEndingAfter, lastStartingBefore } from "../lib/flame_index";
import type { Painter } from "./painter";

export const MINIMAP_WIDTH = 64;

export interface MinimapScene {
  readonly index: FlameIndex;
  readonly painter: Painter;
  readonly matches: Uint8Array | null;
  /** Rows of the graph, and the side that the first is on. */
  readonly rows: number;
  readonly growth: "up" | "down";
  /** Shown range in samples. */
  readonly left: number;
  readonly right: number;
  /** What is in view, as shares of the height. */
  readonly from: number;
  readonly to: number;
  /** Of the window in CSS pixels. */
  readonly height: number;
}

export class Minimap {
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D | null;
  private shown = false;
  /** The drawing without the mark of what is in view, which moves much more often. */
  private readonly ground = document.createElement("canvas");
  private drawn: MinimapScene | null = null;

  constructor(canvas: HTMLCanvasElement, scrollTo: (share: number) => void, signal: AbortSignal) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    canvas.hidden = true;
    const follow = (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      scrollTo((event.clientY - box.top) / box.height);
    };
    canvas.addEventListener(
      "pointerdown",
      (event) => {
        if (event.button !== 0) return;
        canvas.setPointerCapture(event.pointerId);
        follow(event);
      },
      { signal },
    );
    canvas.addEventListener("pointermove", (event) => event.buttons === 1 && follow(event), { signal });
  }

  show(shown: boolean): void {
    if (shown === this.shown) return;
    this.shown = shown;
    this.canvas.hidden = !shown;
    // The graph makes room.
    this.canvas.parentElement?.classList.toggle("mapped", shown);
  }

  paint(scene: MinimapScene): void {
    const { context, canvas } = this;
    if (!this.shown || context === null || scene.height <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(MINIMAP_WIDTH * ratio);
    const height = Math.round(scene.height * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      for (const each of [canvas, this.ground]) {
        each.width = width;
        each.height = height;
      }
      canvas.style.setProperty("width", `${MINIMAP_WIDTH}px`);
      canvas.style.setProperty("height", `${scene.height}px`);
      this.drawn = null;
    }
    if (!this.sameGround(scene)) this.paintGround(scene, width, height);
    context.drawImage(this.ground, 0, 0);
    const top = scene.from * height;
    const view = Math.max(3 * ratio, (scene.to - scene.from) * height);
    context.strokeStyle = scene.painter.theme.selection;
    context.lineWidth = 2 * ratio;
    context.strokeRect(ratio, top + ratio, width - 2 * ratio, view - 2 * ratio);
  }

  private sameGround(scene: MinimapScene): boolean {
    const { drawn } = this;
    return (
      drawn !== null &&
      drawn.index === scene.index &&
      drawn.painter === scene.painter &&
      drawn.matches === scene.matches &&
      drawn.rows === scene.rows &&
      drawn.growth === scene.growth &&
      drawn.left === scene.left &&
      drawn.right === scene.right
    );
  }

  /** Each line of pixels shows one row of the graph: the cost follows the pixels. */
  private paintGround(scene: MinimapScene, width: number, height: number): void {
    const context = this.ground.getContext("2d", { alpha: false });
    if (context === null) return;
    const { index, painter, rows, left, right } = scene;
    this.drawn = scene;
    context.fillStyle = painter.theme.background;
    context.fillRect(0, 0, width, height);
    const perSample = width / (right - left);
    for (let y = 0; y < height; y += 1) {
      const line = scene.growth === "up" ? height - 1 - y : y;
      const depth = Math.min(rows - 1, Math.floor((line * rows) / height));
      const rowEnd = index.rowOffset[depth + 1]!;
      let at = firstEndingAfter(index, depth, left);
      while (at < rowEnd) {
        const node = index.rowNodes[at]!;
        const start = index.start[node]!;
        if (start >= right) break;
        const x = Math.max(0, Math.floor((start - left) * perSample));
        const end = Math.min(width, Math.ceil((start + index.total[node]! - left) * perSample));
        context.fillStyle = painter.colourOf(index, node, scene.matches);
        context.fillRect(x, y, Math.max(1, end - x), 1);
        // Of those that begin in the same pixel only the last can reach beyond it.
        const last = lastStartingBefore(index, at, rowEnd, left + (x + 1) / perSample);
        at = last > at ? last : at + 1;
      }
    }
  }
}
