// The task that the form begins with, when one is edited to run again.

import { signal } from "@preact/signals";
import type { Task } from "../api/types";

export const edited = signal<Task | null>(null);
