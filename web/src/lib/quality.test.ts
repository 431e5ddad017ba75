import { describe, expect, it } from "vitest";
import type { NamesQuality, StackQuality } from "../api/types";
import { chipText, lossesPart, mergedPart, namesPart, stacksPart } from "./quality";

const stacks = (change: Partial<StackQuality>) =>
  ({ stacks: { samples: 0, complete: 0, unverified: 0, incomplete: [], ...change } }) as unknown as {
    stacks: StackQuality;
  };

describe("quality of a result", () => {
  it("says in a few words what is poor, and otherwise how much was sampled", () => {
    const task = (percent: number, complete: number, lost: number) => ({
      ...stacks({ samples: 100, complete }),
      coverage: { percent, sampled_ns: 1, accounted_ns: 1, processes: 1 },
      losses:
        lost === 0
          ? []
          : [
              { kind: "count_table_full", count: lost, meaning: "" },
              // Sent again later: no sample is lost.
              { kind: "ring_buffer_full", count: 900, meaning: "" },
            ],
      samples: 10_000,
    });
    const names = { frames: 100, exact: 60, inferred: 30, interpreter: 0, jit: 0, unnamed: 10 };
    expect(chipText(task(99.5, 100, 0), null)).toEqual({
      text: "Quality: CPU time 99.5 %",
      whole: "CPU time 99.5 %, stacks 100.0 %",
      poor: false,
    });
    expect(chipText({ ...task(90, 94, 0), samples: 100 }, null).text).toBe("▲ stacks 94.0 %");
    expect(chipText(task(90, 94, 300), names as unknown as NamesQuality)).toEqual({
      text: "▲ CPU time 90.0 % and 3 more",
      whole: "CPU time 90.0 %, names 90.0 %, stacks 94.0 %, 300 samples lost",
      poor: true,
    });
    expect(chipText({ ...task(99, 0, 1), ...stacks({}), coverage: null }, null).whole).toBe("not known yet");
  });

  it("says how many stacks are whole, and why others are not", () => {
    expect(stacksPart(stacks({})).text).toBe("none yet");
    expect(stacksPart(stacks({ samples: 200, complete: 200 }))).toMatchObject({
      text: "100.0 % complete",
      poor: false,
    });
    const part = stacksPart(
      stacks({
        samples: 1000,
        complete: 900,
        incomplete: [
          { reason: "a", meaning: "stack was cut", count: 20 },
          { reason: "b", meaning: "no unwind information", count: 80 },
        ],
      }),
    );
    expect(part.text).toBe("90.0 % complete (8.0 % no unwind information, 1 more)");
    expect(part.detail).toContain("2.0 % stack was cut");
    expect(part.poor).toBe(true);
  });

  it("says what was lost", () => {
    expect(lossesPart({ losses: [] }, "none")).toMatchObject({ text: "none", poor: false });
    const losses = [
      { kind: "map_full", count: 3, meaning: "samples without room" },
      { kind: "user_stack_unreadable", count: 37, meaning: "stacks that could not be read" },
    ];
    const part = lossesPart({ losses }, "in few words");
    expect(part.text).toBe("in few words");
    expect(part.detail.split("\n")).toHaveLength(2);
    expect(part.poor).toBe(true);
  });

  it("says how many frames have names, and which file lacks them", () => {
    const names = {
      frames: 100,
      exact: 60,
      inferred: 10,
      interpreter: 0,
      jit: 0,
      unnamed: 30,
      modules: [],
      runtimes: [],
    } as unknown as NamesQuality;
    expect(namesPart(null)).toBeNull();
    expect(namesPart({ ...names, frames: 0 })).toBeNull();
    expect(namesPart(names)?.text).toBe("60.0 % exact, 10.0 % inferred, 30.0 % without a name");
    const modules = [{ path: "/usr/bin/envoy", build_id: null, unnamed: 30, inferred: 0 }];
    expect(namesPart({ ...names, modules })?.text).toContain("(mostly envoy)");
    const runtimes = [{ runtime: "Node", frames: 50, samples: 9, remedy: "start it otherwise" }];
    const node = { ...names, exact: 40, unnamed: 0, jit: 50, samples: 10, runtimes };
    const part = namesPart(node);
    expect(part?.text).toContain("50.0 % made at run time without a perf map, 0 % without a name");
    expect(part?.detail).toContain("Node: 50.0 % of user frames, in 90.0 % of samples");
    expect(part?.poor).toBe(true);
  });

  it("says what is too small to be told apart", () => {
    expect(mergedPart(0, 10)).toBeNull();
    expect(mergedPart(1, 100)).toMatchObject({ text: "1.0 % merged", poor: false });
    expect(mergedPart(5, 100)?.poor).toBe(true);
  });
});
