// What can be done with a frame, at the place of the frame: opened by the right button, a long press,
// Shift-F10 or the menu key.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isFolded } from "../lib/flame_fold";
import type { FlameIndex } from "../lib/flame_index";
import { labelOf } from "../lib/flame_index";
import { transformOf } from "../lib/flame_transform";
import { shortName, visible } from "../lib/format";
import { copyText } from "../state/clipboard";
import { patchRoute } from "../state/route";
import { addTransform } from "../state/transforms";
import { CHANGES, frameLink, stackText } from "./frame_actions";

export interface MenuPlace {
  /** Path of the frame: it stays the same frame when the graph grows. */
  readonly path: string;
  readonly x: number;
  readonly y: number;
}

interface Item {
  readonly title: string;
  readonly help: string;
  readonly key: string;
  readonly act: () => void;
}

const EDGE = 6;
/** A click so soon is the end of what opened the menu. */
const OPENING_MS = 250;

function itemsOf(props: {
  index: FlameIndex;
  node: number;
  onZoom: (node: number) => void;
  onSandwich: (node: number) => void;
}): Item[] {
  const { index, node } = props;
  if (isFolded(index, node))
    return [
      {
        title: "Unfold",
        help: "Show the first frames one by one",
        key: "",
        act: () => patchRoute({ unfold: true }, "replace"),
      },
    ];
  const label = labelOf(index, node);
  const changes = CHANGES.flatMap(({ kind, title, key, help }) => {
    const transform = transformOf(kind, label);
    return transform === null ? [] : [{ title, help, key, act: () => addTransform(transform) }];
  });
  const copies: readonly (readonly [string, string, string])[] = [
    ["Name", label.name, "y"],
    ["Stack", stackText(index, node), ""],
    ["Link", frameLink(index, node), ""],
  ];
  return [
    {
      title: "Zoom in",
      help: "This frame as wide as the window",
      key: "Enter",
      act: () => props.onZoom(node),
    },
    ...changes,
    {
      title: "Callers and callees",
      help: "Its function in the middle of a sandwich",
      key: "s",
      act: () => props.onSandwich(node),
    },
    {
      title: "Explain",
      help: "Numbers with their interval, feature, module, source line, and where the name is from",
      key: "o",
      act: () => patchRoute({ panel: true }, "replace"),
    },
    ...copies.map(([what, text, key]) => ({
      title: `Copy ${what.toLowerCase()}`,
      help: "",
      key,
      act: () => void copyText(text, what),
    })),
  ];
}

export function FrameMenu(props: {
  index: FlameIndex;
  node: number;
  place: MenuPlace;
  onZoom: (node: number) => void;
  onSandwich: (node: number) => void;
  /** `back` asks for the focus to return to the graph. */
  onClose: (back: boolean) => void;
}) {
  const { index, node, place, onClose } = props;
  const root = useRef<HTMLDivElement>(null);
  const opened = useRef(0);
  const items = itemsOf(props);
  useLayoutEffect(() => {
    const box = root.current;
    if (box === null) return;
    const { width, height } = box.getBoundingClientRect();
    const left = Math.max(EDGE, Math.min(place.x, innerWidth - width - EDGE));
    const top = Math.max(EDGE, Math.min(place.y, innerHeight - height - EDGE));
    box.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
    box.querySelector("button")?.focus();
    opened.current = performance.now();
  }, [place]);
  useEffect(() => {
    const stop = new AbortController();
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) onClose(false);
    };
    for (const name of ["pointerdown", "focusin"])
      document.addEventListener(name, outside, { signal: stop.signal });
    for (const name of ["resize", "blur"])
      window.addEventListener(name, () => onClose(false), { signal: stop.signal });
    return () => stop.abort();
  }, [onClose]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const buttons = [...(root.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const last = buttons.length - 1;
    const to = {
      ArrowDown: at === last ? 0 : at + 1,
      ArrowUp: at <= 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to !== undefined) buttons[to]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") onClose(true);
    // A key of the menu is no key of the page; Enter and Space press the button.
    else if (event.key === "Enter" || event.key === " ") {
      event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={root}
      class="frame-menu"
      role="menu"
      tabIndex={-1}
      aria-label={`Frame ${visible(labelOf(index, node).name)}`}
      data-frame-menu
      onKeyDown={onKeyDown}
      onContextMenu={(event) => event.preventDefault()}
    >
      <p class="frame-menu-name mono" aria-hidden="true">
        {shortName(visible(labelOf(index, node).name))}
      </p>
      {items.map(({ title, help, key, act }) => (
        <button
          key={title}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class="menu-item"
          title={help}
          onClick={(event) => {
            if (event.detail > 0 && performance.now() - opened.current < OPENING_MS) return;
            onClose(true);
            act();
          }}
        >
          {title}
          {key !== "" && <kbd aria-hidden="true">{key}</kbd>}
        </button>
      ))}
    </div>
  );
}
