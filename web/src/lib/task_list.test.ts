import { expect, test } from "vitest";
import type { Task } from "../api/types";
import { listed, withTask } from "./task_list";

const task = (id: string, state: Task["state"]) => ({ id, state }) as Task;
const NONE = new Set<string>();

test("an answer that was overtaken by the end of a task does not let it run again", () => {
  const known = withTask(new Map([["a", task("a", "running")]]), task("a", "finished"), NONE);
  const late = listed(known, [task("a", "running"), task("b", "running")], NONE);
  expect([...late.values()].map(({ state }) => state)).toEqual(["finished", "running"]);
  expect(withTask(known, task("a", "queued"), NONE).get("a")?.state).toBe("finished");
  expect(withTask(known, task("a", "failed"), NONE).get("a")?.state).toBe("failed");
});

test("what was deleted does not come back, what is not listed goes", () => {
  const deleted = new Set(["a"]);
  expect([...listed(new Map(), [task("a", "finished"), task("b", "queued")], deleted).keys()]).toEqual(["b"]);
  expect(withTask(null, task("a", "finished"), deleted).size).toBe(0);
  expect(listed(new Map([["b", task("b", "finished")]]), [], NONE).size).toBe(0);
});
