// Keys that work on every page. Single keys are off inside text fields and when the reader turned
// them off (WCAG 2.1.4).

import { signal } from "@preact/signals";
import { singleKeys } from "./preferences";
import { openView, patchRoute } from "./route";

export const helpOpen = signal(false);

const SEQUENCE_MS = 1_200;

export function inTextField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null
  );
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  field?.focus();
  field?.select();
  return field !== null;
}

let pendingSince = Number.NEGATIVE_INFINITY;

/** True after `g`: the next key belongs to the sequence and to nothing else. */
export function sequencePending(): boolean {
  return performance.now() - pendingSince < SEQUENCE_MS;
}

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!singleKeys.value || inTextField(event.target)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const second = event.timeStamp - pendingSince < SEQUENCE_MS;
    pendingSince = Number.NEGATIVE_INFINITY;
    let done = true;
    if (second && event.key === "p") openView({ view: "processes" });
    else if (second && event.key === "t") openView({ view: "tasks" });
    else if (second && event.key === "o") openView({ view: "node" });
    else if (event.key === "g") pendingSince = event.timeStamp;
    else if (event.key === "n") patchRoute({ create: true });
    else if (event.key === "?") helpOpen.value = true;
    else if (event.key === "/") done = focusSearch();
    else done = false;
    if (done) event.preventDefault();
  });
}
