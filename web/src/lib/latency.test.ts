import { expect, test } from "vitest";
import type { LatencyActivity, RequestLatency } from "../api/types";
import { activityFlame, activityText, journeyText, stepFlame, stepsOf } from "./latency";

const ENVOY = { pid: 7, name: "envoy" };
const APP = { pid: 8, name: "mesh-server" };

const LATENCY: RequestLatency = {
  process: ENVOY,
  requests: 100,
  mean_ns: 100e6,
  p50_ns: 99e6,
  p95_ns: 120e6,
  p99_ns: 130e6,
  parts: [
    { place: "request_path", process: ENVOY, mean_ns: 8e6, p50_ns: null, p95_ns: null, share_percent: 8 },
    { place: "network", process: null, mean_ns: 2e6, p50_ns: null, p95_ns: null, share_percent: 2 },
    { place: "server", process: APP, mean_ns: 90e6, p50_ns: 89e6, p95_ns: 110e6, share_percent: 90 },
  ],
  inside: [],
  text: "",
};

const activity = (kind: LatencyActivity["kind"], more: Partial<LatencyActivity> = {}): LatencyActivity => ({
  kind,
  what: null,
  what_ns: null,
  mean_ns: 90e6,
  share_percent: 100,
  stack: [],
  ...more,
});

test("the way of a request is a row of steps that add up", () => {
  const steps = stepsOf(LATENCY);
  expect(steps.map(({ where }) => where)).toEqual(["own", "between", "behind"]);
  expect(steps.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  expect(journeyText(LATENCY)).toBe(
    "envoy 7 request path 8.00 ms, network 2.00 ms, mesh-server 8 inside 90.0 ms",
  );
  expect(stepsOf({ ...LATENCY, mean_ns: 0 }).map(({ share }) => share)).toEqual([0, 0, 0]);
});

test("an activity says what it is about, and its name is untrusted", () => {
  expect(activityText(activity("asleep"))).toBe("asleep in a timer");
  expect(activityText(activity("own_requests", { what: "redis\u0007" }))).not.toContain("\u0007");
  expect(activityText(activity("running", { what: "Filter: lua", what_ns: 60e6 }))).toBe(
    "computing, 60.0 ms of it Filter: lua",
  );
  expect(activityText(activity("waiting_for_cpu", { what: "its quota being used up" }))).toBe(
    "waiting for a CPU, its quota being used up",
  );
});

test("an activity opens the flame graph that shows it", () => {
  const flame = { task: "1", waits: "2", pid: null, from: null, to: null };
  expect(activityFlame(flame, APP, activity("running"))).toMatchObject({ view: "task", id: "1", pid: 8 });
  expect(activityFlame(flame, APP, activity("asleep"))).toMatchObject({
    id: "2",
    pid: 8,
    reasons: ["sleep"],
  });
  expect(activityFlame(flame, APP, activity("suspended"))).toBeNull();
  expect(activityFlame({ ...flame, waits: null }, APP, activity("lock"))).toBeNull();
});

test("a part of the way opens the flame graph of what its process did most, as far as a stack shows it", () => {
  const flame = { task: "1", waits: "2", pid: null, from: null, to: null };
  const latency: RequestLatency = {
    ...LATENCY,
    parts: [
      { place: "inbound_queue", process: APP, mean_ns: 1e6, p50_ns: null, p95_ns: null, share_percent: 1 },
      ...LATENCY.parts,
    ],
    inside: [
      {
        process: APP,
        mean_ns: 90e6,
        threads: 1,
        activities: [activity("suspended"), activity("asleep"), activity("running")],
      },
    ],
  };
  const flames = stepsOf(latency).map((step) => stepFlame(flame, latency, step));
  const computing = { to: { view: "task", id: "1", pid: 8 }, text: "computing" };
  const asleep = { to: { view: "task", id: "2", pid: 8, reasons: ["sleep"] }, text: "asleep in a timer" };
  expect(flames[0]).toMatchObject(computing);
  expect(flames.slice(1, 3)).toEqual([null, null]);
  expect(flames[3]).toMatchObject(asleep);
});
