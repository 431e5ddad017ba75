import { expect, it } from "vitest";
import { pagePath } from "./page_request";
import { START } from "./query_state";

it("gives the comparison that a task page shows", () => {
  const page = { ...START, view: "task" as const, id: "7" };
  expect(pagePath(page)).toBe("/tasks/7");
  expect(pagePath({ ...page, base: "6", tids: [12], from: 20, norm: "rate" })).toBe(
    "/diff?a=6&b=7&norm=rate&b_from=20&b_tid=12",
  );
  expect(pagePath({ ...page, base: "7", tids: [12], except: true, baseTo: 400 })).toBe(
    "/diff?a=7&b=7&norm=share&a_to=400&a_not_tid=12&b_not_tid=12",
  );
});
