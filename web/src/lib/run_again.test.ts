import { describe, expect, it } from "vitest";
import type { Task } from "../api/types";
import { formAgain, groupAgain, specAgain, unseenOf } from "./run_again";
import { specOf } from "./task_spec";

const NO_WAITS = { off_cpu_mode: null, min_wait_ns: 0, max_wait_ns: null };

function task(change: object): Task {
  return {
    kind: "on_cpu",
    target: { pids: [7, 8] },
    duration_s: 30,
    frequency_hz: 499,
    wakers: false,
    timed: false,
    waits: NO_WAITS,
    requests: null,
    event_loop: null,
    ...change,
  } as unknown as Task;
}

const REQUESTS = {
  source: ["sockets", "tls"],
  tls: true,
  tls_duty_percent: 20,
  bodies: true,
  raw_paths: true,
  samples: "all",
  rules: [{ name: "slow carts" }],
  capture_bytes: 4096,
  cpu_percent: 5,
};

describe("a task that runs once more", () => {
  const tasks: readonly [string, Task][] = [
    ["processes", task({})],
    ["a pod", task({ target: { pod: { namespace: "shop", labels: "app=web" } } })],
    ["a container", task({ target: { container: "3f2a" } })],
    ["a name", task({ target: { comm: "envoy" } })],
    ["a cgroup", task({ target: { cgroup: "/kubepods" } })],
    ["the node", task({ target: { all: true } })],
    ["connections", task({ kind: "network", target: { network_namespace: "/run/netns/shop" }, timed: true })],
    [
      "waits",
      task({
        kind: "wall",
        wakers: true,
        waits: { off_cpu_mode: "sampled", min_wait_ns: 2_500_000, max_wait_ns: 1_000_000_000 },
      }),
    ],
    ["requests", task({ kind: "requests", requests: REQUESTS })],
    [
      "requests of access logs too",
      task({ kind: "requests", requests: { ...REQUESTS, source: ["access_log", "sockets", "tls"] } }),
    ],
    [
      "requests of access logs",
      task({
        kind: "requests",
        requests: { ...REQUESTS, source: ["access_log"], tls: false, tls_duty_percent: 100, bodies: false },
      }),
    ],
  ];

  it("asks for what it asked for, and so does its form", () => {
    for (const [what, given] of tasks) {
      const spec = specAgain(given);
      expect(spec, what).toMatchObject({ kind: given.kind, target: given.target, duration_s: 30 });
      const form = formAgain(given);
      const asked = form === null ? null : specOf(form);
      expect(asked?.ok, what).toBe(true);
      const frequency = given.kind === "on_cpu" || given.kind === "wall" ? 499 : 99;
      if (asked?.ok)
        expect({ ...asked.spec, ...unseenOf(given) }, what).toEqual({ ...spec, frequency_hz: frequency });
    }
  });

  it("keeps rules that the form does not show", () => {
    expect(unseenOf(task({ kind: "requests", requests: REQUESTS }))).toEqual({
      rules: REQUESTS.rules,
      capture_bytes: 4096,
    });
  });

  it("asks for nothing of sockets where access logs are the only source", () => {
    const requests = { ...REQUESTS, source: ["access_log"] };
    expect(specAgain(task({ kind: "requests", requests }))).toEqual({
      kind: "requests",
      target: { pids: [7, 8] },
      duration_s: 30,
      frequency_hz: 499,
      wakers: false,
      source: ["access_log"],
      raw_paths: true,
      samples: "all",
      rules: REQUESTS.rules,
    });
  });

  it("runs without end when it had none", () => {
    expect(formAgain(task({ duration_s: null }))).toMatchObject({ endless: true, duration: "" });
  });

  it("has no way to ask for a file again", () => {
    expect(specAgain(task({ kind: "imported", target: { imported: {} } }))).toBeNull();
  });
});

it("a group that runs once more has a name of its own", () => {
  expect(groupAgain("before", new Set(["before"]))).toBe("before.2");
  expect(groupAgain("before.2", new Set(["before", "before.2"]))).toBe("before.3");
  expect(groupAgain("x".repeat(64), new Set())).toHaveLength(62);
});
