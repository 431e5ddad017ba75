// Tells when what is measured has ended: by the title of the tab, and by the browser where the reader wants that.

import { computed, effect, signal } from "@preact/signals";
import { type Ending, endingMark, endingOfMeasured, type Measured, measuredOn } from "../lib/ending";
import { tasks } from "./live";
import { route } from "./route";

/** What was seen running here. */
const watched = signal<ReadonlySet<string>>(new Set());
/** Of which the browser is to tell the end, with what it is called. */
const wanted = signal<ReadonlyMap<string, Wanted>>(new Map());

interface Wanted {
  readonly measured: Measured;
  readonly title: string;
}

const keyOf = ({ view, id }: Measured): string => `${view} ${id}`;
const shown = computed(() => measuredOn(route.value));
const ending = computed(() =>
  shown.value === null ? null : endingOfMeasured(shown.value, tasks.value ?? new Map()),
);

/** The mark before the title of the page. */
export const mark = computed(() =>
  endingMark(ending.value, shown.value !== null && watched.value.has(keyOf(shown.value))),
);

/** Browsers have it only where the connection cannot be listened to, loopback among them. */
export function canNotify(): boolean {
  return "Notification" in window && Notification.permission !== "denied";
}

export function isWanted(): boolean {
  return shown.value !== null && wanted.value.has(keyOf(shown.value));
}

/** Asks for the right to tell, and tells the end of what the page shows. */
export async function wantNotice(on: boolean): Promise<void> {
  const measured = shown.peek();
  if (measured === null) return;
  const title = document.title.replace(/^… /, "");
  const granted = on && (await Notification.requestPermission()) === "granted";
  const next = new Map(wanted.peek());
  next.delete(keyOf(measured));
  if (granted) next.set(keyOf(measured), { measured, title });
  wanted.value = next;
}

const ENDED: Readonly<Record<Exclude<Ending, "running">, string>> = {
  done: "The measurement has ended",
  failed: "The measurement has failed",
};

export function followEndings(): void {
  effect(() => {
    if (shown.value === null || ending.value !== "running") return;
    const key = keyOf(shown.value);
    if (!watched.peek().has(key)) watched.value = new Set([...watched.peek(), key]);
  });
  effect(() => {
    // Of other pages as well: the reader may have gone on.
    const all = tasks.value ?? new Map();
    const left = new Map(wanted.value);
    for (const [key, { measured, title }] of wanted.value) {
      const now = endingOfMeasured(measured, all);
      if (now === "running") continue;
      left.delete(key);
      if (now !== null) new Notification(ENDED[now], { body: title, tag: key });
    }
    if (left.size !== wanted.value.size) wanted.value = left;
  });
}
