import { describe, expect, test } from "vitest";
import { formatPart, panBy, parsePart, partOf, rangeOfPart, zoomAt } from "./flame_window";

const WHOLE = { left: 0, right: 4000 };

describe("the shown part of the width", () => {
  test("keeps what is under the pointer where it is", () => {
    let range = { left: 0, right: 4000 };
    for (const at of [1000, 1500, 1200]) {
      const before = (at - range.left) / (range.right - range.left);
      range = zoomAt(range, WHOLE, at, 0.5);
      expect((at - range.left) / (range.right - range.left)).toBeCloseTo(before, 9);
    }
    expect(range.right - range.left).toBe(500);
  });

  test("never leaves the graph, and is never wider than it", () => {
    expect(zoomAt({ left: 0, right: 100 }, WHOLE, 0, 7)).toEqual({ left: 0, right: 700 });
    expect(zoomAt({ left: 3900, right: 4000 }, WHOLE, 3900, 7)).toEqual({ left: 3300, right: 4000 });
    expect(zoomAt({ left: 500, right: 600 }, WHOLE, 550, 1e9)).toEqual(WHOLE);
    expect(panBy({ left: 100, right: 300 }, WHOLE, -500)).toEqual({ left: 0, right: 200 });
    expect(panBy({ left: 100, right: 300 }, WHOLE, 1e9)).toEqual({ left: 3800, right: 4000 });
  });

  test("ends at one sample", () => {
    let range = { left: 0, right: 4000 };
    for (let i = 0; i < 100; i += 1) range = zoomAt(range, WHOLE, 1234.5, 0.5);
    expect(range.right - range.left).toBeCloseTo(1, 9);
    expect(zoomAt({ left: 0, right: 1 }, { left: 0, right: 1 }, 0.5, 0.5)).toEqual({ left: 0, right: 1 });
  });

  test("survives the address", () => {
    const part = partOf({ left: 1000, right: 1004 }, WHOLE)!;
    expect(parsePart(formatPart(part))).toEqual(part);
    expect(rangeOfPart(part, WHOLE).left).toBeCloseTo(1000, 2);
    expect(partOf(WHOLE, WHOLE)).toBeNull();
    expect(formatPart(null)).toBe("");
  });

  test.each(["", "5", "7-3", "3-3", "0-10000000", "0-99999999", "-1-5", "a-b", "1e3-2e3"])(
    "%j in the address is not a part",
    (text) => expect(parsePart(text)).toBeNull(),
  );
});
