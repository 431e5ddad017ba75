// The shown part of a graph's width in the address.

import { formatPart, type Part } from "../lib/flame_window";
import { patchRoute } from "./route";

/** What a key shows of what was shown, and how far one moves it. */
export const NEARER = 0.7;
export const PAN_SHARE = 0.2;

/** Writes the part into the address. `left`: it is beside the zoomed frame. */
export function tellPart(part: Part | null, left: boolean): void {
  patchRoute({ part: formatPart(part), ...(left ? { zoom: "" } : {}) }, "replace");
}
