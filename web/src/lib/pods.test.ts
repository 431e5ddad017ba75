import { describe, expect, it } from "vitest";
import type { Pod, PodProcess, Process } from "../api/types";
import { isInPod, podRows, podsOf, withReadings } from "./pods";

function process(pid: number, comm: string, change: Partial<Process> = {}): Process {
  return {
    id: `${pid}-1`,
    pid,
    parent_pid: 1,
    comm,
    program: comm,
    exe: `/usr/bin/${comm}`,
    arguments: [],
    uid: 0,
    user: "root",
    cgroup: "/",
    container: null,
    network_namespace: 10,
    threads: 1,
    rss_bytes: 100,
    cpu_percent: 0,
    kernel_thread: false,
    ...change,
  };
}

const member = ({ id, pid, program, comm }: Process, role: PodProcess["role"]): PodProcess => ({
  id,
  pid,
  program,
  comm,
  container: null,
  role,
  reason: `why ${role}`,
  cpu_percent: 0,
  rss_bytes: 100,
  threads: 1,
});

function pod(
  title: string,
  network_namespace: number | null,
  processes: PodProcess[],
  kind: Pod["kind"] = "pod",
): Pod {
  return {
    kind,
    network_namespace,
    title,
    pod: null,
    labels: {},
    workload: null,
    summary: `summary of ${title}`,
    cpu_percent: null,
    sidecar_cpu_percent: null,
    without_reading: 0,
    rss_bytes: 0,
    processes,
  };
}

const inContainer = (id: string): Partial<Process> => ({
  container: { id, runtime: "containerd", pod_uid: null, names: null },
});

const APP = process(10, "httpbin", inContainer("app"));
const PROXY = process(11, "envoy", inContainer("proxy"));
const REDIS = process(20, "redis", { network_namespace: 20 });
const INIT = process(1, "systemd", { network_namespace: 1 });
const LISTED = [
  pod("redis", 20, [member(REDIS, "app")]),
  pod("httpbin + envoy", 10, [member(APP, "app"), member(PROXY, "sidecar")]),
  pod("Host processes", 1, [member(INIT, "other")], "host"),
];
const mapOf = (...all: Process[]) => new Map(all.map((one) => [one.id, one]));
const ALL = mapOf(APP, PROXY, REDIS, INIT);

describe("pods", () => {
  it("have the processes of the page with the agent's roles, in the agent's order", () => {
    const pods = podsOf(LISTED, ALL);
    expect(pods.map(({ key, kind, containers }) => [key, kind, containers])).toEqual([
      ["20", "pod", 0],
      ["10", "pod", 2],
      ["host", "host", 0],
    ]);
    expect(pods[1]?.members).toEqual([
      { process: APP, role: "app", reason: "why app" },
      { process: PROXY, role: "sidecar", reason: "why sidecar" },
    ]);
  });

  it("lose what has ended, and go with their last process", () => {
    const pods = podsOf(LISTED, mapOf(PROXY, INIT));
    expect(pods.map(({ key, members }) => [key, members.length])).toEqual([
      ["10", 1],
      ["host", 1],
    ]);
  });

  it("are ordered by new readings, and stay without one", () => {
    const reading = {
      kind: "pod",
      network_namespace: 10,
      summary: "sidecar uses 0.84 of 1.92 cores (44 %)",
      cpu_percent: 192,
      sidecar_cpu_percent: 84,
      without_reading: 0,
      rss_bytes: 7,
    } as const;
    const found = withReadings(LISTED, [reading, { ...reading, network_namespace: 99 }]);
    expect(found.map(({ title, summary }) => [title, summary])).toEqual([
      ["httpbin + envoy", "sidecar uses 0.84 of 1.92 cores (44 %)"],
      ["redis", "summary of redis"],
      ["Host processes", "summary of Host processes"],
    ]);
    expect(found[0]?.processes).toBe(LISTED[1]?.processes);
  });

  it("tell processes whose end may change the roles of others", () => {
    expect(isInPod(LISTED, "11-1")).toBe(true);
    expect(isInPod(LISTED, "1-1")).toBe(false);
    expect(isInPod(LISTED, "99-1")).toBe(false);
  });

  it("filters by role, name and title, and drops pods without a match", () => {
    const pods = podsOf(LISTED, ALL);
    const pids = (filter: string, sort = "-cpu") =>
      podRows(pods, filter, sort).map((row) => (row.kind === "pod" ? row.pod.title : row.member.process.pid));
    expect(pids("sidecar")).toEqual(["httpbin + envoy", 11]);
    expect(pids("redis")).toEqual(["redis", 20]);
    expect(pids("httpbin")).toEqual(["httpbin + envoy", 10, 11]);
    expect(pids("httpbin sidecar")).toEqual(["httpbin + envoy", 11]);
    expect(pids("httpbin", "role")).toEqual(["httpbin + envoy", 10, 11]);
    expect(pids("no such")).toEqual([]);
  });
});
