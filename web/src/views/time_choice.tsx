// In which form samples over time are shown.

import { useEffect } from "preact/hooks";
import type { TimeView } from "../lib/query_state";
import { isPageLetter } from "../state/keys";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";

const CHOICES: readonly (readonly [TimeView, string])[] = [
  ["bars", "Bars"],
  ["subsecond", "Sub-second"],
  ["threads", "Threads"],
];
const FORMS: readonly TimeView[] = CHOICES.map(([form]) => form);

export function TimeChoice() {
  return (
    <Choice
      label="Samples over time"
      value={route.value.time}
      choices={CHOICES}
      set={(time) => patchRoute({ time }, "replace")}
    />
  );
}

/** `h` goes to the next form, on the whole task page. */
export function useTimeKey(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "h" || !isPageLetter(event)) return;
      event.preventDefault();
      const at = FORMS.indexOf(route.peek().time);
      patchRoute({ time: FORMS[(at + 1) % FORMS.length]! }, "replace");
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
