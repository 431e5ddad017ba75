// Every key of the page in one table: what the help shows is what the page does.

import type { View } from "./query_state";

/** What a key does everywhere; keys of single pages have no action here. */
export type GlobalAction =
  | { readonly go: View }
  | "new_task"
  | "check_up"
  | "search"
  | "palette"
  | "help"
  | "copy_link";

export interface KeyEntry {
  /** Keys after each other, or alternatives when `either` is set. */
  readonly keys: readonly string[];
  readonly either?: boolean;
  readonly what: string;
  readonly action?: GlobalAction;
}

export interface KeyGroup {
  readonly title: string;
  /** What explains this part of the page, in the sources; with the heading of a section. */
  readonly document: readonly [file: string, section?: string] | null;
  readonly entries: readonly KeyEntry[];
}

export const KEYMAP: readonly KeyGroup[] = [
  {
    title: "Everywhere",
    document: ["README.md", "More"],
    entries: [
      { keys: ["Ctrl-K"], what: "go to anything: process, pod, task, page", action: "palette" },
      { keys: ["/"], what: "search or filter on this page", action: "search" },
      { keys: ["g", "h"], what: "overview", action: { go: "overview" } },
      { keys: ["g", "d"], what: "diagnose", action: { go: "diagnose" } },
      { keys: ["g", "p"], what: "pods", action: { go: "pods" } },
      { keys: ["g", "s"], what: "processes", action: { go: "processes" } },
      { keys: ["g", "t"], what: "tasks", action: { go: "tasks" } },
      { keys: ["g", "w"], what: "network", action: { go: "network" } },
      { keys: ["g", "o"], what: "node", action: { go: "node" } },
      { keys: ["n"], what: "new task, of the row that has the focus", action: "new_task" },
      { keys: ["u"], what: "check-up, of the row that has the focus", action: "check_up" },
      { keys: ["l"], what: "copy the link of this view", action: "copy_link" },
      { keys: ["?"], what: "this help", action: "help" },
      { keys: ["Esc"], what: "close, or one level up" },
    ],
  },
  {
    title: "Tables",
    document: null,
    entries: [
      { keys: ["↑", "↓"], either: true, what: "row up, row down" },
      { keys: ["PgUp", "PgDn"], either: true, what: "one page" },
      { keys: ["Home", "End"], either: true, what: "first, last row" },
      { keys: ["Enter"], what: "open the row" },
    ],
  },
  {
    title: "Map of connections",
    document: ["docs/network.md", "The map of the node"],
    entries: [
      { keys: ["←", "→", "↑", "↓"], either: true, what: "to the next node or line" },
      { keys: ["Enter"], what: "details of it" },
      { keys: ["t"], what: "map or table" },
    ],
  },
  {
    title: "Matrix of a diagnosis",
    document: ["docs/diagnosis.md", "How a sample finds its cell"],
    entries: [
      { keys: ["←", "→", "↑", "↓"], either: true, what: "to the next cell" },
      { keys: ["Home", "End"], either: true, what: "first, last cell of the row (Ctrl: of all)" },
      { keys: ["Enter"], what: "flame graph of the cell's samples" },
    ],
  },
  {
    title: "Search",
    document: ["docs/flame-graph.md"],
    entries: [
      { keys: ["text"], what: "part of a name, any case" },
      { keys: ["/regex/"], what: "regular expression, /regex/i without case" },
      { keys: ["mod:libssl"], what: "part of a module path" },
      { keys: ["feature:tracing"], what: "part of a feature's title, when colours are by feature" },
      {
        keys: ["kind:kernel"],
        what: "user, inlined, kernel, jit, inferred, unnamed, marker, process, merged",
      },
    ],
  },
  {
    title: "Time",
    document: ["docs/flame-graph.md"],
    entries: [
      { keys: ["h"], what: "bars, sub-second map, threads" },
      { keys: ["←", "→", "↑", "↓"], either: true, what: "walk the cells, or frames in time order" },
      { keys: ["Shift", "→"], what: "mark cells up to the next one" },
      { keys: ["Enter"], what: "show only the marked time" },
      { keys: ["Space"], what: "pick the thread of the cell" },
      { keys: ["Esc"], what: "show the whole time" },
    ],
  },
  {
    title: "Processes and threads",
    document: ["docs/flame-graph.md"],
    entries: [
      { keys: ["↑", "↓"], either: true, what: "row up, row down" },
      { keys: ["←", "→"], either: true, what: "fold, unfold the process" },
      { keys: ["Enter"], what: "show only this" },
      { keys: ["Space"], what: "add it, or take it away" },
    ],
  },
  {
    title: "Flame graph",
    document: ["docs/flame-graph.md"],
    entries: [
      { keys: ["←", "→"], either: true, what: "frame left, right" },
      { keys: ["↑", "↓"], either: true, what: "up and down the stack" },
      { keys: ["Enter"], what: "zoom into the frame" },
      { keys: ["Backspace"], what: "zoom out one level (also Esc)" },
      { keys: ["0"], what: "show everything" },
      { keys: ["+", "-"], either: true, what: "nearer, farther (also Ctrl and the wheel)" },
      { keys: ["Shift", "→"], what: "move sideways (also a drag)" },
      { keys: ["n", "N"], either: true, what: "next, previous match" },
      { keys: ["1", "2", "3", "4"], either: true, what: "flame, icicle, inverted, sandwich" },
      { keys: ["5", "6"], either: true, what: "time order, table" },
      { keys: ["i"], what: "flame or icicle" },
      { keys: ["t"], what: "graph or table" },
      { keys: ["z"], what: "full screen" },
    ],
  },
  {
    title: "Selected frame",
    document: ["docs/flame-graph.md"],
    entries: [
      { keys: ["Shift", "F10"], what: "all that can be done with it (also the right button)" },
      { keys: ["s"], what: "its callers and callees (sandwich)" },
      { keys: ["f"], what: "focus: only stacks with its function" },
      { keys: ["m"], what: "hide: its function's samples go to the callers" },
      { keys: ["d"], what: "drop the stacks with its function" },
      { keys: ["r"], what: "collapse the recursion of its function" },
      { keys: ["c"], what: "collapse its module" },
      { keys: ["p"], what: "merge processes and threads" },
      { keys: ["Alt", "→"], what: "on a change: apply it later (← earlier)" },
      { keys: ["o"], what: "details" },
      { keys: ["y"], what: "copy the name" },
    ],
  },
];

/** What the page does on `key`, which follows `before` when that was a `g`. */
export function actionOf(before: string | null, key: string): GlobalAction | null {
  const typed = before === null ? [key] : [before, key];
  for (const { entries } of KEYMAP) {
    for (const { keys, action } of entries) {
      if (action === undefined || keys.length !== typed.length) continue;
      if (keys.every((wanted, i) => wanted === typed[i])) return action;
    }
  }
  return null;
}

/** Whether `key` begins a sequence. */
export function beginsSequence(key: string): boolean {
  return KEYMAP.some(({ entries }) =>
    entries.some(({ keys, action }) => action !== undefined && keys.length > 1 && keys[0] === key),
  );
}
