// Where the texts of the map stand: each line has several places for its own, and one that would lie on
// another text or on a node is left out until the line is pointed at.

import type { Point } from "./topology_layout";

export interface TagWish {
  readonly key: string;
  /** The best place first; the text is centred there. */
  readonly places: readonly Point[];
  readonly width: number;
  readonly height: number;
  /** Shown in any case: the reader looks at it. */
  readonly forced: boolean;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface TagPlace {
  readonly at: Point;
  readonly shown: boolean;
}

const GAP = 2;

function overlap(a: Box, b: Box): boolean {
  return (
    a.x < b.x + b.width + GAP &&
    b.x < a.x + a.width + GAP &&
    a.y < b.y + b.height + GAP &&
    b.y < a.y + a.height + GAP
  );
}

/** The box of so much around a point. */
export const boxAround = ({ x, y }: Point, width: number, height: number): Box => ({
  x: x - width / 2,
  y: y - height / 2,
  width,
  height,
});

/** Wishes that come first choose first; forced ones before all others. */
export function placeTags(
  wishes: readonly TagWish[],
  obstacles: readonly Box[],
): ReadonlyMap<string, TagPlace> {
  const taken: Box[] = [];
  const placed = new Map<string, TagPlace>();
  const order = [...wishes.filter(({ forced }) => forced), ...wishes.filter(({ forced }) => !forced)];
  for (const { key, places, width, height, forced } of order) {
    const free = places.find((place) => {
      const box = boxAround(place, width, height);
      return ![...taken, ...obstacles].some((other) => overlap(box, other));
    });
    const at = free ?? places[0];
    if (at === undefined) continue;
    const shown = free !== undefined || forced;
    placed.set(key, { at, shown });
    if (shown) taken.push(boxAround(at, width, height));
  }
  return placed;
}
