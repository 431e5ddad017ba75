import { describe, expect, test } from "vitest";
import { placeTags, type TagWish } from "./topology_tags";

const wish = (key: string, places: readonly [number, number][], forced = false): TagWish => ({
  key,
  places: places.map(([x, y]) => ({ x, y })),
  width: 40,
  height: 18,
  forced,
});

describe("texts of the map", () => {
  test("take the first place that is free", () => {
    const placed = placeTags(
      [
        wish("a", [[100, 100]]),
        wish("b", [
          [110, 100],
          [160, 100],
        ]),
      ],
      [],
    );
    expect(placed.get("a")).toEqual({ at: { x: 100, y: 100 }, shown: true });
    expect(placed.get("b")).toEqual({ at: { x: 160, y: 100 }, shown: true });
  });

  test("are left out where there is no room, and keep their best place for when they are wanted", () => {
    const placed = placeTags(
      [
        wish("a", [[100, 100]]),
        wish("b", [
          [110, 100],
          [120, 105],
        ]),
      ],
      [],
    );
    expect(placed.get("b")).toEqual({ at: { x: 110, y: 100 }, shown: false });
  });

  test("never lie on a node", () => {
    const node = { x: 80, y: 80, width: 60, height: 40 };
    expect(placeTags([wish("a", [[100, 100]])], [node]).get("a")?.shown).toBe(false);
    expect(
      placeTags(
        [
          wish("a", [
            [100, 100],
            [200, 100],
          ]),
        ],
        [node],
      ).get("a")?.at.x,
    ).toBe(200);
  });

  test("of what the reader looks at are always there, and others make room", () => {
    const placed = placeTags([wish("a", [[100, 100]]), wish("b", [[100, 100]], true)], []);
    expect(placed.get("b")?.shown).toBe(true);
    expect(placed.get("a")?.shown).toBe(false);
  });

  test("of a hundred lines do not overlap", () => {
    const wishes = Array.from({ length: 100 }, (_, i) =>
      wish(String(i), [
        [(i * 37) % 300, (i * 61) % 200],
        [(i * 53) % 300, (i * 29) % 200],
      ]),
    );
    const shown = [...placeTags(wishes, []).values()].filter((place) => place.shown).map(({ at }) => at);
    expect(shown.length).toBeGreaterThan(15);
    for (const [i, a] of shown.entries())
      for (const b of shown.slice(i + 1))
        expect(Math.abs(a.x - b.x) >= 40 || Math.abs(a.y - b.y) >= 18).toBe(true);
  });
});
