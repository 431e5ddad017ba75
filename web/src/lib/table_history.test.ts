import { expect, test } from "vitest";
import { groundOf, RATE_MS, stillNeeded, TROUBLE_MS } from "./table_history";

test("a minute of tables is kept, few of them, and each window has its ground", () => {
  let kept: { at: number }[] = [];
  for (let now = 0; now <= 300_000; now += 1_000) {
    kept = stillNeeded([...kept, { at: now }], now);
    expect(kept.length).toBeLessThan(20);
    const age = (ms: number): number => now - groundOf(kept, now, ms)!.at;
    expect(age(RATE_MS)).toBeGreaterThanOrEqual(Math.min(now, RATE_MS));
    expect(age(RATE_MS)).toBeLessThanOrEqual(RATE_MS + 1_000);
    expect(age(TROUBLE_MS)).toBeGreaterThanOrEqual(Math.min(now, TROUBLE_MS));
    expect(age(TROUBLE_MS)).toBeLessThanOrEqual(TROUBLE_MS + RATE_MS);
  }
});

test("without a table there is no ground", () => {
  expect(stillNeeded([], 5)).toEqual([]);
  expect(groundOf([], 5, RATE_MS)).toBeUndefined();
});
