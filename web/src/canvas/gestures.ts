// Wheel and drag on a flame graph: Ctrl and the wheel change how much is shown, a drag moves it.

/** A shorter drag is a click. */
const LEAST_DRAG_PX = 4;
/** One notch of a wheel shows so much less. */
const NOTCH = 0.8;
const NOTCH_PX = 120;
/** Wheels that count lines or pages instead of pixels. */
const LINE_PX = 16;
const PAGE_PX = 400;

export interface Gestures {
  /** Shows `factor` of the width around a place in the window. */
  readonly scaled: (factor: number, clientX: number) => void;
  /** Moves the view by this many pixels. */
  readonly moved: (dx: number, dy: number) => void;
  readonly clicked: (clientX: number, clientY: number) => void;
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
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      last = { x: event.clientX, y: event.clientY };
      dragged = false;
    },
    options,
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
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
