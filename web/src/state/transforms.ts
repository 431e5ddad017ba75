// The list of changes in the address bar.

import { formatTransforms, MAX_TRANSFORMS, parseTransforms, type Transform } from "../lib/flame_transform";
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

export function clearTransforms(): void {
  put([]);
}
