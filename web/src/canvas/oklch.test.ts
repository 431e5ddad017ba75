import { describe, expect, it } from "vitest";
import { oklch } from "./oklch";

describe("oklch", () => {
  // Values of the CSS specification (https://www.w3.org/TR/css-color-4/), and of primaries of sRGB.
  it("gives the sRGB of a colour", () => {
    expect(oklch({ l: 1, c: 0, h: 0 })).toBe("#ffffffff");
    expect(oklch({ l: 0, c: 0, h: 0 })).toBe("#000000ff");
    expect(oklch({ l: 0.62796, c: 0.25768, h: 29.234 })).toBe("#ff0000ff");
    expect(oklch({ l: 0.51975, c: 0.17686, h: 142.495 })).toBe("#008000ff");
    expect(oklch({ l: 0.45201, c: 0.31321, h: 264.052 })).toBe("#0000ffff");
  });

  it("cuts off what a screen does not have, and keeps the opacity", () => {
    expect(oklch({ l: 0.7, c: 0.4, h: 145 }, 0.5)).toMatch(/^#00[0-9a-f]{4}80$/);
  });
});
