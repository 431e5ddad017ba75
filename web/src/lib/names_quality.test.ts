import { expect, test } from "vitest";
import type { NamesQuality } from "../api/types";
import { improvable, runtimeNotes, sourceText, summarize } from "./names_quality";

const names = (exact: number, inferred: number, unnamed: number): NamesQuality => ({
  frames: exact + inferred + unnamed,
  exact,
  inferred,
  interpreter: 0,
  jit: 0,
  unnamed,
  sources: [],
  samples: 1,
  samples_with_a_name: 1,
  modules: [
    { path: "/bin/a", build_id: null, unnamed, inferred },
    { path: "/bin/b", build_id: "abcd", unnamed, inferred },
  ],
  runtimes: [],
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

test("frames that do not say which function ran are not named", () => {
  const runtimes = [
    { runtime: "Python 3.11 or older", frames: 400, samples: 99, remedy: "nothing gives names" },
    { runtime: "Lua", frames: 1, samples: 1, remedy: "nothing gives names" },
  ];
  const python = { ...names(590, 0, 0), frames: 1000, interpreter: 400, jit: 10, samples: 100, runtimes };
  expect(summarize(python)).toEqual({
    title: "59.0 % named",
    detail:
      "59.0 % exact, 40.0 % the loop of an interpreter, 1.0 % made at run time without a perf map, 0 % without a name",
    poor: true,
  });
  expect(runtimeNotes(python)).toEqual([
    "Python 3.11 or older: 40.0 % of user frames, in 99.0 % of samples, do not say which function ran; nothing gives names.",
  ]);
  expect(runtimeNotes(names(1, 0, 1))).toEqual([]);
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
