import { describe, expect, it } from "vitest";
import type { Task } from "../api/types";
import { codeOf, codeTitle, profilesOf } from "./request_profile";
import { sample } from "./requests_testing";

const START = 1_700_000_000e9;
const slow = sample({ begin_ns: START + 1_234e6, duration_ns: 30e6, pid: 7, tid: 70 });

function task(id: string, change: object): Task {
  return {
    id,
    kind: "on_cpu",
    target: { pids: [7] },
    group: null,
    started_at_ns: START,
    ended_at_ns: START + 10e9,
    effective_frequency_hz: 99,
    frequency_hz: 99,
    samples: 10,
    ...change,
  } as unknown as Task;
}

const REQUESTS = { group: "g", target: { pids: [7] } };
const found = (tasks: readonly Task[]) =>
  profilesOf(codeOf(slow, false)[0]!, REQUESTS, tasks, {}).map(({ task: { id }, to }) => [id, to]);

describe("code of a request", () => {
  it("is that of the thread which moved its first byte, and of the process behind the last leg", () => {
    expect(codeOf(slow, false).map(codeTitle)).toEqual(["thread 70 of shop (7)"]);
    expect(codeOf(slow, true).map(codeTitle)).toEqual(["thread 70 of shop (7)", "all threads of envoy (8)"]);
    expect(codeOf({ ...slow, seen_by: "server", pid: 8, tid: null }, true).map(codeTitle)).toEqual([
      "all threads of envoy (8)",
    ]);
  });

  it("opens with thread and time, in whole buckets since the start of that task", () => {
    expect(found([task("1", {})])).toEqual([
      ["1", { view: "task", id: "1", from: 1220, to: 1280, tids: [70] }],
    ]);
    const unknown = profilesOf({ ...codeOf(slow, false)[0]!, tid: null }, REQUESTS, [task("1", {})], {});
    expect(unknown[0]!.to).toMatchObject({ pid: 7 });
  });

  it("needs a profile of that process that ran all the while", () => {
    expect(
      found([
        task("1", { ended_at_ns: START + 1_250e6 }),
        task("2", { started_at_ns: START + 1_240e6 }),
        task("3", { target: { pids: [9] } }),
        task("4", { kind: "requests" }),
        task("5", { samples: 0 }),
        task("6", { started_at_ns: null }),
      ]),
    ).toEqual([]);
    // The target is that of the requests too, and the process is none of it.
    const app = { ...codeOf(slow, true)[1]!, pid: 8 };
    expect(profilesOf(app, REQUESTS, [task("8", {})], {})).toEqual([]);
    expect(found([task("7", { target: { all: true }, ended_at_ns: null })])).toHaveLength(1);
  });

  it("takes one of each kind: that of the same check-up, then the finest", () => {
    const ids = found([
      task("1", { kind: "off_cpu" }),
      task("2", { effective_frequency_hz: 19 }),
      task("3", { effective_frequency_hz: 499 }),
      task("4", { group: "g", effective_frequency_hz: 49 }),
    ]).map(([id]) => id);
    expect(ids).toEqual(["1", "4"]);
  });

  it("says how little a time that short may hold", () => {
    const help = (change: object) =>
      profilesOf(codeOf(slow, false)[0]!, REQUESTS, [task("1", change)], {})[0]!.help;
    expect(help({ effective_frequency_hz: 19 })).toMatch(/at most 2 samples/);
    expect(help({ effective_frequency_hz: 499 })).toMatch(/at most 30 samples/);
    expect(help({ kind: "off_cpu" })).toMatch(/Waits/);
  });
});
