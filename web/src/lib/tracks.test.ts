import { describe, expect, it } from "vitest";
import type { Timeline } from "../api/types";
import { processTracks, trackRows } from "./threads";
import { hasParts, partsText, trackAmounts, trackParts } from "./tracks";

const thread = (tid: number) => ({ pid: 10, tid, process: "envoy", name: `w${tid}` });
const ROWS = trackRows(
  processTracks(
    [1, 2, 3].map((tid) => ({
      ...thread(tid),
      samples: 9 - tid,
      total_ns: 0,
      activities: [],
      container: null,
      pod: null,
    })),
    ({ samples }) => samples,
  ),
  () => true,
);

/** Thread 3 is too small to be sent. */
const TIMELINE: Timeline = {
  bucket_ms: 100,
  from_ms: 0,
  counts: [4, 6],
  other_threads: 1,
  processes: [
    {
      ...thread(10),
      name: "envoy",
      total: 10,
      counts: [5, 6],
      activities: [
        { activity: "running", times_us: [40_000, 90_000] },
        { activity: "waiting_for_cpu", times_us: [5_000, 0] },
        { activity: "idle", times_us: [95_000, 50_000] },
      ],
    },
  ],
  threads: [
    {
      ...thread(1),
      total: 7,
      counts: [3, 4],
      activities: [
        { activity: "running", times_us: [40_000, 60_000] },
        { activity: "idle", times_us: [60_000, 0] },
      ],
    },
    {
      ...thread(2),
      total: 3,
      counts: [1, 2],
      activities: [
        { activity: "running", times_us: [0, 30_000] },
        { activity: "waiting_for_cpu", times_us: [5_000, 0] },
      ],
    },
  ],
};

describe("rows over time", () => {
  it("hold the amounts of processes and threads; those that are not sent are missing", () => {
    const { columns, rows, cells, top } = trackAmounts(ROWS, TIMELINE);
    expect([columns, rows, top]).toEqual([2, 4, 6]);
    expect([...cells]).toEqual([5, 3, 1, -1, 6, 4, 2, -1]);
    expect(trackAmounts(ROWS, null).columns).toBe(0);
  });

  it("hold what threads did, of a process without idle time", () => {
    expect(hasParts(TIMELINE)).toBe(true);
    expect(hasParts(null)).toBe(false);
    const [process, first, , small] = trackParts(ROWS, TIMELINE);
    expect(process!.parts.map(({ activity, timesUs }) => [activity, timesUs])).toEqual([
      ["running", [40_000, 90_000]],
      ["waiting_for_cpu", [5_000, 0]],
    ]);
    expect(process!.fullUs).toBe(90_000);
    expect(first!.fullUs).toBe(100_000);
    expect([process!.isSent, first!.isSent, small!.isSent]).toEqual([true, true, false]);
    expect(partsText(first!, 0)).toBe("idle 60.0 ms, running 40.0 ms");
    expect(partsText(process!, 0)).toBe("running 40.0 ms, waiting for CPU 5.00 ms");
    expect(partsText(small!, 0)).toBe("nothing was recorded");
  });
});
