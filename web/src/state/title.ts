// Keeps the title of the tab in step with the page.

import { effect, signal } from "@preact/signals";
import { pageTitle } from "../lib/page_title";
import { meta, tasks } from "./live";
import { mark } from "./notify";
import { route } from "./route";

/** The ends of the edge that is shown; null while they are not known. */
export const shownEdge = signal<string | null>(null);

/** What the check-up that is shown is of; null while it is not known. */
export const shownCheckup = signal<string | null>(null);

export function followTitle(): void {
  effect(() => {
    document.title =
      mark.value +
      pageTitle(route.value, {
        task: tasks.value?.get(route.value.id),
        edge: shownEdge.value,
        checkup: shownCheckup.value,
        node: meta.value?.node ?? null,
      });
  });
}
