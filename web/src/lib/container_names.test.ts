import { describe, expect, it } from "vitest";
import type { Process } from "../api/types";
import {
  commonPod,
  containerOf,
  containerTip,
  containerTitle,
  nameInPod,
  namesOf,
  podOrContainer,
  titleParts,
} from "./container_names";
import { containerNames } from "./containers_testing";
import { compareBy, filterOf } from "./process_list";

const ID = "3f9d2c71aa0b4c1d8e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d";
const PROXY = containerNames("shop", "web-0", "istio-proxy", {
  image: "docker.io/istio/proxyv2:1.27.0",
  workload: { kind: "StatefulSet", name: "web" },
});

describe("the name of a container", () => {
  it("is its title, and its short id while it has no name", () => {
    expect(containerTitle({ id: ID, names: PROXY })).toBe("shop/web-0/istio-proxy");
    expect(containerTitle({ id: ID, names: null })).toBe("3f9d2c71aa0b");
    expect(titleParts({ id: ID, names: PROXY })).toEqual(["shop/web-0", "/istio-proxy"]);
    expect(titleParts({ id: ID, names: null })).toEqual(["3f9d2c71aa0b", ""]);
    expect(nameInPod({ id: ID, names: PROXY })).toBe("istio-proxy");
    expect(nameInPod({ id: ID, names: null })).toBe("3f9d2c71aa0b");
    expect(nameInPod({ id: ID, names: containerNames("shop", "web-0", null) })).toBe("shop/web-0");
    expect(podOrContainer({ id: ID, names: PROXY })).toBe("web-0");
    expect(podOrContainer({ id: ID, names: { ...PROXY, title: "redis", pod: null } })).toBe("redis");
  });

  it("never loses the id, and says who gave it", () => {
    expect(containerTip({ id: ID, names: PROXY, runtime: "containerd" }).split("\n")).toEqual([
      "shop/web-0/istio-proxy",
      `container ${ID}`,
      "runtime containerd",
      "image docker.io/istio/proxyv2:1.27.0",
      "workload StatefulSet web",
      "named by the Kubernetes API",
    ]);
    expect(containerTip({ id: ID, names: null })).toBe(`container ${ID}\nno name known`);
    expect(containerTip({ id: ID, names: { ...PROXY, title: "a\nb\u202e" } })).toContain("a▯b▯\n");
  });

  it("is looked up by the id that an end has", () => {
    expect(containerOf(ID, { [ID]: PROXY })).toEqual({ id: ID, names: PROXY });
    expect(containerOf("other", { [ID]: PROXY })).toEqual({ id: "other", names: null });
    expect(containerOf(null, { [ID]: PROXY })).toBeNull();
  });
});

it("names by id stay the same object until one changes", () => {
  const container = { id: ID, names: PROXY };
  const first = namesOf([{ container }, { container: null }, { container: { id: "b", names: null } }], {});
  expect(first).toEqual({ [ID]: PROXY });
  expect(namesOf([{ container }], first)).toBe(first);
  expect(namesOf([{ container: { id: ID, names: { ...PROXY } } }], first)).not.toBe(first);
  expect(namesOf([], first)).toEqual({});
});

describe("the pod of containers", () => {
  const web = containerNames("shop", "web-0", "web");
  it("is the one that all of them are of", () => {
    expect(commonPod([null, PROXY, web, undefined])).toBe(PROXY);
    expect(commonPod([PROXY, containerNames("shop", "db-0", "db")])).toBeNull();
    expect(commonPod([null, { ...PROXY, pod: null }])).toBeNull();
  });
});

function process(pid: number, names: typeof PROXY | null): Process {
  return {
    id: `${pid}-1`,
    pid,
    comm: `p${pid}`,
    exe: null,
    arguments: [],
    user: "root",
    network_namespace: 7,
    cpu_percent: 0,
    rss_bytes: 0,
    kernel_thread: false,
    container: { id: `${pid}`.repeat(64), runtime: "containerd", pod_uid: null, names },
  } as unknown as Process;
}

describe("lists of processes", () => {
  const all = [process(2, PROXY), process(3, containerNames("shop", "web-0", "web")), process(4, null)];

  it("are filtered by every name", () => {
    const found = (filter: string) => all.filter(filterOf(filter)).map(({ pid }) => pid);
    for (const word of ["istio-proxy", "proxyv2", "statefulset", "shop/web-0/istio-proxy"])
      expect(found(word), word).toEqual([2]);
    expect(found("shop")).toEqual([2, 3]);
    expect(found("444444444444")).toEqual([4]);
  });

  it("are sorted by names, those without behind", () => {
    const sorted = (sort: string) => all.toSorted(compareBy(sort)).map(({ pid }) => pid);
    expect(sorted("-container")).toEqual([3, 2, 4]);
    expect(sorted("workload")).toEqual([2, 3, 4]);
  });
});
