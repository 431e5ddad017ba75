// What names profiles of processes will have. Looking costs the agent work on large binaries: one process is
// asked for at a time, only those that are wanted, and each once.

import { effect, signal } from "@preact/signals";
import { api, ProblemError } from "../api/client";
import type { ProcessSymbols } from "../api/types";
import { meta } from "./live";
import { symbolsRevision } from "./symbols";

export type SymbolAnswer =
  | { readonly state: "asked" }
  | { readonly state: "known"; readonly symbols: ProcessSymbols }
  | { readonly state: "failed"; readonly reason: string };

/** By process id; what is missing has not been asked for. */
export const processSymbols = signal<ReadonlyMap<string, SymbolAnswer>>(new Map());

/** Answers that are kept; a node has as many processes that are worth asking. */
const MOST_KEPT = 2_000;

const waiting: string[] = [];
let working = false;

function put(id: string, answer: SymbolAnswer): void {
  const next = new Map(processSymbols.peek());
  next.set(id, answer);
  const [oldest] = next.keys();
  if (next.size > MOST_KEPT && oldest !== undefined) next.delete(oldest);
  processSymbols.value = next;
}

async function work(): Promise<void> {
  if (working) return;
  working = true;
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    try {
      put(id, { state: "known", symbols: await api.processSymbols(id) });
    } catch (error) {
      put(id, {
        state: "failed",
        reason: error instanceof ProblemError ? error.message : "the agent does not answer",
      });
    }
  }
  working = false;
}

// Symbol files that came or went may give other answers.
effect(() => {
  if (symbolsRevision.value > 0) processSymbols.value = new Map();
});

/** Asks for a process, the newest wish first. `again` asks once more after a failure or new symbol files. */
export function wantSymbols(id: string, again = false): void {
  if (processSymbols.peek().has(id) && !again) return;
  if (meta.peek()?.demo_data === true) {
    put(id, { state: "failed", reason: "the process was recorded elsewhere" });
    return;
  }
  put(id, { state: "asked" });
  waiting.push(id);
  void work();
}
