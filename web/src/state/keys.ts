// Keys that work on every page. Single keys are off inside text fields and when the reader turned
// them off (WCAG 2.1.4).

import { signal } from "@preact/signals";
import { actionOf, beginsSequence, type GlobalAction } from "../lib/keymap";
import type { PageState } from "../lib/query_state";
import { copyLink } from "./clipboard";
import { singleKeys } from "./preferences";
import { mayChange } from "./role";
import { openView, patchRoute } from "./route";

export const helpOpen = signal(false);
export const paletteOpen = signal(false);

const SEQUENCE_MS = 1_200;

export function inTextField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null
  );
}

/** A key for the page: no field has it, no dialog is open, and nobody else took it. */
export function isPageKey(event: KeyboardEvent): boolean {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
  return plain && !inTextField(event.target) && document.querySelector("dialog[open]") === null;
}

/** The same for a single letter, which the reader may have turned off, and which may follow `g`. */
export function isPageLetter(event: KeyboardEvent): boolean {
  return isPageKey(event) && singleKeys.value && !sequencePending();
}

export function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  field?.focus();
  field?.select();
  return field !== null;
}

/** Where the keys of a page go: its graph, the row of its table that is reached by Tab, or the page itself. */
function focusPage(): void {
  const places = ["main [role=tree]", "main [role=grid] [data-row][tabindex='0']", "main"];
  const found = places
    .map((place) => document.querySelector<HTMLElement>(place))
    .find((node) => node !== null);
  found?.focus({ preventScroll: true });
}

/** The way out of a field: Escape once it is empty, and in a filter the arrow down, or Enter for its first row. */
function leaveField(event: KeyboardEvent, field: HTMLElement): boolean {
  if (event.key === "Escape") {
    // A search field that has text is emptied first, by the browser.
    if (field instanceof HTMLInputElement && field.type === "search" && field.value !== "") return false;
    field.blur();
    focusPage();
    return true;
  }
  if (!field.hasAttribute("data-search")) return false;
  if (event.key === "ArrowDown") {
    focusPage();
    return true;
  }
  const first = document.querySelector<HTMLElement>("main [role=grid] .openable:not(.spanning)");
  if (event.key !== "Enter" || first === null) return false;
  first.click();
  return true;
}

let pendingSince = Number.NEGATIVE_INFINITY;
let pendingKey = "";

/** True after `g`: the next key belongs to the sequence and to nothing else. */
export function sequencePending(): boolean {
  return performance.now() - pendingSince < SEQUENCE_MS;
}

/** What a new task is of: the row that has the focus, or the one that is picked. */
function subject(): Partial<PageState> {
  const row =
    document.activeElement?.closest("[data-subject]") ??
    document.querySelector("main [data-subject][aria-selected=true]");
  const [kind, id = ""] = row?.getAttribute("data-subject")?.split(" ") ?? [];
  if (kind === "pid") return { pids: [Number(id)] };
  return kind === "pod" ? { pod: id } : {};
}

function run(action: GlobalAction): boolean {
  switch (action) {
    case "new_task":
      if (mayChange.peek()) patchRoute({ create: true, ...subject() });
      return true;
    case "check_up":
      if (mayChange.peek()) patchRoute({ create: true, checkup: true, ...subject() });
      return true;
    case "help":
      helpOpen.value = true;
      return true;
    case "palette":
      paletteOpen.value = true;
      return true;
    case "copy_link":
      void copyLink();
      return true;
    case "search":
      if (!focusSearch()) paletteOpen.value = true;
      return true;
    default:
      openView({ view: action.go });
      return true;
  }
}

/** Ctrl-K, or Cmd-K: works in text fields too, and cannot be mistaken for typing. */
function isPaletteKey(event: KeyboardEvent): boolean {
  return (
    event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
  );
}

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
    if (isPaletteKey(event)) {
      event.preventDefault();
      paletteOpen.value = true;
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (inTextField(event.target)) {
      if (leaveField(event, event.target as HTMLElement)) event.preventDefault();
      return;
    }
    if (!singleKeys.value) return;
    const before = event.timeStamp - pendingSince < SEQUENCE_MS ? pendingKey : null;
    pendingSince = Number.NEGATIVE_INFINITY;
    if (before === null && beginsSequence(event.key)) {
      pendingSince = event.timeStamp;
      pendingKey = event.key;
      event.preventDefault();
      return;
    }
    const action = actionOf(before, event.key);
    if (action !== null && run(action)) event.preventDefault();
  });
}
