// Draws threads in time order: for each thread a strip that tells how much each bucket has, and
// below it the stacks as boxes over time. Cost follows the pixels: what is narrower than one is
// drawn once for each pixel.

import type { Label } from "../lib/flamegraph";
import { fitName, partStarts, shortName, visible } from "../lib/format";
import { type Box, boxAt, firstAfter, type Lane } from "../lib/sequence";
import { ROW_HEIGHT } from "./painter";
import { styleOf, type Theme } from "./palette";

export const HEAD_HEIGHT = 20;
export const STRIP_HEIGHT = 10;
const GAP = 8;
const FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace';
const MIN_TEXT_WIDTH = 22;

export interface OrderScene {
  readonly lanes: readonly Lane[];
  readonly titles: readonly string[];
  readonly labels: readonly Label[];
  readonly buckets: number;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly scroll: number;
  readonly theme: Theme;
  readonly selected: { readonly lane: number; readonly box: Box } | null;
  /** What a drag would pick, in buckets. */
  readonly marked: readonly [number, number] | null;
}

/** Top of each lane, and the end of the last. */
export function laneTops(lanes: readonly Lane[]): number[] {
  const tops = [0];
  for (const lane of lanes)
    tops.push(tops[tops.length - 1]! + HEAD_HEIGHT + STRIP_HEIGHT + lane.rows.length * ROW_HEIGHT + GAP);
  return tops;
}

/** What lies at a place of the content. */
export function hitOrder(
  scene: Pick<OrderScene, "lanes" | "buckets" | "width">,
  x: number,
  y: number,
): { lane: number; box: Box | null; bucket: number } | null {
  const tops = laneTops(scene.lanes);
  const bucket = (x / scene.width) * scene.buckets;
  if (bucket < 0 || bucket >= scene.buckets) return null;
  for (let lane = 0; lane < scene.lanes.length; lane += 1) {
    if (y >= tops[lane + 1]!) continue;
    const depth = Math.floor((y - tops[lane]! - HEAD_HEIGHT - STRIP_HEIGHT) / ROW_HEIGHT);
    const box = depth < 0 ? null : boxAt(scene.lanes[lane]!, depth, bucket);
    return { lane, box, bucket: Math.floor(bucket) };
  }
  return null;
}

export class OrderPainter {
  private readonly styles: { fill: string; hatched: boolean }[] = [];
  private readonly names: string[] = [];
  private readonly parts: number[][] = [];
  private readonly charWidth: number;
  private readonly context: CanvasRenderingContext2D;

  constructor(context: CanvasRenderingContext2D, labels: readonly Label[], theme: Theme) {
    this.context = context;
    context.font = FONT;
    this.charWidth = context.measureText("0".repeat(40)).width / 40;
    for (const label of labels) {
      const style = styleOf(label, theme, "kind");
      this.styles.push({ fill: style.fill, hatched: style.hatchedEdge });
      const name = visible(shortName(label.name));
      this.names.push(name);
      this.parts.push(partStarts(name));
    }
  }

  paint(scene: OrderScene): void {
    const { context } = this;
    const { theme } = scene;
    context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    context.fillStyle = theme.background;
    context.fillRect(0, 0, scene.width, scene.height);
    context.textBaseline = "middle";
    context.font = FONT;
    const tops = laneTops(scene.lanes);
    scene.lanes.forEach((lane, i) => {
      const top = tops[i]! - scene.scroll;
      if (top > scene.height || tops[i + 1]! - scene.scroll < 0) return;
      context.fillStyle = theme.mutedText;
      context.fillText(scene.titles[i] ?? "", 4, top + HEAD_HEIGHT / 2, scene.width - 8);
      this.strip(scene, lane, top + HEAD_HEIGHT);
      lane.rows.forEach((row, depth) => {
        const rowTop = top + HEAD_HEIGHT + STRIP_HEIGHT + depth * ROW_HEIGHT;
        if (rowTop < -ROW_HEIGHT || rowTop > scene.height) return;
        this.row(scene, row, rowTop);
      });
    });
    this.selection(scene, tops);
    if (scene.marked !== null) this.mark(scene, scene.marked);
  }

  /** How much each bucket has, against the fullest one of the thread. */
  private strip(scene: OrderScene, lane: Lane, top: number): void {
    const { context } = this;
    const perBucket = scene.width / scene.buckets;
    let most = 0;
    for (const amount of lane.amounts) if (amount > most) most = amount;
    if (most === 0) return;
    context.fillStyle = scene.theme.mutedText;
    const step = Math.max(1, Math.floor(1 / perBucket));
    for (let i = 0; i < scene.buckets; i += step) {
      let amount = 0;
      for (let j = i; j < Math.min(scene.buckets, i + step); j += 1)
        amount = Math.max(amount, lane.amounts[j] ?? 0);
      if (amount === 0) continue;
      const height = Math.max(1, (amount / most) * (STRIP_HEIGHT - 2));
      context.globalAlpha = 0.55;
      context.fillRect(
        i * perBucket,
        top + STRIP_HEIGHT - 1 - height,
        Math.max(1, step * perBucket - (perBucket > 3 ? 1 : 0)),
        height,
      );
    }
    context.globalAlpha = 1;
  }

  private row(scene: OrderScene, row: readonly Box[], top: number): void {
    const { context } = this;
    const scale = (scene.width * scene.ratio) / scene.buckets;
    let at = 0;
    while (at < row.length) {
      const box = row[at]!;
      const x = Math.round(box.from * scale);
      const end = Math.max(x + 1, Math.round(box.to * scale));
      context.fillStyle = this.styles[box.label]?.fill ?? scene.theme.outline;
      const gap = end - x > 2 ? 1 : 0;
      context.fillRect(x / scene.ratio, top, (end - x - gap) / scene.ratio, ROW_HEIGHT - 1);
      this.text(scene, box, x / scene.ratio, top, (end - x - gap) / scene.ratio);
      // What ends inside this pixel cannot be seen.
      at = Math.max(at + 1, firstAfter(row, (x + 0.999) / scale));
    }
  }

  private text(scene: OrderScene, box: Box, x: number, top: number, width: number): void {
    if (width < MIN_TEXT_WIDTH) return;
    const { context } = this;
    const style = this.styles[box.label];
    const inset = style?.hatched === true ? 8 : 4;
    if (style?.hatched === true) {
      context.fillStyle = scene.theme.hatch;
      context.fillRect(x, top, 4, ROW_HEIGHT - 1);
    }
    const room = Math.floor((width - inset - 3) / this.charWidth);
    if (room < 2) return;
    const name = this.names[box.label] ?? "";
    context.fillStyle = scene.theme.text;
    const shown = fitName(name, this.parts[box.label] ?? [0], room);
    context.fillText(shown, x + inset, top + ROW_HEIGHT / 2, Math.max(1, width - inset - 1));
  }

  private selection(scene: OrderScene, tops: readonly number[]): void {
    if (scene.selected === null) return;
    const { lane, box } = scene.selected;
    const scale = scene.width / scene.buckets;
    const top = tops[lane]! - scene.scroll + HEAD_HEIGHT + STRIP_HEIGHT + box.depth * ROW_HEIGHT;
    this.context.strokeStyle = scene.theme.selection;
    this.context.lineWidth = 2;
    this.context.strokeRect(
      box.from * scale + 1,
      top + 1,
      Math.max(2, (box.to - box.from) * scale - 3),
      ROW_HEIGHT - 3,
    );
  }

  private mark(scene: OrderScene, [from, to]: readonly [number, number]): void {
    const scale = scene.width / scene.buckets;
    this.context.globalAlpha = 0.16;
    this.context.fillStyle = scene.theme.selection;
    this.context.fillRect(from * scale, 0, (to - from) * scale, scene.height);
    this.context.globalAlpha = 1;
    this.context.strokeStyle = scene.theme.selection;
    this.context.lineWidth = 1;
    this.context.strokeRect(from * scale, 0, (to - from) * scale, scene.height);
  }
}
