// Whether a result has the whole window: nothing but its toolbar, its graph and the line below it.

import { signal } from "@preact/signals";

export const fullScreen = signal(false);

/** Takes the screen too, where the browser lets it. */
export function toggleFullScreen(): void {
  fullScreen.value = !fullScreen.value;
  const changed = fullScreen.value ? document.documentElement.requestFullscreen?.() : leave();
  // Refused, or not there: the graph has the window.
  changed?.catch(() => {});
}

function leave(): Promise<void> | undefined {
  return document.fullscreenElement === null ? undefined : document.exitFullscreen();
}

/** The page as it was, for example when another page is opened. */
export function endFullScreen(): void {
  if (!fullScreen.peek()) return;
  fullScreen.value = false;
  leave()?.catch(() => {});
}

/** Follows Escape, with which the browser leaves full screen by itself. */
export function followFullScreen(): void {
  document.addEventListener("fullscreenchange", () => {
    if (document.fullscreenElement === null) fullScreen.value = false;
  });
}
