import { expect, test } from "vitest";
import { groundOf, MAP_MS, RATE_MS, stillNeeded, TROUBLE_MS } from "./table_history";

test("five minutes of tables are kept, few of them, and each window has its ground", () => {
  let kept: { at: number }[] = [];
  for (let now = 0; now <= 900_000; now += 1_000) {
    kept = stillNeeded([...kept, { at: now }], now);
    expect(kept.length).toBeLessThan(28);
    const age = (ms: number): number => now - groundOf(kept, now, ms)!.at;
    expect(age(RATE_MS)).toBeGreaterThanOrEqual(Math.min(now, RATE_MS));
    expect(age(RATE_MS)).toBeLessThanOrEqual(RATE_MS + 1_000);
    expect(age(TROUBLE_MS)).toBeGreaterThanOrEqual(Math.min(now, TROUBLE_MS));
    expect(age(TROUBLE_MS)).toBeLessThanOrEqual(TROUBLE_MS + RATE_MS);
    expect(age(MAP_MS)).toBeGreaterThanOrEqual(Math.min(now, MAP_MS));
    expect(age(MAP_MS)).toBeLessThanOrEqual(MAP_MS + TROUBLE_MS);
  }
});

test("without a table there is no ground", () => {
  expect(stillNeeded([], 5)).toEqual([]);
  expect(groundOf([], 5, RATE_MS)).toBeUndefined();
});
