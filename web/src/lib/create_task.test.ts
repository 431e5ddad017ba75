import { describe, expect, it } from "vitest";
import type { Meta, Process, Task } from "../api/types";
import { checkupAsCli, checkupAsCurl, checkupSpec, tasksOfGroup } from "./checkup";
import { containerNames } from "./containers_testing";
import { estimateLine, expectedSamples, recommendedSeconds, resolutionPoints } from "./estimate";
import { kindStatuses, kindsText } from "./kind_probes";
import { remarksOn } from "./task_conflicts";
import { corePercent, costLines, measuredRun } from "./task_cost";
import {
  asCli,
  firstTarget,
  matchedProcesses,
  NEW_FORM,
  NO_SELECTOR,
  nothingPicked,
  specOf,
  type TaskForm,
  targetText,
} from "./task_spec";

const FORM: TaskForm = { ...NEW_FORM, target: "pod", pod: "4026532441", duration: "30" };

const member = (pid: number, change: Partial<Process> = {}): Process =>
  ({ pid, network_namespace: 4026532441, kernel_thread: false, ...change }) as Process;

const PROBES = ["on_cpu", "off_cpu", "wall", "network_send", "network_drop"].map((name) => ({
  name,
  state: "available" as const,
  reason: null,
  minimum_kernel: "5.15",
}));

const META = {
  limits: { max_duration_s: 3600, max_frequency_hz: 4999, max_running_tasks: 2 },
  cpu_budget_percent: null,
} as Meta;

/** A container of a pod with a name. */
const named = (pid: number, pod: string): Process =>
  member(pid, {
    container: { pod_uid: pod, names: { pod: { namespace: "shop", name: pod } } },
  } as unknown as Partial<Process>);

/** One that only its pod is known of. */
const unnamed = (pid: number, pod: string): Process =>
  member(pid, { container: { pod_uid: pod, names: null } } as unknown as Partial<Process>);

describe("a pod as a target", () => {
  const form = { ...FORM, target: "pod", pod: "4026532441", kind: "on_cpu" } as const;
  const target = (matched: readonly Process[]): unknown => {
    const result = specOf(form, matched);
    return result.ok ? result.spec.target : result.detail;
  };

  it("is asked for by its name, which it has after a restart too", () => {
    expect(target([named(1, "web-0"), unnamed(2, "web-0"), named(3, "web-0")])).toEqual({
      pod: { namespace: "shop", name: "web-0" },
    });
  });

  it("is the pod by its name for connections too", () => {
    const named2 = [named(1, "web-0"), named(2, "web-0")];
    expect(specOf({ ...FORM, kind: "network" }, named2)).toMatchObject({
      spec: { target: { pod: { namespace: "shop", name: "web-0" } } },
    });
  });

  it("is its processes where it has no name or several share the network", () => {
    expect(target([member(1), member(2)])).toEqual({ pids: [1, 2] });
    expect(target([named(1, "web-0"), named(2, "web-1")])).toEqual({ pids: [1, 2] });
    // One pod with a name on the host's network, beside the programs of the host.
    expect(target([named(1, "web-0"), member(2)])).toEqual({ pids: [1, 2] });
  });
});

describe("the estimate", () => {
  it("is the one of the specification: 30 s at 99 Hz of 0.84 cores", () => {
    expect(expectedSamples(30, 99, 0.84)).toBeCloseTo(2494.8);
    expect(estimateLine(30, 99, 0.84)).toBe(
      "About 2,500 samples (30 s × 99 Hz × 0.84 cores as now): a function of 10 % reads 10 ± 1.2 %.",
    );
    expect(resolutionPoints(2494.8, 0.1)).toBeCloseTo(1.177, 2);
  });

  it("recommends what tells a share of 10 % within two points, and no more than a minute", () => {
    const points = (seconds: number, cores: number): number =>
      resolutionPoints(expectedSamples(seconds, 99, cores), 0.1)!;
    for (const cores of [0.15, 0.3, 0.5, 0.8]) {
      const seconds = recommendedSeconds(true, 99, cores);
      expect(points(seconds, cores)).toBeLessThanOrEqual(2);
      expect(points(seconds - 10, cores)).toBeGreaterThan(2);
    }
    expect(recommendedSeconds(true, 99, 16)).toBe(10);
    expect(recommendedSeconds(true, 99, 0.01)).toBe(60);
    expect(recommendedSeconds(true, 99, 0)).toBe(60);
    expect(recommendedSeconds(true, 99, null)).toBe(30);
    expect(recommendedSeconds(false, 99, 4)).toBe(30);
  });

  it("names the cost with its source, and what is not known", () => {
    const input = {
      kind: "on_cpu" as const,
      hertz: 99,
      cores: 0.84,
      sampled: false,
      timed: false,
      sources: [],
      tlsPercent: 100,
      programs: [],
    };
    expect(costLines(input)[0]).toEqual({
      text: "0.02 % of one core for samples",
      how: "83 samples/s × 2.0 µs a sample in the kernel (docs/performance.md, another machine)",
    });
    const programs = [
      { name: "on_cpu", run_count: 2000, run_time_ns: 8_000_000, verified_instructions: null },
    ];
    expect(measuredRun("on_cpu", programs)).toEqual({ ns: 4000, runs: 2000 });
    const measured = costLines({ ...input, programs })[0];
    expect(measured?.how).toContain("4.0 µs");
    expect(measured?.how).toContain("this node");
    expect(costLines({ ...input, cores: null })[0]?.how).toContain("not known yet");
    expect(costLines({ ...input, kind: "off_cpu" })[0]?.how).toContain("not known before");
    const requests = costLines({ ...input, kind: "requests", sources: ["sockets"] });
    expect(requests).toHaveLength(1);
    const tls = costLines({ ...input, kind: "requests", sources: ["sockets", "tls"], tlsPercent: 50 })[1];
    expect(tls?.text).toBe("3 to 40 µs of the target's CPU for a TLS request, in 50 % of the time");
    expect(measuredRun("on_cpu", [{ ...programs[0]!, run_count: 3 }])).toBeNull();
    expect(corePercent(0.000001)).toBe("under 0.01 %");
    expect(corePercent(0)).toBe("0.00 %");
  });
});

describe("the sources of requests", () => {
  const form: TaskForm = { ...FORM, target: "all", kind: "requests" };
  const asked = (change: Partial<TaskForm>) => {
    const result = specOf({ ...form, ...change });
    return result.ok ? result.spec : result;
  };

  it("are sockets, unless others are asked for", () => {
    expect(asked({})).not.toHaveProperty("source");
    expect(asked({ tls: true })).toMatchObject({ tls: true });
    expect(asked({ tls: true })).not.toHaveProperty("source");
    expect(asked({ accessLogs: true, sockets: false })).toMatchObject({ source: ["access_log"] });
    expect(asked({ accessLogs: true })).toMatchObject({ source: ["access_log", "sockets"] });
    const all = asked({ accessLogs: true, tls: true, duty: "20" });
    expect(all).toMatchObject({ source: ["access_log", "sockets", "tls"], tls_duty_percent: 20 });
    expect(all).not.toHaveProperty("tls");
    expect(asked({ kind: "network", accessLogs: true })).not.toHaveProperty("source");
  });

  it("are at least one, and TLS and bodies are of sockets", () => {
    expect(asked({ sockets: false })).toMatchObject({ ok: false, field: "source" });
    const logs = asked({ accessLogs: true, sockets: false, tls: true, duty: "x", bodies: true });
    expect(logs).toMatchObject({ source: ["access_log"] });
    for (const field of ["tls", "bodies", "tls_duty_percent"]) expect(logs).not.toHaveProperty(field);
  });

  it("are in the command", () => {
    const cli = (change: Partial<TaskForm>) => {
      const result = specOf({ ...form, ...change });
      return result.ok ? asCli(result.spec) : null;
    };
    expect(cli({})).toBe("profiler-agent requests --all --duration 30s");
    expect(cli({ tls: true, duty: "20" })).toBe(
      "profiler-agent requests --all --duration 30s --tls --tls-duty 20",
    );
    expect(cli({ accessLogs: true, tls: true })).toBe(
      "profiler-agent requests --all --duration 30s --source access-log,sockets,tls",
    );
  });

  it("have a cost each, and access logs need no probe", () => {
    const input = {
      kind: "requests" as const,
      hertz: 99,
      cores: 1,
      sampled: false,
      timed: false,
      tlsPercent: 100,
      programs: [],
    };
    expect(costLines({ ...input, sources: ["access_log"] })[0]?.text).toContain("decode each request");
    expect(costLines({ ...input, sources: ["access_log", "sockets", "tls"] })).toHaveLength(3);
    const kinds = kindStatuses([
      { name: "network_send", state: "unavailable", reason: "no BTF", minimum_kernel: "6.3" },
    ]);
    const remarks = (change: Partial<TaskForm>) => {
      const result = specOf({ ...form, ...change });
      const specs = result.ok ? [result.spec] : [];
      return remarksOn({ specs, meta: META, tasks: [], kinds, matched: [member(7)], isMatched: true });
    };
    expect(remarks({})).toMatchObject([{ weight: "refusal" }]);
    expect(remarks({ accessLogs: true, sockets: false })).toEqual([]);
  });
});

describe("the form", () => {
  it("takes a pod as its processes, and as its namespace for connections", () => {
    const all = [
      member(7),
      member(8),
      member(9, { network_namespace: 1 }),
      member(10, { kernel_thread: true }),
    ];
    const matched = matchedProcesses(FORM, all);
    expect(matched.map(({ pid }) => pid)).toEqual([7, 8]);
    expect(specOf(FORM, matched)).toMatchObject({ ok: true, spec: { target: { pids: [7, 8] } } });
    expect(specOf({ ...FORM, kind: "network" }, matched)).toMatchObject({
      ok: true,
      spec: { target: { network_namespace: "/proc/7/ns/net" } },
    });
    expect(specOf(FORM, [])).toMatchObject({ ok: false, field: "target" });
  });

  it("takes pods by their names, and the commands have them too", () => {
    const web = containerNames("shop", "web-0", "web", { labels: { app: "web" } });
    const container = { id: "c", runtime: "containerd", pod_uid: "u", names: web };
    const all = [
      member(7, { container }),
      member(8, { container: { ...container, id: "p", names: null } }),
      member(9, { container: { ...container, id: "o", pod_uid: "other", names: null } }),
    ];
    const pod: TaskForm = {
      ...FORM,
      target: "kubernetes",
      selector: { ...NO_SELECTOR, namespace: " shop ", name: "web-0" },
    };
    const pids = (form: TaskForm) => matchedProcesses(form, all).map(({ pid }) => pid);
    // A whole pod is also its containers without names.
    expect(pids(pod)).toEqual([7, 8]);
    expect(pids({ ...pod, selector: { ...NO_SELECTOR, container: "web" } })).toEqual([7]);
    expect(pids({ ...pod, selector: { ...NO_SELECTOR, labels: "app in (web)" } })).toEqual([7, 8]);
    expect(pids({ ...pod, selector: { ...NO_SELECTOR, namespace: "shop" } })).toEqual([]);
    const result = specOf(pod);
    if (!result.ok) throw new Error(result.detail);
    expect(result.spec.target).toEqual({ pod: { namespace: "shop", name: "web-0" } });
    expect(targetText(result.spec.target)).toBe("pod shop/web-0");
    expect(asCli(result.spec)).toContain("record --pod shop/web-0 ");
    expect(asCli({ ...result.spec, kind: "network" })).toBe(
      "profiler-agent net --pod shop/web-0 --duration 30s",
    );
    expect(asCli({ ...result.spec, target: { pod: { labels: "app in (a,b)" } } })).toContain(
      "--labels 'app in (a,b)'",
    );
    expect(asCli({ ...result.spec, target: { pod: { namespace: "shop", container: "web" } } })).toBeNull();
    expect(specOf({ ...pod, selector: { ...NO_SELECTOR, namespace: "shop" } })).toMatchObject({
      ok: false,
      field: "target",
    });
    const checkup = { target: { pod: { name: "web-0" } }, duration_s: 5 };
    expect(checkupAsCli(checkup)).toBe("profiler-agent diagnose --pod web-0 --duration 5s");
  });

  it("has bounds and a mode for waits only", () => {
    const waits: TaskForm = { ...FORM, kind: "off_cpu", mode: "sampled", minWait: "0.05", maxWait: "1000" };
    const result = specOf(waits, [member(7)]);
    expect(result).toMatchObject({
      ok: true,
      spec: { off_cpu_mode: "sampled", min_wait_ns: 50_000, max_wait_ns: 1_000_000_000 },
    });
    if (result.ok)
      expect(asCli(result.spec)).toContain(
        "--off-cpu-mode sampled --min-wait 50000ns --max-wait 1000000000ns",
      );
    expect(specOf({ ...waits, minWait: "soon" }, [member(7)])).toMatchObject({
      ok: false,
      field: "min_wait_ns",
    });
    const onCpu = specOf({ ...waits, kind: "on_cpu" }, [member(7)]);
    expect(onCpu.ok && "min_wait_ns" in onCpu.spec).toBe(false);
  });

  it("asks of requests only what is not so anyway", () => {
    const form: TaskForm = { ...FORM, kind: "requests" };
    const plain = specOf(form, [member(7)]);
    if (!plain.ok) throw new Error(plain.detail);
    expect(plain.spec).toEqual({
      kind: "requests",
      target: { network_namespace: "/proc/7/ns/net" },
      duration_s: 30,
      frequency_hz: 99,
      wakers: false,
    });
    expect(asCli(plain.spec)).toBe("profiler-agent requests --netns /proc/7/ns/net --duration 30s");
    const full = specOf({ ...form, tls: true, duty: "20", bodies: true, rawPaths: true, samples: "all" }, [
      member(7),
    ]);
    if (!full.ok) throw new Error(full.detail);
    expect(full.spec).toMatchObject({
      tls: true,
      tls_duty_percent: 20,
      bodies: true,
      raw_paths: true,
      samples: "all",
    });
    expect(asCli(full.spec)).toContain("--tls --tls-duty 20 --bodies --raw-paths --samples all");
    for (const duty of ["0", "101", "half", ""])
      expect(specOf({ ...form, tls: true, duty }, [member(7)])).toMatchObject({ field: "tls_duty_percent" });
    // A duty of what is off is nothing.
    expect(specOf({ ...form, duty: "half" }, [member(7)]).ok).toBe(true);
    const network = specOf({ ...form, kind: "network", tls: true, rawPaths: true }, [member(7)]);
    expect(network.ok && ("tls" in network.spec || "raw_paths" in network.spec)).toBe(false);
  });

  it("says a container by its name, with its id", () => {
    const id = "3f9d2c71aa0b4c1d8e6f5a4b3c2d1e0f";
    const named = {
      [id]: containerNames("shop", "web-0", "web"),
      [`${id.slice(0, 16)}ff`]: containerNames("a", "b", "c"),
    };
    expect(targetText({ container: id }, named)).toBe("container shop/web-0/web 3f9d2c71aa0b");
    expect(targetText({ container: id.slice(0, 20) }, named)).toBe("container shop/web-0/web 3f9d2c71aa0b");
    expect(targetText({ container: id.slice(0, 12) }, named)).toBe("container 3f9d2c71aa0b");
    expect(targetText({ container: id })).toBe("container 3f9d2c71aa0b");
  });

  it("lists a few pids and counts the rest", () => {
    expect(targetText({ pids: [1, 2, 3, 4, 5, 6, 7, 8] })).toBe("pids 1, 2, 3, 4, 5, 6 and 2 more");
  });
});

describe("the check-up", () => {
  it("is one request, of which the agent makes three tasks", () => {
    const result = checkupSpec({ ...FORM, duration: "60" }, [member(7)]);
    if (!result.ok) throw new Error(result.detail);
    expect(result.spec).toEqual({ target: { pids: [7] }, duration_s: 60, frequency_hz: 99 });
    expect(result.parts.map(({ kind }) => kind)).toEqual(["on_cpu", "off_cpu", "requests"]);
    expect(checkupSpec(FORM, [])).toMatchObject({ ok: false, field: "target" });
    expect(checkupSpec({ ...FORM, duration: "", endless: true }, [member(7)])).toMatchObject({
      ok: false,
      field: "duration_s",
    });
  });

  it("is a request for curl and a command", () => {
    const spec = { target: { pids: [7, 8] }, duration_s: 30, frequency_hz: 99 };
    expect(checkupAsCurl(spec, "http://127.0.0.1:7117")).toContain("/api/v1/checkups");
    expect(checkupAsCli(spec)).toBe("profiler-agent diagnose --pid 7 --pid 8 --duration 30s --frequency 99");
    expect(checkupAsCli({ target: { comm: "a'b" }, duration_s: 5 })).toBe(
      "profiler-agent diagnose --comm 'a'\\''b' --duration 5s",
    );
    expect(checkupAsCli({ target: { all: true }, duration_s: 5 })).toBeNull();
  });

  it("finds its tasks in the order of the kinds", () => {
    const task = (id: string, kind: string, group: string | null) => ({ id, kind, group }) as Task;
    const all = [
      task("9", "network", "a"),
      task("8", "off_cpu", "a"),
      task("7", "on_cpu", "a"),
      task("6", "wall", null),
    ];
    expect(tasksOfGroup(all, "a").map(({ id }) => id)).toEqual(["7", "8", "9"]);
  });
});

describe("what is possible", () => {
  it("is told by kind with the reason", () => {
    const kinds = kindStatuses(PROBES);
    expect(kinds.map(({ state }) => state)).toEqual(["ok", "ok", "ok", "ok", "ok"]);
    expect(kindsText(kinds)).toBe("all profile types");
    const denied = PROBES.map((probe) =>
      probe.name === "wall" || probe.name === "network_send"
        ? { ...probe, state: "denied" as const, reason: "it is denied" }
        : probe,
    );
    const less = kindStatuses(denied);
    expect(less[2]).toMatchObject({ state: "impossible", reason: "it is denied" });
    expect(less[3]).toMatchObject({ state: "degraded" });
    expect(less[3]?.reason).toContain("network_send: it is denied");
    expect(kindsText(less)).toBe("4 of 5 kinds");
    expect(kindsText(kindStatuses([]))).toBe("unknown");
  });

  it("is said before the agent refuses", () => {
    const spec = {
      kind: "wall" as const,
      target: { pids: [7] },
      duration_s: 9999,
      frequency_hz: 100,
      wakers: false,
    };
    const running = { id: "5", kind: "wall", target: { pids: [7] }, state: "running" } as unknown as Task;
    const kinds = kindStatuses(PROBES.map((probe) => ({ ...probe, state: "unavailable" as const })));
    const remarks = remarksOn({
      specs: [spec],
      meta: META,
      tasks: [running, { ...running, id: "6", target: { all: true } }],
      kinds,
      matched: [],
      isMatched: true,
    });
    const texts = remarks.map(({ weight, text }) => `${weight}: ${text}`);
    expect(texts[0]).toBe("refusal: Wall clock is not possible here: the probe is unavailable.");
    expect(texts[1]).toContain("refusal: The duration must be");
    expect(texts.join(" ")).toContain("note: No process matches");
    expect(texts.join(" ")).toContain("100 Hz may run in step");
    expect(texts.join(" ")).toContain("will wait for a place");
    expect(texts.join(" ")).toContain("Task 5 does the same");
  });
});

describe("the form at first", () => {
  const nothing = { pids: [], container: "", pod: "", checkup: false };
  it.each([
    [nothing, "pids"],
    [{ ...nothing, checkup: true }, "pod"],
    [{ ...nothing, checkup: true, pids: [7] }, "pids"],
    [{ ...nothing, container: "3f9d" }, "container"],
    [{ ...nothing, pod: "5", container: "3f9d" }, "pod"],
  ] as const)("asks for what was picked: %o", (from, target) => {
    expect(firstTarget(from)).toBe(target);
  });

  it("cannot be sent before there is a target", () => {
    expect(nothingPicked({ ok: false, field: "target" })).toBe(true);
    expect(nothingPicked({ ok: false, field: "duration_s" })).toBe(false);
    expect(nothingPicked({ ok: true })).toBe(false);
  });
});
