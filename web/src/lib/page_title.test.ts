import { expect, test } from "vitest";
import type { Task } from "../api/types";
import { pageTitle } from "./page_title";
import { parseState } from "./query_state";

const task = {
  id: "4",
  kind: "on_cpu",
  target: { pids: [7, 8] },
  target_names: [
    { pid: 7, start_ticks: 1, comm: "envoy" },
    { pid: 8, start_ticks: 2, comm: "shop\u202e" },
  ],
} as unknown as Task;

const title = (search: string, known: Partial<Parameters<typeof pageTitle>[1]> = {}): string =>
  pageTitle(parseState(search), { task: undefined, edge: null, checkup: null, node: null, ...known });

test("each page has a title of its own", () => {
  const searches = [
    "?view=pods",
    "?view=processes",
    "?view=tasks",
    "?view=network",
    "?view=node",
    "?view=group&id=a",
    "?view=task&id=1",
    "?view=task&id=2",
    "?view=edge&edge=00ff",
    "?view=edge&id=1&edge=00ff",
  ];
  const titles = searches.map((search) => title(search));
  expect(new Set(titles).size).toBe(searches.length);
  expect(title("?view=node", { node: "worker-3" })).toBe("Node · worker-3 · profiler-agent");
});

test("what a page is about stands first, and names cannot disturb it", () => {
  expect(title("?view=task&id=4", { task })).toMatch(/^envoy, shop.+ – On-CPU, task 4 · profiler-agent$/);
  expect(title("?view=task&id=4", { task })).not.toContain("\u202e");
  expect(title("?view=task&id=4", { task: { ...task, target_names: [] } })).toMatch(/^pids 7, 8 – On-CPU/);
  expect(title("?view=edge&id=4&edge=00ff", { edge: "shop → envoy:80" })).toBe(
    "shop → envoy:80 · profiler-agent",
  );
});

test("a check-up and a comparison name their target", () => {
  const known = { checkup: "pod shop/web-0" };
  expect(title("?view=checkup&id=checkup-1", known)).toBe(
    "pod shop/web-0 – Check-up checkup-1 · profiler-agent",
  );
  expect(title("?view=compare-checkups&a=checkup-1&b=checkup-2", known)).toMatch(
    /^pod shop.web-0 – Check-ups/,
  );
});
