import { describe, expect, it } from "vitest";
import { find, type PaletteEntry } from "./palette";

const entry = (kind: PaletteEntry["kind"], title: string, detail = "", weight = 0): PaletteEntry => ({
  kind,
  title,
  detail,
  weight,
  id: `${kind}-${title}-${detail}`,
});

const ENTRIES: readonly PaletteEntry[] = [
  entry("page", "Processes"),
  entry("process", "envoy", "4242 · /usr/local/bin/envoy", 83),
  entry("process", "envoy", "99 · /usr/local/bin/envoy", 2),
  entry("process", "xenvoyx", "1"),
  entry("process", "httpbin", "5151 · beside envoy"),
  entry("task", "7 off_cpu", "pid 4242", 7),
  entry("frames", "Frames in this profile"),
];

describe("going to anything", () => {
  it("puts exact names first, then parts, then details, the busiest of equals first", () => {
    expect(find(ENTRIES, "envoy").map(({ id }) => id)).toEqual([
      "process-envoy-4242 · /usr/local/bin/envoy",
      "process-envoy-99 · /usr/local/bin/envoy",
      "process-xenvoyx-1",
      "process-httpbin-5151 · beside envoy",
      "frames-Frames in this profile-",
    ]);
  });

  it("wants every word, in any order and any case", () => {
    expect(find(ENTRIES, "4242 ENVOY").map(({ title }) => title)).toEqual([
      "envoy",
      "Frames in this profile",
    ]);
    expect(find(ENTRIES, "task 4242")[0]?.title).toBe("7 off_cpu");
    expect(find(ENTRIES, "nothing").map(({ kind }) => kind)).toEqual(["frames"]);
  });

  it("takes the whole name before others that have its words", () => {
    const tasks = [entry("task", "Task 14", "", 14), entry("task", "Task 4", "", 4)];
    expect(find(tasks, "task 4")[0]?.title).toBe("Task 4");
  });

  it("begins with the pages, and searches frames only for words", () => {
    const all = find(ENTRIES, " ");
    expect(all[0]?.title).toBe("Processes");
    expect(all.some(({ kind }) => kind === "frames")).toBe(false);
  });
});
