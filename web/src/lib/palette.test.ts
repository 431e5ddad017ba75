import { describe, expect, it } from "vitest";
import type { Process } from "../api/types";
import { containerNames } from "./containers_testing";
import { find, type PaletteEntry, processEntries } from "./palette";
import type { Pod } from "./pods";

const entry = (kind: PaletteEntry["kind"], title: string, detail = "", weight = 0): PaletteEntry => ({
  kind,
  title,
  detail,
  weight,
  id: `${kind}-${title}-${detail}`,
});

const ENTRIES: readonly PaletteEntry[] = [
  entry("page", "Processes"),
  entry("process", "envoy", "4242 · /usr/local/bin/envoy", 83),
  entry("process", "envoy", "99 · /usr/local/bin/envoy", 2),
  entry("process", "xenvoyx", "1"),
  entry("process", "httpbin", "5151 · beside envoy"),
  entry("task", "7 off_cpu", "pid 4242", 7),
  entry("frames", "Frames in this profile"),
];

describe("going to anything", () => {
  it("puts exact names first, then parts, then details, the busiest of equals first", () => {
    expect(find(ENTRIES, "envoy").map(({ id }) => id)).toEqual([
      "process-envoy-4242 · /usr/local/bin/envoy",
      "process-envoy-99 · /usr/local/bin/envoy",
      "process-xenvoyx-1",
      "process-httpbin-5151 · beside envoy",
      "frames-Frames in this profile-",
    ]);
  });

  it("wants every word, in any order and any case", () => {
    expect(find(ENTRIES, "4242 ENVOY").map(({ title }) => title)).toEqual([
      "envoy",
      "Frames in this profile",
    ]);
    expect(find(ENTRIES, "task 4242")[0]?.title).toBe("7 off_cpu");
    expect(find(ENTRIES, "nothing").map(({ kind }) => kind)).toEqual(["frames"]);
  });

  it("takes the whole name before others that have its words", () => {
    const tasks = [entry("task", "Task 14", "", 14), entry("task", "Task 4", "", 4)];
    expect(find(tasks, "task 4")[0]?.title).toBe("Task 4");
  });

  it("begins with the pages, and searches frames only for words", () => {
    const all = find(ENTRIES, " ");
    expect(all[0]?.title).toBe("Processes");
    expect(all.some(({ kind }) => kind === "frames")).toBe(false);
  });
});

describe("what runs", () => {
  const process = (pid: number, comm: string, container: Process["container"]) =>
    ({
      id: `${pid}-1`,
      pid,
      comm,
      program: comm,
      exe: `/usr/bin/${comm}`,
      network_namespace: 7,
      cpu_percent: pid,
      kernel_thread: false,
      container,
    }) as Process;
  const names = containerNames("shop", "web-0", "istio-proxy", {
    image: "proxyv2:1.27",
    workload: { kind: "StatefulSet", name: "web" },
  });
  const id = "3f9d2c71aa0b4c1d8e6f5a4b3c2d1e0f";
  const pod = { kind: "pod", key: "7", title: "shop/web-0", workload: names.workload, cpu_percent: 3 } as Pod;
  const all = processEntries(
    [
      process(41, "envoy", { id, runtime: "containerd", pod_uid: null, names }),
      process(42, "pilot-agent", { id, runtime: "containerd", pod_uid: null, names }),
      process(43, "other", { id: "b".repeat(32), runtime: "docker", pod_uid: null, names: null }),
    ],
    [pod, { ...pod, kind: "host", key: "host", title: "Host processes" }],
  );

  it("is found by pod, container, namespace, workload and image, and by the id", () => {
    const found = (query: string) => find(all, query).map((entry) => `${entry.kind} ${entry.title}`);
    const container = "container shop/web-0/istio-proxy";
    expect(found("shop/web-0")).toEqual([
      "pod shop/web-0",
      container,
      "process pilot-agent",
      "process envoy",
    ]);
    for (const query of ["proxyv2", "3f9d2c71aa0b", "statefulset web container"])
      expect(found(query), query).toEqual([container]);
    expect(found("bbbbbbbbbbbb")).toEqual(["container bbbbbbbbbbbb"]);
    expect(find(all, "envoy")[0]?.detail.split(" ")[0]).toBe("41");
  });
});
