// What can be done with a frame, as buttons: the same as the keys do.

import type { FlameIndex } from "../lib/flame_index";
import { ancestry, labelOf, pathKey } from "../lib/flame_index";
import { type TransformKind, transformOf } from "../lib/flame_transform";
import { href, route } from "../state/route";
import { addTransform } from "../state/transforms";
import { CopyButton } from "./copy_button";

export const CHANGES: readonly { kind: TransformKind; title: string; key: string; help: string }[] = [
  { kind: "focus", title: "Focus", key: "f", help: "Only stacks with this function, from it on" },
  {
    kind: "merge",
    title: "Hide",
    key: "m",
    help: "Take this function out: its samples go to its callers",
  },
  { kind: "drop", title: "Drop stacks", key: "d", help: "Leave out the stacks with this function" },
  {
    kind: "recursion",
    title: "Collapse recursion",
    key: "r",
    help: "Calls of this function inside itself become one",
  },
  { kind: "module", title: "Collapse module", key: "c", help: "Calls inside this module become one frame" },
  {
    kind: "processes",
    title: "Merge processes",
    key: "p",
    help: "Stacks of all processes and threads in one",
  },
];

interface Props {
  readonly index: FlameIndex;
  readonly node: number;
  readonly onSandwich: (node: number) => void;
}

export function ChangeButtons({ index, node, onSandwich }: Props) {
  const label = labelOf(index, node);
  return (
    <div class="frame-actions">
      <button
        type="button"
        class="quiet"
        title="Callers and callees of this function, key s"
        onClick={() => onSandwich(node)}
      >
        Sandwich
      </button>
      {CHANGES.map(({ kind, title, key, help }) => {
        const transform = transformOf(kind, label);
        if (transform === null) return null;
        return (
          <button
            key={kind}
            type="button"
            class="quiet"
            title={`${help}, key ${key}`}
            onClick={() => addTransform(transform)}
          >
            {title}
          </button>
        );
      })}
    </div>
  );
}

/** Names from the root to the frame, one on a line; folded frames too. */
export function stackText(index: FlameIndex, node: number): string {
  const { labels, label } = index.graph;
  return ancestry(index, node)
    .flatMap((at) => index.folds?.get(label[at]!) ?? [label[at]!])
    .map((id) => labels[id]!.name)
    .join("\n");
}

/** The address that shows this frame. */
export function frameLink(index: FlameIndex, node: number): string {
  const zoom = node === 0 ? "" : pathKey(index, node);
  return new URL(href({ ...route.value, zoom }), location.href).href;
}

export function CopyButtons({ index, node }: { index: FlameIndex; node: number }) {
  return (
    <>
      <CopyButton title="Copy name" text={labelOf(index, node).name} />
      <CopyButton title="Copy stack" text={stackText(index, node)} />
      <CopyButton title="Copy link" text={frameLink(index, node)} />
    </>
  );
}
