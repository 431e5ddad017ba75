// The list of changes in the address bar.

import {
  formatTransforms,
  MAX_TRANSFORMS,
  moveTransform,
  parseTransforms,
  type Transform,
} from "../lib/flame_transform";
import { patchRoute, route } from "./route";

function put(transforms: readonly Transform[]): void {
  patchRoute({ transforms: formatTransforms(transforms) });
}

/** Puts a change at the end; one that is there already changes nothing more. */
export function addTransform(transform: Transform): void {
  const now = parseTransforms(route.peek().transforms);
  const there = now.some(({ kind, key }) => kind === transform.kind && key === transform.key);
  if (!there && now.length < MAX_TRANSFORMS) put([...now, transform]);
}

export function removeTransform(position: number): void {
  put(parseTransforms(route.peek().transforms).filter((_, i) => i !== position));
}

/** Changes act one after the other: another order may give another picture. */
export function shiftTransform(position: number, by: number): void {
  const now = parseTransforms(route.peek().transforms);
  const next = moveTransform(now, position, by);
  if (next !== now) put(next);
}

export function clearTransforms(): void {
  put([]);
}
