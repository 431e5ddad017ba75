import { describe, expect, it } from "vitest";
import type { Process } from "../api/types";
import { compareBy, filterOf, groupByContainer } from "./process_list";
import { brushed, condense, moved, resized } from "./strip";
import {
  asCli,
  asCurl,
  matchedProcesses,
  NEW_FORM,
  shellWord,
  specOf,
  type TaskForm,
  targetText,
} from "./task_spec";

function process(pid: number, change: Partial<Process> = {}): Process {
  return {
    id: `${pid}-1`,
    pid,
    parent_pid: 1,
    comm: "app",
    program: "app",
    exe: "/usr/bin/app",
    arguments: ["app", "***"],
    uid: 0,
    user: "root",
    cgroup: "/a/b",
    container: null,
    network_namespace: 1,
    threads: 1,
    rss_bytes: 10,
    cpu_percent: 0,
    kernel_thread: false,
    ...change,
  };
}

const FORM: TaskForm = { ...NEW_FORM, pids: [7], wakers: true };

describe("process list", () => {
  it("filters by every word", () => {
    const envoy = process(42, {
      comm: "envoy",
      user: null,
      uid: 1337,
      container: { id: "abc", runtime: "docker", pod_uid: null, names: null },
    });
    expect(filterOf("")(envoy)).toBe(true);
    expect(filterOf("ENV docker")(envoy)).toBe(true);
    expect(filterOf("1337 42")(envoy)).toBe(true);
    expect(filterOf("envoy nginx")(envoy)).toBe(false);
  });

  it("sorts with a steady order of equals", () => {
    const list = [
      process(3, { cpu_percent: null }),
      process(2, { cpu_percent: 5 }),
      process(1, { cpu_percent: 5 }),
    ];
    expect(list.toSorted(compareBy("-cpu")).map(({ pid }) => pid)).toEqual([1, 2, 3]);
    expect(list.toSorted(compareBy("nonsense")).map(({ pid }) => pid)).toEqual([1, 2, 3]);
  });

  it("groups by container, the host last", () => {
    const a = { id: "a", runtime: "docker", pod_uid: null, names: null };
    const b = { id: "b", runtime: "docker", pod_uid: null, names: null };
    const rows = groupByContainer([
      process(1, { cpu_percent: 90 }),
      process(2, { container: a, cpu_percent: 1 }),
      process(3, { container: b, cpu_percent: 2 }),
    ]);
    expect(
      rows.map((row) => (row.kind === "group" ? (row.container?.id ?? "host") : row.process.pid)),
    ).toEqual(["b", 3, "a", 2, "host", 1]);
  });
});

describe("task form", () => {
  it("becomes a request, or says which field is missing", () => {
    expect(specOf({ ...FORM, duration: "10" })).toEqual({
      ok: true,
      spec: { kind: "on_cpu", target: { pids: [7] }, duration_s: 10, frequency_hz: 99, wakers: false },
    });
    expect(specOf({ ...FORM, duration: "10", kind: "off_cpu", frequency: "" })).toMatchObject({
      spec: { kind: "off_cpu", frequency_hz: 99, wakers: true },
    });
    expect(specOf({ ...FORM, endless: true })).toMatchObject({ spec: { duration_s: null } });
    expect(specOf({ ...FORM, pids: [] })).toMatchObject({ ok: false, field: "target" });
    expect(specOf({ ...FORM, duration: "1.5" })).toMatchObject({ ok: false, field: "duration_s" });
    expect(specOf({ ...FORM, duration: "10", frequency: "" })).toMatchObject({
      ok: false,
      field: "frequency_hz",
    });
    expect(specOf({ ...FORM, duration: "1000000000" })).toMatchObject({ ok: true });
  });

  it("finds the processes of a target", () => {
    const all = [process(7), process(8, { cgroup: "/a/b/c", comm: "x" }), process(9, { cgroup: "/a/bc" })];
    const pids = (form: Partial<TaskForm>): number[] =>
      matchedProcesses({ ...FORM, ...form }, all).map(({ pid }) => pid);
    expect(pids({})).toEqual([7]);
    expect(pids({ target: "cgroup", cgroup: "/a/b/" })).toEqual([7, 8]);
    expect(pids({ target: "comm", comm: "x" })).toEqual([8]);
    expect(pids({ target: "container" })).toEqual([]);
    expect(pids({ target: "all" })).toEqual([7, 8, 9]);
  });

  it("quotes for the shell", () => {
    expect(shellWord("/a/b")).toBe("/a/b");
    expect(shellWord("it's; rm -rf")).toBe("'it'\\''s; rm -rf'");
    const spec = {
      kind: "on_cpu" as const,
      target: { comm: "a'b" },
      duration_s: null,
      frequency_hz: 99,
      wakers: false,
    };
    expect(asCurl(spec, "http://127.0.0.1:7117")).toContain(
      `-d '{"kind":"on_cpu","target":{"comm":"a'\\''b"}`,
    );
    expect(asCurl(spec, "http://h")).not.toMatch(/[0-9a-f]{64}/);
    expect(asCli(spec)).toBe(
      "profiler-agent record --comm 'a'\\''b' --duration 1h --frequency 99 --format folded --output profile.folded",
    );
    expect(asCli({ ...spec, kind: "off_cpu" })).toContain("--duration 1h --kind off-cpu --format");
    expect(asCli({ ...spec, kind: "off_cpu", wakers: true })).toContain("--kind off-cpu --wakers --format");
    expect(asCli({ ...spec, kind: "wall" })).toContain("--kind wall --frequency 99 --format");
    expect(targetText({ pids: [1, 2] })).toBe("pids 1, 2");
  });
});

describe("time strip", () => {
  it("condenses without inventing", () => {
    expect(condense([1, 2, 3], 10)).toEqual([1, 2, 3]);
    expect(condense([2, 4, 6, 8, 9], 3)).toEqual([3, 7, 9]);
    expect(condense([], 10)).toEqual([]);
  });

  it("brushes whole buckets", () => {
    expect(brushed(0.5, 0.5, 100, 10)).toBeNull();
    expect(brushed(0.72, 0.31, 100, 10)).toEqual({ from: 300, to: 800 });
    expect(brushed(-1, 2, 100, 10)).toEqual({ from: 0, to: 1000 });
    expect(brushed(0, 1, 100, 0)).toBeNull();
  });

  it("moves and resizes inside its box", () => {
    expect(moved({ from: 800, to: 1000 }, 5, 100, 10)).toEqual({ from: 800, to: 1000 });
    expect(moved({ from: 300, to: 500 }, -1, 100, 10)).toEqual({ from: 200, to: 400 });
    expect(resized({ from: 300, to: 400 }, -1, 100, 10)).toEqual({ from: 300, to: 400 });
    expect(resized({ from: 300, to: 400 }, 99, 100, 10)).toEqual({ from: 300, to: 1000 });
  });
});
