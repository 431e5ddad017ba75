import { describe, expect, it } from "vitest";
import type { RequestSample, Task } from "../api/types";
import { againstMedian, timesText } from "./request_median";
import { sampleRows } from "./requests";
import { answer, operation, sample, values } from "./requests_testing";

const MS = 1e6;
const kept = (samples: "slow" | "all") => ({ requests: { samples } }) as unknown as Task;
const timings = {
  count: 100,
  latency_ns: values([9 * MS, 10 * MS, 100]),
  first_byte_ns: values([8 * MS, 8 * MS, 100]),
};
const OPERATION = operation({ client: timings });

const one = (i: number, length: number, change: Partial<RequestSample> = {}): RequestSample =>
  sample({
    stream: i,
    duration_ns: length * MS,
    request_end_ns: MS,
    first_byte_ns: (length - 2) * MS,
    ...change,
  });

function against(samples: readonly RequestSample[], own: number, how: "slow" | "all", left_out = 0) {
  const rows = sampleRows(samples);
  const all = answer({ operations: [OPERATION], samples, samples_left_out: left_out });
  return againstMedian(samples[own]!, all, rows, kept(how))!;
}

describe("against the median", () => {
  const samples = [one(1, 10), one(2, 12), one(3, 40), one(4, 99, { outcome: "broken" })];

  it("has every part where all requests are kept", () => {
    const found = against(samples, 2, "all");
    expect(found.rows).toEqual([
      { title: "Whole", own: "40.0 ms", median: "≤ 10.0 ms", times: 4 },
      { title: "Until the first byte of the response", own: "38.0 ms", median: "8.00 ms", times: 4.75 },
      { title: "Request sent", own: "1.00 ms", median: "1.00 ms", times: 1 },
      { title: "Waiting for the response", own: "37.0 ms", median: "9.00 ms", times: 37 / 9 },
      { title: "Response", own: "2.00 ms", median: "2.00 ms", times: 1 },
    ]);
    expect(found.of).toMatch(/100 requests.*client's end.*the 3 of them that are samples/);
    expect(found.missing).toBe("");
    expect(found.near?.sample.stream).toBe(2);
  });

  it("says that parts are of the beginning where later requests had no room", () => {
    expect(against(samples, 2, "all", 7).missing).toMatch(/^7 later requests/);
  });

  it("makes no median of samples that are the slowest ones", () => {
    const found = against(samples, 2, "slow");
    expect(found.rows.slice(2).map(({ median, times }) => [median, times])).toEqual([
      [null, null],
      [null, null],
      [null, null],
    ]);
    expect(found.rows[0]!.median).toBe("≤ 10.0 ms");
    expect(found.missing).toMatch(/not known/);
    expect(found.near).toBe(null);
  });

  it("is not there for an operation that is not counted by itself", () => {
    const rows = sampleRows(samples);
    const folded = answer({ operations: [{ ...OPERATION, other: true }] });
    expect(againstMedian(samples[0]!, folded, rows, kept("all"))).toBe(null);
  });

  it("writes ratios short", () => {
    expect([0.048, 0.4, 1, 3.14, 14.2].map(timesText)).toEqual(["0.05×", "0.4×", "1.0×", "3.1×", "14×"]);
  });
});
