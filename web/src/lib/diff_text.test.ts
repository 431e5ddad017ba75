import { describe, expect, it } from "vitest";
import type { DiffGraph } from "./diff";
import { indexDiff } from "./diff_index";
import { changeText, normText, pText, ratioText } from "./diff_text";
import { label } from "./testing";

const GRAPH: DiffGraph = {
  unitNs: [10_000_000, 10_000_000],
  coveredNs: [10e9, 20e9],
  idle: null,
  labels: [label("all", 0, "", 0), label("spin")],
  depth: Uint32Array.of(0, 1),
  selfA: Float64Array.of(50, 50),
  selfB: Float64Array.of(50, 150),
  label: Uint32Array.of(0, 1),
  chances: {
    share: { unknown: null, codes: Uint32Array.of(0, 0) },
    rate: { unknown: null, codes: Uint32Array.of(0, 0) },
  },
};

describe("changes in words", () => {
  const share = indexDiff(GRAPH, "share");
  const rate = indexDiff(GRAPH, "rate");

  it("of shares are points, of rates time for each second", () => {
    expect(normText(share, 0.5, 0)).toBe("50.0 %");
    expect(changeText(share, 0.25)).toBe("+25.0 pp");
    expect(changeText(share, -0.00001)).toBe("−< 0.01 pp");
    expect(changeText(share, 0)).toBe("±0 pp");
    // 7.5 samples of 10 ms in each second.
    expect(normText(rate, 7.5, 1)).toBe("75.0 ms/s");
    expect(changeText(indexDiff({ ...GRAPH, unitNs: [0, 10] }, "rate"), 2.5)).toBe("+2.5 /s");
  });

  it("as ratios never divide by nothing", () => {
    expect(ratioText(share, [50, 150])).toBe("× 1.50");
    expect(ratioText(rate, [50, 150])).toBe("× 1.50");
    expect(ratioText(share, [0, 5])).toBe("new");
    expect(ratioText(share, [5, 0])).toBe("gone");
    expect(ratioText(share, [0, 0])).toBe("–");
  });

  it("are never said to be impossible by chance", () => {
    expect(pText(0)).toBe("p < 0.0001");
    expect(pText(0.0312)).toBe("p = 0.0312");
  });
});
