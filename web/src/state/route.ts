// The page state lives in the address bar; this signal mirrors it.

import { signal } from "@preact/signals";
import { formatState, type PageState, parseState, START } from "../lib/query_state";

/** An exported file has no server that a query could go to: its state lies behind the #. */
const OFFLINE = document.documentElement.dataset.viewer === "offline";

function written(): string {
  return OFFLINE ? location.hash.slice(1) : location.search;
}

export const route = signal<PageState>(parseState(written()));

/** Changes part of the state. `replace` keeps one entry in the history (typing, live changes). */
export function patchRoute(change: Partial<PageState>, how: "push" | "replace" = "push"): void {
  go({ ...route.peek(), dead: "", ...change }, how);
}

/** Goes to another page: state of the old page is dropped. */
export function openView(change: Partial<PageState>): void {
  go({ ...START, ...change }, "push");
}

/** Address of a page, for real links (middle click, copy). */
export function href(change: Partial<PageState>): string {
  return addressOf({ ...START, ...change });
}

function addressOf(state: PageState): string {
  return `${OFFLINE ? "#" : "/"}${formatState(state)}`;
}

function go(state: PageState, how: "push" | "replace"): void {
  if (formatState(state) !== written()) {
    if (how === "push") history.pushState(null, "", addressOf(state));
    else history.replaceState(null, "", addressOf(state));
  }
  route.value = state;
}

export function followHistory(): void {
  window.addEventListener("popstate", () => {
    route.value = parseState(written());
  });
}
