import { describe, expect, it } from "vitest";
import type { Task } from "../api/types";
import { ENOUGH_SAMPLES, endingMark, endingShown, enoughText } from "./ending";

const task = (id: string, state: Task["state"], group: string | null = null): Task =>
  ({ id, state, group }) as Task;
const known = (...list: readonly Task[]) => new Map(list.map((each) => [each.id, each]));

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
    expect(endingShown({ view: "task", id: "1" }, tasks)).toBe("running");
    expect(endingShown({ view: "task", id: "2" }, tasks)).toBe("failed");
    expect(endingShown({ view: "checkup", id: "checkup-a" }, tasks)).toBe("running");
    expect(endingShown({ view: "checkup", id: "checkup-b" }, tasks)).toBe("done");
    expect(endingShown({ view: "group", id: "checkup-b" }, tasks)).toBe("done");
    expect(endingShown({ view: "checkup", id: "gone" }, tasks)).toBeNull();
    expect(endingShown({ view: "task", id: "9" }, tasks)).toBeNull();
    expect(endingShown({ view: "pods", id: "" }, tasks)).toBeNull();
  });

  it("is marked only where it was waited for", () => {
    expect(endingMark("running", false)).toBe("… ");
    expect(endingMark("done", true)).toBe("✓ ");
    expect(endingMark("failed", true)).toBe("✗ ");
    expect(endingMark("done", false)).toBe("");
    expect(endingMark(null, true)).toBe("");
  });

  it("has enough samples when a cost of 10 % is known to two points", () => {
    expect(ENOUGH_SAMPLES).toBe(865);
    expect(enoughText(0)).toEqual({ enough: false, text: "No samples yet." });
    expect(enoughText(100)).toEqual({ enough: false, text: "So far a cost of 10 % reads 10 ± 5.9 %." });
    expect(enoughText(865)).toEqual({
      enough: true,
      text: "Enough samples: a cost of 10 % reads 10 ± 2.0 %.",
    });
  });
});
