// A button with a panel below it; closes on Escape and when the focus or pointer goes elsewhere.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Menu(props: {
  title: string;
  /** For screen readers, where the title alone does not say what the button is. */
  label?: string;
  class?: string;
  active?: boolean;
  children: (close: () => void) => ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const stop = new AbortController();
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside, { signal: stop.signal });
    document.addEventListener("focusin", outside, { signal: stop.signal });
    return () => stop.abort();
  }, [open]);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: only catches Escape for what is inside
    <div
      class={`menu ${props.class ?? ""}`}
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <button
        ref={button}
        type="button"
        aria-expanded={open}
        aria-label={props.label}
        class={props.active ? "active" : ""}
        onClick={() => setOpen(!open)}
      >
        <span class="menu-title">{props.title}</span> <span aria-hidden="true">▾</span>
      </button>
      {open && <div class="menu-panel">{props.children(close)}</div>}
    </div>
  );
}
