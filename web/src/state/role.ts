// What the token of this page may do.

import { computed } from "@preact/signals";
import { meta } from "./live";

/** False with the read-only token, with which the agent refuses every change. */
export const mayChange = computed(() => meta.value?.role !== "read_only");
