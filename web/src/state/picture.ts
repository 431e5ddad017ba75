// The picture of the graph that is shown, for the export menu: the graph offers it while it is there.

import { signal } from "@preact/signals";

/** Null without a graph. The blob is null when the browser makes none. */
export const picture = signal<(() => Promise<Blob | null>) | null>(null);
