// What is drawn has the widths that the numbers say: children and self of every frame fill it, to
// the pixel. The canvas is one that only writes down what is filled.

import { beforeAll, describe, expect, it } from "vitest";
import { type FlameIndex, indexFlameGraph } from "../lib/flame_index";
import { randomGraph, seeded } from "../lib/testing";
import { Painter, ROW_HEIGHT, type Scene } from "./painter";
import { LIGHT } from "./palette";

interface Rect {
  readonly x: number;
  readonly width: number;
  readonly row: number;
}

/** Rectangles of the height of a row, in device pixels. */
function drawn(index: FlameIndex, width: number, ratio: number): Rect[] {
  const rects: Rect[] = [];
  const context = new Proxy(
    {
      fillRect: (x: number, y: number, w: number, h: number) => {
        if (h === ROW_HEIGHT - 1) rects.push({ x: x * ratio, width: w * ratio, row: y / ROW_HEIGHT });
      },
      measureText: (text: string) => ({ width: text.length * 7 }),
    } as Record<string, unknown>,
    { get: (target, key) => target[key as string] ?? (() => undefined), set: () => true },
  );
  const scene: Scene = {
    index,
    width,
    height: index.rows * ROW_HEIGHT,
    ratio,
    left: 0,
    right: index.total[0]!,
    rowTop: (depth) => depth * ROW_HEIGHT,
    firstDepth: 0,
    lastDepth: index.rows - 1,
    zoomed: 0,
    selected: -1,
    matches: null,
  };
  new Painter(context as unknown as CanvasRenderingContext2D, index, LIGHT).paint(scene);
  return rects;
}

/** Pixels that a rectangle stands for, with the gap after it. */
const filled = (width: number): number => Math.round(width) + 1;

beforeAll(() => {
  // The hatching is drawn on a tile of its own; without one there is none.
  Object.assign(globalThis, { document: { createElement: () => ({ getContext: () => null }) } });
});

describe("a drawn graph", () => {
  it("shows children and self of every frame as wide as the frame, to the pixel", () => {
    const next = seeded(41);
    for (let round = 0; round < 40; round += 1) {
      const index = indexFlameGraph(randomGraph(round, 2 + Math.floor(next() * 400)));
      const whole = index.total[0]!;
      if (whole === 0) continue;
      const ratio = [1, 1.5, 2][round % 3]!;
      const width = 200 + Math.floor(next() * 1400);
      const pixels = (width * ratio) / whole;
      const edge = (samples: number): number => Math.round(samples * pixels);
      const rows = new Map<string, Rect>();
      const pixelsOf = new Set<string>();
      for (const rect of drawn(index, width, ratio)) {
        rows.set(`${rect.row} ${Math.round(rect.x)}`, rect);
        for (let x = Math.round(rect.x); x < Math.round(rect.x + rect.width); x += 1)
          pixelsOf.add(`${rect.row} ${x}`);
      }
      const inside = new Float64Array(index.count);
      for (let node = index.count - 1; node >= 0; node -= 1) {
        const x = edge(index.start[node]!);
        const wanted = edge(index.start[node]! + index.total[node]!) - x;
        const rect = rows.get(`${index.graph.depth[node]!} ${x}`);
        if (wanted > 0) {
          // Of three pixels and more, one stays empty as the gap; of two none does, and neighbours may be one rectangle.
          if (wanted > 2) expect(rect, `round ${round}, node ${node}`).toBeDefined();
          else
            for (let at = x; at < x + wanted; at += 1)
              expect(pixelsOf.has(`${index.graph.depth[node]!} ${at}`), `round ${round}, node ${node}`).toBe(
                true,
              );
          const own = wanted > 2 ? filled(rect!.width) : wanted;
          expect(own, `round ${round}, node ${node}`).toBe(wanted);
          const self = index.graph.self[node]! * pixels;
          expect(Math.abs(inside[node]! + self - own)).toBeLessThanOrEqual(1);
        }
        const parent = index.parent[node]!;
        if (parent >= 0) inside[parent]! += Math.max(0, wanted);
      }
    }
  });

  it("never draws two frames of a row over each other", () => {
    const index = indexFlameGraph(randomGraph(7, 3000));
    const rects = drawn(index, 700, 1);
    for (let depth = 0; depth < index.rows; depth += 1) {
      const sorted = rects.filter(({ row }) => row === depth).toSorted((a, b) => a.x - b.x);
      sorted.forEach((rect, i) => {
        const after = sorted[i + 1];
        if (after !== undefined) expect(rect.x + rect.width).toBeLessThanOrEqual(after.x + 1);
      });
    }
  });
});
