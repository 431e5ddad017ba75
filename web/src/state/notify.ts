// Tells when what is measured has ended: by the title of the tab, and by the browser where the reader wants that.

import { computed, effect, signal } from "@preact/signals";
import { type Ending, endingMark, endingShown } from "../lib/ending";
import { tasks } from "./live";
import { route } from "./route";

/** Pages whose measurement was seen running here, by view and id. */
const watched = signal<ReadonlySet<string>>(new Set());
/** Those of them whose end the browser is to tell. */
export const wanted = signal<ReadonlySet<string>>(new Set());

const shown = computed(() => `${route.value.view} ${route.value.id}`);
const ending = computed(() => endingShown(route.value, tasks.value ?? new Map()));

/** The mark before the title of the page. */
export const mark = computed(() => endingMark(ending.value, watched.value.has(shown.value)));

/** Browsers have it only where the connection cannot be listened to, loopback among them. */
export function canNotify(): boolean {
  return "Notification" in window && Notification.permission !== "denied";
}

export function isWanted(): boolean {
  return wanted.value.has(shown.value);
}

/** Asks for the right to tell, and tells the end of what the page shows. */
export async function wantNotice(on: boolean): Promise<void> {
  const key = shown.peek();
  const next = new Set(wanted.peek());
  next.delete(key);
  if (on && (await Notification.requestPermission()) === "granted") next.add(key);
  wanted.value = next;
}

const ENDED: Readonly<Record<Exclude<Ending, "running">, string>> = {
  done: "The measurement has ended",
  failed: "The measurement has failed",
};

function tell(key: string): void {
  const [view = "", id = ""] = key.split(" ");
  const now = endingShown({ view: view as "task", id }, tasks.peek() ?? new Map());
  if (now === "running") return;
  const next = new Set(wanted.peek());
  next.delete(key);
  wanted.value = next;
  if (now !== null) new Notification(ENDED[now], { body: document.title, tag: key });
}

export function followEndings(): void {
  effect(() => {
    if (ending.value === "running" && !watched.peek().has(shown.value))
      watched.value = new Set([...watched.peek(), shown.value]);
  });
  effect(() => {
    // Of other pages as well: the reader may have gone on.
    void tasks.value;
    for (const key of wanted.value) tell(key);
  });
}
