import { describe, expect, it } from "vitest";
import { filterThreads, shareOfPicked, threadTitle } from "./threads";

const THREADS = [
  { pid: 10, tid: 11, process: "envoy", name: "wrk:worker_0", activities: [], samples: 70, total_ns: 0 },
  { pid: 10, tid: 12, process: "envoy", name: "wrk:worker_1", activities: [], samples: 20, total_ns: 0 },
  { pid: 30, tid: 30, process: "httpbin", name: "httpbin", activities: [], samples: 10, total_ns: 0 },
];

describe("threads", () => {
  it("are found by all words, in any order and case", () => {
    const found = (filter: string): number[] => filterThreads(THREADS, filter).map(({ tid }) => tid);
    expect(found("")).toEqual([11, 12, 30]);
    expect(found("WORKER envoy")).toEqual([11, 12]);
    expect(found("12")).toEqual([12]);
    expect(found("nobody")).toEqual([]);
  });

  it("are shown only, or left out, with the share that remains", () => {
    expect(shareOfPicked(THREADS, [11], false)).toBe(70);
    expect(shareOfPicked(THREADS, [11], true)).toBe(30);
    expect(threadTitle(3, [], false)).toBe("All threads (3)");
    expect(threadTitle(3, [11], false)).toBe("1 of 3 threads");
    expect(threadTitle(3, [11], true)).toBe("All but 1 of 3 threads");
  });
});
