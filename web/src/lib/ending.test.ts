import { describe, expect, it } from "vitest";
import type { Diagnosis, Task } from "../api/types";
import { endingMark, endingOfMeasured, enoughText, measuredOn } from "./ending";

const task = (id: string, state: Task["state"], group: string | null = null): Task =>
  ({ id, state, group }) as Task;
const known = (...list: readonly Task[]) => new Map(list.map((each) => [each.id, each]));

function diagnosis(low: number, high: number, duration_s: number): Diagnosis {
  const row = (feature: string, share_percent: number) => ({ feature, share_percent, low, high });
  return {
    matrix: { rows: [row("routing", 5), row("tracing", 40)] },
    window: { duration_s },
  } as unknown as Diagnosis;
}

describe("what ends", () => {
  it("is the task of its page, and all tasks of a check-up", () => {
    const tasks = known(
      task("1", "running"),
      task("2", "failed"),
      task("3", "finished", "checkup-a"),
      task("4", "running", "checkup-a"),
      task("5", "finished", "checkup-b"),
      task("6", "failed", "checkup-b"),
    );
    expect(endingOfMeasured({ view: "task", id: "1" }, tasks)).toBe("running");
    expect(endingOfMeasured({ view: "task", id: "2" }, tasks)).toBe("failed");
    expect(endingOfMeasured({ view: "checkup", id: "checkup-a" }, tasks)).toBe("running");
    expect(endingOfMeasured({ view: "checkup", id: "checkup-b" }, tasks)).toBe("done");
    expect(endingOfMeasured({ view: "checkup", id: "gone" }, tasks)).toBeNull();
    expect(endingOfMeasured({ view: "task", id: "9" }, tasks)).toBeNull();
  });

  it("is the later one where two are compared", () => {
    expect(measuredOn({ view: "compare-checkups", id: "", b: "checkup-b" })).toEqual({
      view: "checkup",
      id: "checkup-b",
    });
    expect(measuredOn({ view: "group", id: "g", b: "" })).toEqual({ view: "checkup", id: "g" });
    expect(measuredOn({ view: "pods", id: "", b: "" })).toBeNull();
  });

  it("is marked only where it was waited for", () => {
    expect(endingMark("running", false)).toBe("… ");
    expect(endingMark("done", true)).toBe("✓ ");
    expect(endingMark("failed", true)).toBe("✗ ");
    expect(endingMark("done", false)).toBe("");
    expect(endingMark(null, true)).toBe("");
  });

  it("has enough samples when the largest cost is known to two points, over five seconds", () => {
    expect(enoughText(null)).toEqual({ enough: false, text: "No samples yet." });
    expect(enoughText(diagnosis(34, 46, 20))).toEqual({
      enough: false,
      text: "So far the largest cost, tracing, is 40.0 ± 6.0 points.",
    });
    expect(enoughText(diagnosis(39, 41, 2)).enough).toBe(false);
    expect(enoughText(diagnosis(39, 41, 8))).toEqual({
      enough: true,
      text: "Enough samples: the largest cost, tracing, is 40.0 ± 1.0 points.",
    });
  });
});
