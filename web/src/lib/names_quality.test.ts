import { expect, test } from "vitest";
import type { NamesQuality } from "../api/types";
import { improvable, sourceText, summarize } from "./names_quality";

const names = (exact: number, inferred: number, unnamed: number): NamesQuality => ({
  frames: exact + inferred + unnamed,
  exact,
  inferred,
  unnamed,
  sources: [],
  samples: 1,
  samples_with_a_name: 1,
  modules: [
    { path: "/bin/a", build_id: null, unnamed, inferred },
    { path: "/bin/b", build_id: "abcd", unnamed, inferred },
  ],
});

test("the shares are said in full and in short", () => {
  expect(summarize(names(931, 20, 49))).toEqual({
    title: "95.1 % named",
    detail: "93.1 % exact, 2.0 % inferred, 4.9 % without a name",
    poor: false,
  });
  expect(summarize(names(60, 0, 40))).toEqual({
    title: "60.0 % named",
    detail: "60.0 % exact, 40.0 % without a name",
    poor: true,
  });
});

test("a result without user frames has no share", () => {
  expect(summarize(names(0, 0, 0))).toEqual({ title: "Names", detail: "no user frames", poor: false });
});

test("only files with a build-id can be given symbols", () => {
  expect(improvable(names(1, 0, 1)).map((module) => module.path)).toEqual(["/bin/b"]);
});

test("sources have names, also new ones", () => {
  expect(sourceText("go_table")).toBe("Go's table");
  expect(sourceText("tomorrow")).toBe("tomorrow");
});
