import { describe, expect, it } from "vitest";
import { wilson } from "./wilson";

describe("wilson", () => {
  it("gives the values of the textbook", () => {
    expect(wilson(10, 100)?.low).toBeCloseTo(0.0552, 4);
    expect(wilson(10, 100)?.high).toBeCloseTo(0.1744, 4);
    expect(wilson(0, 50)).toMatchObject({ low: 0 });
    expect(wilson(0, 50)?.high).toBeCloseTo(0.0713, 4);
    expect(wilson(50, 50)?.high).toBe(1);
  });

  it("holds the share and is none without samples", () => {
    for (let hits = 0; hits <= 200; hits += 7) {
      const { low, high } = wilson(hits, 200)!;
      expect(low).toBeLessThanOrEqual(hits / 200);
      expect(high).toBeGreaterThanOrEqual(hits / 200);
    }
    expect(wilson(0, 0)).toBeNull();
    expect(wilson(3, 2)).toBeNull();
  });
});
