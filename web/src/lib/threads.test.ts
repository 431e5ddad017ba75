import { describe, expect, it } from "vitest";
import type { ProfileThread } from "../api/types";
import {
  amountOfPicked,
  filterThreads,
  MAX_PICKED,
  pickedPart,
  pickOnly,
  pickToggled,
  processTracks,
  threadTitle,
  trackRows,
  unfoldedAtFirst,
} from "./threads";

function thread(pid: number, tid: number, process: string, name: string, samples: number): ProfileThread {
  const activities = [{ activity: "running" as const, total_ns: samples * 10 }];
  return { pid, tid, process, name, container: null, pod: null, activities, samples, total_ns: samples * 10 };
}

const THREADS = [
  thread(30, 30, "httpbin", "httpbin", 10),
  thread(10, 11, "envoy", "wrk:worker_0", 20),
  thread(10, 12, "envoy", "wrk:worker_1", 70),
];
const tracks = (threads = THREADS) => processTracks(threads, ({ samples }) => samples);
const [ENVOY, HTTPBIN] = tracks() as [ReturnType<typeof tracks>[0], ReturnType<typeof tracks>[0]];

describe("threads", () => {
  it("are found by all words, in any order and case", () => {
    const found = (filter: string): number[] => filterThreads(THREADS, filter).map(({ tid }) => tid);
    expect(found("")).toEqual([30, 11, 12]);
    expect(found("WORKER envoy")).toEqual([11, 12]);
    expect(found("12")).toEqual([12]);
    expect(found("nobody")).toEqual([]);
  });

  it("are rows below their process, which is their sum, each by how much it has", () => {
    expect(tracks().map(({ name, amount, tid, tids }) => [name, amount, tid, tids])).toEqual([
      ["envoy", 90, null, [12, 11]],
      ["httpbin", 10, 30, [30]],
    ]);
    expect(ENVOY.activities).toEqual([{ activity: "running", total_ns: 900 }]);
    const names = (unfolded: boolean): string[] =>
      trackRows(tracks(), () => unfolded).map(({ name }) => name);
    expect(names(false)).toEqual(["envoy", "httpbin"]);
    expect(names(true)).toEqual(["envoy", "wrk:worker_1", "wrk:worker_0", "httpbin"]);
  });

  it("are unfolded at first where they are few, those of the largest process always", () => {
    const many = (processes: number, each: number) =>
      tracks(
        Array.from({ length: processes * each }, (_, i) =>
          thread(Math.floor(i / each), i, "p", "t", 1000 - Math.floor(i / each)),
        ),
      );
    expect([...unfoldedAtFirst(many(3, 3))]).toEqual([0, 1, 2]);
    expect([...unfoldedAtFirst(many(3, 5))]).toEqual([0]);
    expect([...unfoldedAtFirst(many(2, 300))]).toEqual([0]);
    expect([...unfoldedAtFirst(many(3, 1))]).toEqual([]);
  });

  it("are picked alone, added and taken away, a process with all of its threads", () => {
    expect(pickOnly(ENVOY, [30])).toEqual([12, 11]);
    expect(pickOnly(ENVOY, [11, 12])).toEqual([]);
    expect(pickOnly(HTTPBIN, [30, 11])).toEqual([30]);
    expect(pickToggled(ENVOY, [30, 11])).toEqual([30, 11, 12]);
    expect(pickToggled(ENVOY, [30, 11, 12])).toEqual([30]);
    expect(pickToggled(HTTPBIN, [])).toEqual([30]);
    const part = (tids: number[]): string => pickedPart(ENVOY, new Set(tids));
    expect([part([]), part([11]), part([11, 12])]).toEqual(["none", "some", "all"]);
    const crowd = tracks(Array.from({ length: 3000 }, (_, i) => thread(1, i, "p", "t", 1)))[0]!;
    expect(pickOnly(crowd, []).length).toBe(MAX_PICKED);
  });

  it("are shown only, or left out, with the amount that remains", () => {
    expect(amountOfPicked(tracks(), [12, 30], false)).toBe(80);
    expect(amountOfPicked(tracks(), [12, 30], true)).toBe(20);
    expect(threadTitle(3, [], false)).toBe("Threads: all 3");
    expect(threadTitle(3, [11], false)).toBe("Threads: 1 of 3");
    expect(threadTitle(3, [11], true)).toBe("Threads: all but 1 of 3");
    expect(threadTitle(0, [], false)).toBe("Threads");
  });
});
