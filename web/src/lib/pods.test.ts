import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ContainerNames, Process } from "../api/types";
import { containerNames } from "./containers_testing";
import { podRows, podsOf, sidecarLine } from "./pods";
import { rolesInPod } from "./roles";

const HOST = 4026531840;

function process(pid: number, comm: string, change: Partial<Process> = {}): Process {
  return {
    id: `${pid}-1`,
    pid,
    parent_pid: 1,
    comm,
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

const inContainer = (id: string): Partial<Process> => ({
  container: { id, runtime: "containerd", pod_uid: null, names: null },
});

describe("roles", () => {
  const role = (members: Process[], pid: number) => rolesInPod(members).get(`${pid}-1`);

  it("calls a proxy beside an application a sidecar, with its agent and what shares its container", () => {
    const members = [
      process(1, "httpbin", inContainer("app")),
      process(2, "envoy", inContainer("proxy")),
      process(3, "pilot-agent", inContainer("proxy")),
      process(4, "sh", inContainer("proxy")),
      process(5, "pause", inContainer("pause")),
    ];
    expect(role(members, 1)).toEqual({
      role: "app",
      reason: "it is not a proxy and shares the pod with envoy",
    });
    expect(role(members, 2)?.role).toBe("sidecar");
    expect(role(members, 2)?.reason).toContain("shares the pod with httpbin");
    expect(role(members, 3)?.role).toBe("sidecar");
    expect(role(members, 4)).toEqual({
      role: "sidecar",
      reason: "it is in the container of the proxy envoy",
    });
    expect(role(members, 5)?.role).toBe("other");
  });

  it("does not call a proxy that is alone a sidecar", () => {
    const gateway = [process(1, "envoy", inContainer("g")), process(2, "pilot-agent", inContainer("g"))];
    expect(role(gateway, 1)?.role).toBe("other");
    expect(role(gateway, 1)?.reason).toContain("gateway");
    expect(role(gateway, 2)?.role).toBe("other");
  });

  it("knows a program by its file, whatever it calls itself", () => {
    const members = [process(1, "app"), process(2, "wrk:worker_0", { exe: "/opt/envoy (deleted)" })];
    expect(role(members, 2)?.role).toBe("sidecar");
    expect(role([process(1, "app")], 1)?.reason).toContain("no proxy");
  });
});

describe("pods", () => {
  const all = [
    process(1, "systemd", { network_namespace: HOST, cpu_percent: 5 }),
    process(2, "kthreadd", { network_namespace: HOST, kernel_thread: true, exe: null }),
    process(10, "httpbin", { cpu_percent: 108 }),
    process(11, "envoy", { cpu_percent: 84 }),
    process(20, "redis", { network_namespace: 20, cpu_percent: 300 }),
    process(30, "gone", { network_namespace: null, exe: null }),
  ];

  it("groups by network namespace: pods by CPU, then the node, then the unknown", () => {
    const pods = podsOf(all);
    expect(pods.map(({ key, kind }) => [key, kind])).toEqual([
      ["20", "pod"],
      ["10", "pod"],
      ["host", "host"],
      ["unknown", "unknown"],
    ]);
    expect(pods[1]?.title).toBe("httpbin + envoy");
    expect(pods[2]?.members.map(({ process: { pid } }) => pid)).toEqual([1]);
    expect(pods[2]?.members[0]?.reason).toContain("not in a pod");
    expect(pods[3]?.members[0]?.reason).toContain("cannot be read");
  });

  it("says what the sidecar uses, and why where it cannot", () => {
    const line = (members: Process[]) => sidecarLine(podsOf(members)[0]!);
    expect(
      line([process(10, "httpbin", { cpu_percent: 108 }), process(11, "envoy", { cpu_percent: 84 })]),
    ).toBe("sidecar uses 0.84 of 1.92 cores (44 %)");
    expect(line([process(10, "redis", { cpu_percent: 50 })])).toBe("no sidecar; 0.50 cores");
    expect(
      line([process(10, "httpbin", { cpu_percent: null }), process(11, "envoy", { cpu_percent: null })]),
    ).toContain("unknown");
    expect(line([process(10, "httpbin"), process(11, "envoy")])).toBe(
      "sidecar uses 0.00 of 0.00 cores: the pod is idle",
    );
    expect(
      line([
        process(10, "httpbin", { cpu_percent: 50 }),
        process(11, "envoy", { cpu_percent: 50 }),
        process(12, "sh", { cpu_percent: null }),
      ]),
    ).toBe("sidecar uses 0.50 of 1.00 cores (50 %), without 1 not read yet");
  });

  it("filters by role, name and title, and drops pods without a match", () => {
    const pods = podsOf(all);
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

interface Case {
  readonly name: string;
  readonly processes: readonly {
    readonly pid: number;
    readonly comm: string;
    readonly exe: string | null;
    readonly container: string | null;
    readonly network_namespace: number | null;
    readonly cpu_percent: number | null;
    readonly kernel_thread: boolean;
    readonly names?: {
      readonly namespace: string;
      readonly pod: string;
      readonly name: string;
      readonly role: ContainerNames["role"];
    };
  }[];
  readonly pods: readonly unknown[];
}

function named(given: Case["processes"][number]["names"]): ContainerNames | null {
  if (given === undefined) return null;
  const { namespace, pod, name, role } = given;
  return containerNames(namespace, pod, name, { role });
}

describe("pods of the agent", () => {
  const file = new URL("../../../tests/fixtures/pods/cases.json", import.meta.url);
  const cases = JSON.parse(new TextDecoder().decode(readFileSync(file))) as readonly Case[];

  it.each(cases)("$name", ({ processes, pods }) => {
    const all = processes.map(({ pid, comm, container: id, names, ...rest }) =>
      process(pid, comm, {
        ...rest,
        container: id === null ? null : { id, runtime: "x", pod_uid: null, names: named(names) },
      }),
    );
    const found = podsOf(all).map((pod) => ({
      kind: pod.kind,
      namespace: pod.namespace,
      title: pod.title,
      sidecar: sidecarLine(pod),
      members: pod.members.map(({ process: { pid }, role, reason }) => [pid, role, reason]),
    }));
    expect(found).toEqual(pods);
  });
});
