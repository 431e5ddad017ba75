// Wheel, drag and menu on a flame graph: Ctrl and the wheel change how much is shown, a drag moves it, the
// right button or a long press asks for what can be done.

/** A shorter drag is a click. */
const LEAST_DRAG_PX = 4;
/** One notch of a wheel shows so much less. */
const NOTCH = 0.8;
const NOTCH_PX = 120;
/** Wheels that count lines or pages instead of pixels. */
const LINE_PX = 16;
const PAGE_PX = 400;
/** A finger that stays so long asks for the menu; not all browsers say so by themselves. */
const LONG_PRESS_MS = 550;

export interface Gestures {
  /** Shows `factor` of the width around a place in the window. */
  readonly scaled: (factor: number, clientX: number) => void;
  /** Moves the view by this many pixels. */
  readonly moved: (dx: number, dy: number) => void;
  readonly clicked: (clientX: number, clientY: number) => void;
  /** Says whether there is a menu for this place. */
  readonly asked: (clientX: number, clientY: number) => boolean;
}

function pixels(delta: number, mode: number): number {
  return (
    delta * (mode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : mode === WheelEvent.DOM_DELTA_PAGE ? PAGE_PX : 1)
  );
}

/** Follows the pointer on `canvas` until `signal` ends. Fingers scroll as everywhere else. */
export function followGestures(canvas: HTMLCanvasElement, gestures: Gestures, signal: AbortSignal): void {
  let last: { x: number; y: number } | null = null;
  let dragged = false;
  let start = { x: 0, y: 0 };
  let touched = false;
  /** A finger has stayed long enough. */
  let held = false;

  canvas.addEventListener(
    "wheel",
    (event) => {
      const dx = pixels(event.deltaX, event.deltaMode);
      const dy = pixels(event.deltaY, event.deltaMode);
      if (event.ctrlKey || event.metaKey) gestures.scaled(NOTCH ** (-dy / NOTCH_PX), event.clientX);
      else if (event.shiftKey) gestures.moved(-(dx || dy), 0);
      else if (Math.abs(dx) > Math.abs(dy)) gestures.moved(-dx, 0);
      else return;
      // The browser would change the size of the page.
      event.preventDefault();
    },
    { signal, passive: false },
  );
  const options = { signal, passive: true };
  let press: ReturnType<typeof setTimeout> | undefined;
  canvas.addEventListener(
    "contextmenu",
    (event) => {
      last = null;
      if (touched) {
        // The finger is still down: the menu opens when it leaves, or the same touch would pick from it.
        held = true;
        event.preventDefault();
      } else if (gestures.asked(event.clientX, event.clientY)) event.preventDefault();
    },
    { signal },
  );
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      clearTimeout(press);
      dragged = false;
      held = false;
      touched = event.pointerType === "touch";
      if (touched) {
        press = setTimeout(() => {
          held = true;
        }, LONG_PRESS_MS);
        start = { x: event.clientX, y: event.clientY };
      }
      if (event.button !== 0 || event.pointerType === "touch") return;
      last = { x: event.clientX, y: event.clientY };
    },
    options,
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      if (Math.hypot(event.clientX - start.x, event.clientY - start.y) > LEAST_DRAG_PX) clearTimeout(press);
      if (last === null) return;
      const [dx, dy] = [event.clientX - last.x, event.clientY - last.y];
      if (!dragged && Math.hypot(dx, dy) < LEAST_DRAG_PX) return;
      if (!dragged) {
        dragged = true;
        canvas.classList.add("dragged");
        if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
      }
      last = { x: event.clientX, y: event.clientY };
      gestures.moved(dx, dy);
    },
    options,
  );
  const ended = (): void => {
    clearTimeout(press);
    // The click at its end is part of it.
    if (held) dragged = gestures.asked(start.x, start.y);
    held = false;
    last = null;
    canvas.classList.remove("dragged");
  };
  canvas.addEventListener("pointerup", ended, options);
  canvas.addEventListener("pointercancel", ended, options);
  canvas.addEventListener(
    "click",
    (event) => {
      // The end of a drag is not a click.
      if (dragged) dragged = false;
      else gestures.clicked(event.clientX, event.clientY);
    },
    options,
  );
}
