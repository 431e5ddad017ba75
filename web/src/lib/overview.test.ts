import { describe, expect, it } from "vitest";
import type { NodeOverview, OverviewRow } from "../api/types";
import {
  below,
  coresOf,
  errorShare,
  overviewParts,
  processesOf,
  rate,
  requestsOf,
  targetOf,
} from "./overview";

function row(title: string, change: Partial<OverviewRow> = {}): OverviewRow {
  return {
    id: title,
    kind: "pod",
    title,
    pod: null,
    workload: null,
    network_namespace: 4026532000,
    processes: 2,
    pids: [7, 9],
    window_s: 10,
    cpu: { cores: 0.25, waiting: 0, limit: null },
    answered: null,
    sent: null,
    requests_unknown: null,
    segments: null,
    troubles: [],
    history: [],
    ...change,
  };
}

function overview(rows: readonly OverviewRow[]): NodeOverview {
  return {
    is_on: true,
    summary: "",
    rows,
    read_ns: 1,
    period_s: 10,
    cost_percent: 0.1,
    notes: [],
    checkups: [],
  };
}

const requests = {
  window_s: 10,
  count: 200,
  per_s: 20,
  errors: 5,
  p50: null,
  p95: { from_ms: 110, to_ms: 120 },
};
const names = (rows: readonly OverviewRow[]): readonly string[] => rows.map(({ title }) => title);

describe("rows of the overview", () => {
  const pod = row("shop/web-0", { workload: "Deployment/web" });
  const quiet = row("sshd", { kind: "program" });
  const loud = row("nginx.service", {
    kind: "service",
    troubles: [{ level: "warning", text: "its threads wait for a CPU" }],
  });

  it("shows pods and trouble first, and folds the rest of the node", () => {
    const { first, node } = overviewParts(overview([loud, pod, quiet]), "");
    expect(names(first)).toEqual(["nginx.service", "shop/web-0"]);
    expect(names(node)).toEqual(["sshd"]);
  });

  it("folds nothing on a node without pods", () => {
    const { first, node } = overviewParts(overview([loud, quiet]), "");
    expect(names(first)).toEqual(["nginx.service", "sshd"]);
    expect(node).toEqual([]);
    // The filter takes no pod away.
    expect(names(overviewParts(overview([pod, quiet]), "ssh").node)).toEqual(["sshd"]);
  });

  it("finds rows by title, workload and trouble", () => {
    const all = overview([loud, pod, quiet]);
    expect(names(overviewParts(all, "deployment WEB").first)).toEqual(["shop/web-0"]);
    expect(names(overviewParts(all, "wait for").first)).toEqual(["nginx.service"]);
  });

  it("is a target by the pod's name, else by pids", () => {
    const named = row("shop/web-0", { pod: { namespace: "shop", name: "web-0" } });
    expect(targetOf(named)).toEqual({ pod: { namespace: "shop", name: "web-0" } });
    expect(targetOf(pod)).toEqual({ pids: [7, 9] });
    expect(targetOf(row("none", { pids: [] }))).toBeNull();
  });

  it("leads to its processes", () => {
    expect(processesOf(pod)).toEqual({ view: "pods", q: "4026532000" });
    expect(processesOf(loud)).toEqual({ view: "processes", q: "nginx" });
  });

  it("tells requests that it answered from those that it sent", () => {
    expect(requestsOf(row("a", { answered: requests, sent: requests })).areSent).toBe(false);
    expect(requestsOf(row("a", { sent: requests })).areSent).toBe(true);
    expect(requestsOf(pod)).toEqual({ requests: null, areSent: false });
    expect(errorShare(requests)).toBe(2.5);
    expect(errorShare({ ...requests, count: 0 })).toBeNull();
  });

  it("writes numbers as they are known", () => {
    expect([0, 0.04, 9.96, 12.4, 1200].map(rate)).toEqual([
      "0",
      "0.0",
      "10.0",
      "12",
      (1200).toLocaleString(),
    ]);
    expect(below(requests.p95)).toBe("< 120 ms");
    expect(coresOf([pod, quiet])).toBe(0.5);
    expect(coresOf([row("new", { cpu: { cores: null, waiting: null, limit: null } })])).toBeNull();
  });
});
