// Whether a result has the whole window: nothing but its toolbar, its graph and the line below it.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isPageKey, isPageLetter } from "./keys";

export const fullScreen = signal(false);

/** The browser's own full screen too, where it allows that; it may take a while, and be changed meanwhile. */
async function follow(): Promise<void> {
  const wanted = fullScreen.peek();
  if (wanted === (document.fullscreenElement !== null)) return;
  try {
    await (wanted ? document.documentElement.requestFullscreen?.() : document.exitFullscreen());
  } catch {
    // Refused: the graph has the window.
    return;
  }
  if (fullScreen.peek() !== wanted) await follow();
}

function set(wanted: boolean): void {
  fullScreen.value = wanted;
  void follow();
}

export function toggleFullScreen(): void {
  set(!fullScreen.peek());
}

/** `z` and Escape, for as long as the result is shown; another page has its frame again. */
export function useFullScreen(): void {
  useEffect(() => {
    const stop = new AbortController();
    const options = { signal: stop.signal };
    document.addEventListener(
      "keydown",
      (event) => {
        if (event.key === "Escape" && fullScreen.peek() && isPageKey(event)) set(false);
        else if (event.key === "z" && isPageLetter(event)) toggleFullScreen();
        else return;
        event.preventDefault();
      },
      options,
    );
    // The browser leaves by itself with Escape.
    document.addEventListener(
      "fullscreenchange",
      () => {
        if (document.fullscreenElement === null) fullScreen.value = false;
      },
      options,
    );
    return () => {
      stop.abort();
      set(false);
    };
  }, []);
}
