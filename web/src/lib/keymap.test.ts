import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { actionOf, beginsSequence, KEYMAP } from "./keymap";

describe("the table of keys", () => {
  it("gives each key everywhere one meaning", () => {
    const bound = KEYMAP.flatMap(({ entries }) => entries)
      .filter(({ action }) => action !== undefined)
      .map(({ keys }) => keys.join(" "));
    expect(new Set(bound).size).toBe(bound.length);
    // The first key of a sequence must not do something by itself.
    for (const keys of bound) if (keys.includes(" ")) expect(bound).not.toContain(keys.split(" ")[0]);
  });

  it("names documents and sections that there are", () => {
    for (const [file, section] of KEYMAP.flatMap(({ document }) => (document === null ? [] : [document]))) {
      const text = new TextDecoder().decode(readFileSync(new URL(`../../../${file}`, import.meta.url)));
      if (section !== undefined) expect(text.split("\n"), file).toContain(`## ${section}`);
    }
  });

  it("finds actions of single keys and of sequences", () => {
    expect(actionOf(null, "n")).toBe("new_task");
    expect(actionOf("g", "t")).toEqual({ go: "tasks" });
    expect(actionOf("g", "p")).toEqual({ go: "pods" });
    expect(actionOf(null, "t")).toBeNull();
    expect(actionOf("g", "n")).toBeNull();
    expect(beginsSequence("g")).toBe(true);
    expect(beginsSequence("n")).toBe(false);
  });
});
