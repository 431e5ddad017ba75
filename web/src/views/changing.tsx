// Controls that change something: they are there for those only who may.

import type { ComponentChildren } from "preact";
import { mayChange } from "../state/role";

/** Leaves out what the read-only token may not do. */
export function Changing({ children }: { children: ComponentChildren }) {
  return mayChange.value ? children : null;
}
