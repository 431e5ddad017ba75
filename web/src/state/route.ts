// The page state lives in the address bar; this signal mirrors it.

import { signal } from "@preact/signals";
import { formatState, type PageState, parseState, START } from "../lib/query_state";

export const route = signal<PageState>(parseState(location.search));

/** Changes part of the state. `replace` keeps one entry in the history (typing, live changes). */
export function patchRoute(change: Partial<PageState>, how: "push" | "replace" = "push"): void {
  go({ ...route.peek(), ...change }, how);
}

/** Goes to another page: state of the old page is dropped. */
export function openView(change: Partial<PageState>): void {
  go({ ...START, ...change }, "push");
}

/** Address of a page, for real links (middle click, copy). */
export function href(change: Partial<PageState>): string {
  return `/${formatState({ ...START, ...change })}`;
}

function go(state: PageState, how: "push" | "replace"): void {
  const next = formatState(state);
  if (next !== location.search) {
    if (how === "push") history.pushState(null, "", `/${next}`);
    else history.replaceState(null, "", `/${next}`);
  }
  route.value = state;
}

export function followHistory(): void {
  window.addEventListener("popstate", () => {
    route.value = parseState(location.search);
  });
}
